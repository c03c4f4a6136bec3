//! The commands as a user types them: parsed and rendered by the real code, answered by the stage.
use cli::scontrol::{self, Entity, Keyword, Style, Verb};
use cli::submit::{Caller, Program};
use cli::users::Account;
use cli::zone::Clock;
use cli::{sbatch, scancel, sinfo, squeue};
use model::request::{JobFilter, JobsPage, NodeView};
use model::{Command, Job, JobSpec, NodeName, Phase, Reject, Reply};

use crate::stage::Stage;

#[derive(Default)]
struct Said {
    text: String,
    code: i32,
}

impl Said {
    fn failed(text: impl Into<String>) -> Said {
        Said { text: text.into(), code: 1 }
    }

    fn ok(text: impl Into<String>) -> Said {
        Said { text: text.into(), code: 0 }
    }

    fn lines(lines: &[String]) -> Said {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Said { code: i32::from(!lines.is_empty()), text }
    }
}

/// Everything the command prints; an exit code other than 0 stands in a last line.
pub fn type_in(stage: &mut Stage, line: &str) -> String {
    let words = words(line);
    let (program, arguments) = words.split_first().expect("a command");
    run(stage, program, arguments)
}

/// As `type_in`, with the words as they are.
pub fn run(stage: &mut Stage, program: &str, arguments: &[String]) -> String {
    let said = match program {
        "sbatch" => submit(stage, arguments),
        "squeue" => queue(stage, arguments),
        "sinfo" => info(stage, arguments),
        "scancel" => cancel(stage, arguments),
        "scontrol" => control(stage, arguments),
        other => panic!("scenarios do not know {other}"),
    };
    let mut text = said.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if said.code != 0 {
        text.push_str(&format!("[exit {}]\n", said.code));
    }
    text
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for sign in line.chars() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, sign) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    words
}

fn submit(stage: &mut Stage, arguments: &[String]) -> Said {
    let caller = Caller {
        uid: stage.user.uid,
        gid: stage.user.uid,
        account: Account { uid: stage.user.uid, name: stage.user.name.into(), ..Default::default() }.into(),
        work_dir: "/home".into(),
        host: "login".into(),
        umask: 0o022,
        now: stage.now,
        cluster_name: stage.cluster.config().cluster_name.clone(),
        ..Default::default()
    };
    let script =
        |_: &sbatch::Source| Ok(sbatch::Script { path: "/home/job.sh".into(), content: b"#!/bin/sh\n".into() });
    let submission = match sbatch::build(arguments, &caller, script) {
        Ok(sbatch::Built::Submission(submission)) => submission,
        Ok(sbatch::Built::Answer(text)) => return Said::ok(text),
        Err(problem) => return Said { text: problem.show(Program::Sbatch), code: problem.code },
    };
    // The controller knows its callers' names.
    let (user, group) = (stage.user.name.to_string(), stage.user.name.to_string());
    let own = |spec: &JobSpec| JobSpec { user: user.clone(), group: group.clone(), ..spec.clone() };
    let blobs = submission.blobs.clone();
    let command = match submission.more.is_empty() {
        true => Command::Submit { spec: Box::new(own(&submission.spec)), blobs },
        false => {
            let specs = std::iter::once(&submission.spec).chain(&submission.more).map(own).collect();
            Command::SubmitTogether { specs, blobs }
        }
    };
    match stage.command(stage.caller(), command) {
        Ok(Reply::Submitted(job)) => {
            let cluster_name = &stage.cluster.config().cluster_name;
            Said::ok(format!("{}{}", submission.talk, sbatch::announcement(job, &submission, cluster_name)))
        }
        Ok(other) => panic!("a submission is not answered with {other:?}"),
        Err(reject) => Said::failed(format!("sbatch: error: {}: {reject}\n", Program::Sbatch.refusal())),
    }
}

fn queue(stage: &mut Stage, arguments: &[String]) -> Said {
    let options = match squeue::parse(arguments, &|_| None) {
        Ok(squeue::Asked::Show(options)) => options,
        Ok(squeue::Asked::Print(text)) => return Said::ok(text),
        Err(refusal) => return Said::failed(refusal.stdout + &refusal.stderr),
    };
    let page = page(stage, &squeue::request(&options));
    shown(squeue::render(&options, &page, stage.cluster.config(), &clock(stage)))
}

fn info(stage: &mut Stage, arguments: &[String]) -> Said {
    let options = match sinfo::parse(arguments, &|_| None) {
        Ok(sinfo::Asked::Show(options)) => options,
        Ok(sinfo::Asked::Print(text)) => return Said::ok(text),
        Err(refusal) => return Said::failed(refusal.stdout + &refusal.stderr),
    };
    if options.reservations {
        let all: Vec<_> = stage.cluster.reservations().map(|one| (**one).clone()).collect();
        return Said::ok(sinfo::reservations::table(&all, &clock(stage), options.heading));
    }
    shown(sinfo::render(&options, &nodes(stage), stage.cluster.config(), &clock(stage)))
}

fn shown(shown: squeue::Shown) -> Said {
    let complaints: String = shown.complaints.iter().map(|line| format!("{line}\n")).collect();
    Said { text: shown.text + &complaints, code: i32::from(shown.failed) }
}

fn cancel(stage: &mut Stage, arguments: &[String]) -> Said {
    let plan = match scancel::build(arguments, |_| None, stage.user.uid, |_| None) {
        Ok(scancel::Built::Plan(plan)) => plan,
        Ok(scancel::Built::Answer(text)) => return Said::ok(text),
        Err(scancel::Mistake(text)) => return Said::failed(text),
    };
    let jobs = plan.targets.iter().map(|target| target.job.clone()).collect();
    let Ok(Reply::Each(results)) = stage.command(stage.caller(), Command::Cancel { jobs, hurry: false }) else {
        panic!("each job is answered for");
    };
    let refusals = results.iter().filter_map(|one| Some((&one.job, one.result.as_ref().err()?)));
    // A job that is over, or unknown, is no failure for someone who wants it gone.
    let matters = refusals.filter(|(_, reject)| !matches!(reject, Reject::NoSuchJob | Reject::AlreadyOver));
    let line = |(job, reject)| format!("scancel: error: Kill job error on job id {job}: {reject}");
    Said::lines(&matters.map(line).collect::<Vec<_>>())
}

fn control(stage: &mut Stage, arguments: &[String]) -> Said {
    let (word, rest) = arguments.split_first().expect("a keyword");
    match Keyword::parse(word) {
        Some(Keyword::Job(verb)) => change_jobs(stage, verb, rest),
        Some(Keyword::Update) => update(stage, rest),
        Some(Keyword::Create) => create(stage, rest),
        Some(Keyword::Delete) => match scontrol::create::delete(rest) {
            Ok(wishes) => carry_out(stage, &wishes),
            Err(lines) => Said::lines(&lines),
        },
        Some(Keyword::Show) => show(stage, rest),
        other => panic!("scenarios do not know scontrol {word} ({other:?})"),
    }
}

fn create(stage: &mut Stage, arguments: &[String]) -> Said {
    let clock = clock(stage);
    let now = scontrol::Now { unix_secs: stage.now.secs() as i64, zone: &clock };
    match scontrol::create::create(arguments, &now, 0) {
        Ok(wish) => carry_out(stage, &[wish]),
        Err(lines) => Said::lines(&lines),
    }
}

fn carry_out(stage: &mut Stage, wishes: &[scontrol::create::Wish]) -> Said {
    let mut said = Said::default();
    for wish in wishes {
        let answer = stage.command(stage.caller(), wish.command.clone());
        let reply = match &answer {
            Ok(reply) => wish.told(Ok(reply.clone())),
            Err(reject) => wish.told(Err(reject)),
        };
        said.text.push_str(&(reply.out + &reply.err));
        said.code = said.code.max(reply.code);
    }
    said
}

fn change_jobs(stage: &mut Stage, verb: Verb, arguments: &[String]) -> Said {
    let mut lines = Vec::new();
    for item in scontrol::items(arguments) {
        let command = cli::job_ids::parse_job(&item).and_then(|job| verb.command(job));
        match command.map(|command| stage.command(stage.caller(), command)) {
            Some(Ok(Reply::Each(results))) => lines.extend(scontrol::tell(verb, &item, &results)),
            Some(Ok(other)) => panic!("each job is answered for, not {other:?}"),
            Some(Err(reject)) => lines.extend(scontrol::refused(verb, &item, &reject)),
            None => lines.extend(scontrol::refused(verb, &item, &Reject::NoSuchJob)),
        }
    }
    Said::lines(&lines)
}

fn update(stage: &mut Stage, arguments: &[String]) -> Said {
    use scontrol::update::Update;
    let clock = clock(stage);
    let now = scontrol::Now { unix_secs: stage.now.secs() as i64, zone: &clock };
    let commands: Vec<(String, Command)> = match scontrol::update::parse(arguments, &now) {
        Err(lines) => return Said::lines(&lines),
        Ok(Update::Job { ids, changes }) => {
            let change = |(item, job)| Some((item, Command::UpdateJob { job: job?, changes: changes.clone() }));
            ids.into_iter().filter_map(change).collect()
        }
        Ok(Update::Loudness(level)) => panic!("scenarios have no log to make {}", level.word()),
        Ok(Update::Named { name, .. }) => panic!("scenarios change jobs by id, not by the name {name}"),
        Ok(Update::Nodes { nodes: names, changes }) => {
            let all = || stage.cluster.nodes().map(|node| node.name.clone()).collect();
            let names: Vec<NodeName> = names.map_or_else(all, |names| names.into_iter().map(NodeName::from).collect());
            let change = |change| (String::new(), Command::UpdateNodes { nodes: names.clone(), change });
            changes.into_iter().map(change).collect()
        }
        Ok(Update::Partition { name, changes }) => {
            vec![(String::new(), Command::UpdatePartition { name, changes: Box::new(changes) })]
        }
        Ok(Update::Reservation(scontrol::reservation::Said { name, fields })) => {
            let answer = stage.command(stage.caller(), Command::UpdateReservation { name, fields });
            return match answer {
                Ok(_) => Said::ok("Reservation updated.\n"),
                Err(reject) => Said::failed(format!("Error updating the reservation: {reject}")),
            };
        }
    };
    let mut lines = Vec::new();
    for (item, command) in commands {
        match stage.command(stage.caller(), command) {
            Ok(Reply::Each(results)) => lines.extend(scontrol::tell(Verb::Update, &item, &results)),
            Ok(_) => (),
            Err(reject) => lines.push(format!("slurm_update error: {reject}")),
        }
    }
    Said::lines(&lines)
}

fn show(stage: &mut Stage, arguments: &[String]) -> Said {
    let (what, id) = (arguments.first().expect("what to show"), arguments.get(1).map(String::as_str));
    let (config, clock, style) = (stage.cluster.config().clone(), clock(stage), Style::default());
    let reply = match Entity::parse(what) {
        Some(Entity::Job) => match scontrol::show::job_request(id) {
            Ok(filter) => scontrol::show::jobs(id, &page(stage, &filter), &config, &clock, style, None),
            Err(line) => return Said::failed(line),
        },
        Some(Entity::Node) => scontrol::show::nodes(id, &nodes(stage), &config, &clock, style, None),
        Some(Entity::Partition) => scontrol::show::partitions(id, &nodes(stage), &config, style, false, None),
        Some(Entity::Reservation) => {
            let all: Vec<_> = stage.cluster.reservations().map(|one| (**one).clone()).collect();
            scontrol::show_reservation::reservations(id, &all, &nodes(stage), &clock, style)
        }
        Some(Entity::Licenses) => scontrol::show_reservation::licenses(id, &stage.cluster.licenses(), style, None),
        other => panic!("scenarios do not know scontrol show {what} ({other:?})"),
    };
    Said { text: reply.out + &reply.err, code: reply.code }
}

fn clock(stage: &Stage) -> Clock {
    Clock::utc(stage.now)
}

fn nodes(stage: &Stage) -> Vec<NodeView> {
    stage.cluster.nodes().map(|node| stage.cluster.node_view(node)).collect()
}

/// As the controller answers.
fn page(stage: &Stage, filter: &JobFilter) -> JobsPage {
    let cluster = &stage.cluster;
    let passes = |job: &Job| {
        (filter.with_finished || job.phase != Phase::Done)
            && (filter.uids.is_empty() || filter.uids.contains(&job.spec.uid))
    };
    let mut page = JobsPage { now: stage.now, ..Default::default() };
    if filter.jobs.is_empty() {
        page.jobs = cluster.jobs().filter(|job| passes(job)).map(|job| (**job).clone()).collect();
        return page;
    }
    for named in &filter.jobs {
        match cluster.named(named) {
            None => page.unknown.push(named.job),
            Some(ids) => {
                let jobs = ids.iter().filter_map(|id| cluster.job(*id)).filter(|job| passes(job));
                page.jobs.extend(jobs.map(|job| (**job).clone()));
            }
        }
    }
    page
}
