//! `scontrol`: shows and changes what is in the cluster.
use std::io::{BufRead, IsTerminal, Write};

use model::Command;
use model::request::{JobFilter, SignalRequest, SignalScope};
use model::{NodeName, Reject, hostlist};
use tokio_stream::StreamExt;
use wire::{CallError, Controller};

use crate::context::block_on;
use crate::getopt::{Flag, Operands, Value, flag, parse as read_options};
use crate::json::{Shape, Wish};
use crate::output::print;
use crate::trouble::{self, Trouble, connect};
use crate::version;
use crate::zone::Clock;

mod config_names;
pub mod create;
mod error_texts;
mod help;
mod hosts;
mod jobs;
mod keyword;
mod listpids;
mod members;
mod pidinfo;
mod reboot;
mod record;
pub mod reservation;
mod resized;
mod script;
pub mod show;
mod show_assoc_mgr;
mod show_burst;
mod show_config;
mod show_job;
mod show_node;
pub mod show_reservation;
mod show_slurmd;
mod show_topology;
mod shutdown;
mod token;
pub mod update;
mod update_job;
mod write_config;

pub use help::HELP;
pub use jobs::{Verb, items, refused, tell};
pub use keyword::{Entity, Keyword};
pub use record::Style;
pub use update_job::Now;

pub const FLAGS: &[Flag] = &[
    flag("all", Some('a'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("details", Some('d'), Value::None),
    flag("federation", None, Value::None),
    flag("future", Some('F'), Value::None),
    flag("help", Some('h'), Value::None),
    flag("hide", None, Value::None),
    flag("json", None, Value::Optional),
    flag("local", None, Value::None),
    flag("oneliner", Some('o'), Value::None),
    flag("quiet", Some('Q'), Value::None),
    flag("sibling", None, Value::None),
    flag("uid", Some('u'), Value::Required),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("yaml", None, Value::Optional),
];

/// What holds for the commands that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mode {
    style: Style,
    all: bool,
    quiet: bool,
    verbose: bool,
    json: bool,
    /// Whose shape the document has.
    shape: Shape,
    /// As `json`, in the other notation.
    yaml: bool,
}

impl Mode {
    /// The shape of the document, if one is wanted.
    fn document(&self) -> Option<Shape> {
        self.json.then_some(self.shape)
    }
}

/// What a command prints, and its exit code.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Reply {
    pub fn text(out: String) -> Self {
        Reply { out, ..Reply::default() }
    }

    pub fn failed(line: &str) -> Self {
        Reply { err: format!("{line}\n"), code: 1, ..Reply::default() }
    }

    pub fn failed_lines(lines: &[String]) -> Self {
        Reply { err: lines.iter().map(|line| format!("{line}\n")).collect(), code: 1, ..Reply::default() }
    }
}

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match read_options(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("scontrol: {problem}\nTry \"scontrol --help\" for more information");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(help::HELP);
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    for refused in ["uid", "future"] {
        if parsed.has(refused) {
            eprintln!("scontrol: error: --{refused} is not supported");
            return 1;
        }
    }
    if let Some(cluster) = parsed.value("clusters")
        && !crate::context::cluster().is_ok_and(|own| own.cluster_name == cluster)
    {
        eprintln!("scontrol: error: '{cluster}' can't be reached now, or it is an invalid entry for --cluster.");
        return 1;
    }
    let shape = match crate::json::wish(&parsed) {
        Ok(Wish::Document(shape)) => shape,
        Ok(Wish::List) => {
            print(&crate::json::shape::list());
            return 0;
        }
        Err(why) => {
            eprintln!("scontrol: fatal: {why}");
            return 1;
        }
    };
    let mut mode = Mode {
        shape,
        style: Style { one_line: parsed.has("oneliner"), details: parsed.has("details") },
        all: parsed.has("all") && !parsed.has("hide"),
        quiet: parsed.has("quiet"),
        verbose: parsed.has("verbose"),
        json: parsed.has("json") || parsed.has("yaml"),
        yaml: parsed.has("yaml"),
    };
    if parsed.operands.is_empty() {
        return converse(&mut mode);
    }
    execute(&parsed.operands, &mut mode).unwrap_or(0)
}

/// Reads commands until `quit` or the end of input; the exit code is that of the worst.
fn converse(mode: &mut Mode) -> i32 {
    let mut worst = 0;
    let mut last: Vec<String> = Vec::new();
    let is_terminal = std::io::stdin().is_terminal();
    let prompt = |line: &str| print(&format!("scontrol: {line}"));
    if is_terminal {
        prompt("");
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !is_terminal {
            prompt(&format!("{line}\n"));
        }
        let words = words(&line);
        // `!!` is the same once more.
        if words != ["!!"] {
            last = words;
        }
        if !last.is_empty() {
            match execute(&last, mode) {
                Some(code) => worst = worst.max(code),
                None => break,
            }
        }
        if is_terminal {
            prompt("");
        }
    }
    worst
}

/// Splits at blanks that stand outside quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for sign in line.chars() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (None, '"' | '\'') => quote = Some(sign),
            (None, sign) if sign.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, sign) => word.push(sign),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Carries out one command; none is the wish to stop.
fn execute(words: &[String], mode: &mut Mode) -> Option<i32> {
    let (first, rest) = words.split_first()?;
    let keyword = Keyword::parse(first);
    if keyword == Some(Keyword::Quit) {
        return None;
    }
    let reply = match keyword {
        None => Reply::failed(&format!("invalid keyword: {first}")),
        Some(keyword) => obey(keyword, first, rest, mode),
    };
    print(&reply.out);
    if !mode.quiet {
        let _ = std::io::stderr().lock().write_all(reply.err.as_bytes());
    }
    Some(reply.code)
}

fn obey(keyword: Keyword, word: &str, rest: &[String], mode: &mut Mode) -> Reply {
    let too_few = || Reply::failed(&format!("too few arguments for keyword:{word}"));
    match keyword {
        Keyword::Quit => Reply::default(),
        Keyword::Help => Reply::text(help::HELP.into()),
        Keyword::Version => Reply::text(version::line()),
        Keyword::All => switch(|| mode.all = true),
        Keyword::Hide => switch(|| mode.all = false),
        Keyword::Details => switch(|| mode.style.details = true),
        Keyword::OneLiner => switch(|| mode.style.one_line = true),
        Keyword::Quiet => switch(|| mode.quiet = true),
        Keyword::Verbose => switch(|| (mode.quiet, mode.verbose) = (false, true)),
        Keyword::Ping => ping(),
        Keyword::Takeover => members::takeover(rest),
        Keyword::Reconfigure => reconfigure(),
        Keyword::Show if rest.is_empty() => too_few(),
        Keyword::Show if mode.yaml => in_yaml(show_any(word, rest, *mode)),
        Keyword::Show => show_any(word, rest, *mode),
        Keyword::Job(_) if rest.is_empty() => too_few(),
        Keyword::Job(verb) => job_command(verb, rest),
        Keyword::Update => update_any(rest),
        Keyword::Create => create_any(rest),
        Keyword::Completing => completing(),
        Keyword::WaitJob => wait_job(rest),
        Keyword::ErrorText => error_text(rest),
        Keyword::Delete => delete_any(rest),
        Keyword::Write => script::write(rest),
        Keyword::Notify => notify(rest),
        Keyword::ListPids => listpids::list(rest),
        Keyword::Shutdown => shutdown::shutdown(rest),
        Keyword::PidInfo => pidinfo::tell(rest),
        Keyword::Token => token::print(rest),
        Keyword::Reboot => reboot::reboot(rest),
        Keyword::CancelReboot => reboot::cancel(rest),
        Keyword::Unsupported(name) => {
            Reply::failed(&format!("scontrol: error: {name} is not supported; see docs/compat.md"))
        }
    }
}

/// `delete burstbuffer=JOB|NAME`: forgets a buffer that cannot be reached.
/// A burst buffer of its own, by the job's id or its name.
fn delete_buffer(rest: &[String]) -> Option<Reply> {
    let words: Vec<&str> = rest.iter().flat_map(|word| word.split('=')).filter(|word| !word.is_empty()).collect();
    let (name, is_right) = match &words[..] {
        [entity, name] | [entity, name, "force"] => (*name, Entity::parse(entity) == Some(Entity::BurstBuffer)),
        _ => ("", false),
    };
    if !is_right {
        return None;
    }
    let buffer = match name.parse() {
        Ok(job) => model::Owner::Buffer(job),
        Err(_) => model::Owner::Persistent(name.to_owned()),
    };
    Some(asking("slurm_delete_burst_buffer error", async |controller, _| {
        controller.command(Command::DropBuffer { buffer: buffer.clone() }).await?;
        Ok(Reply::default())
    }))
}

fn switch(change: impl FnOnce()) -> Reply {
    change();
    Reply::default()
}

/// Asks the controller; trouble on the way becomes the reply.
fn asking(what: &str, ask: impl AsyncFnOnce(&mut Controller, &config::Client) -> Result<Reply, CallError>) -> Reply {
    let outcome = block_on(async {
        let (cluster, mut controller) = connect().await?;
        Ok::<Reply, Trouble>(ask(&mut controller, &cluster).await?)
    });
    match outcome {
        Ok(reply) => reply,
        Err(Trouble::NoCluster(text)) => Reply::failed(&format!("scontrol: error: {text}")),
        Err(Trouble::Call(text)) => Reply::failed(&format!("{what}: {}", worded(&text))),
    }
}

/// What only administrators may do, Slurm refuses in other words than what concerns jobs.
fn worded(text: &str) -> &str {
    if text == Reject::NotPermitted.to_string() { "Invalid user id" } else { text }
}

fn ping() -> Reply {
    let outcome = block_on(async {
        let (_, mut controller) = connect().await?;
        let answer = controller.ping().await?;
        let members = controller.members().await?;
        Ok::<_, Trouble>((answer, members))
    });
    match outcome {
        Ok((_, members)) if members.members.len() > 1 => Reply::text(members::ping(&members)),
        Ok((answer, _)) => Reply::text(format!("Slurmctld({}) at {} is UP\n", answer.mode, answer.host)),
        Err(Trouble::NoCluster(text)) => Reply::failed(&format!("scontrol: error: {text}")),
        Err(Trouble::Call(_)) => {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let stars = "*".repeat(41);
            let out = format!(
                "Slurmctld(primary) at {host} is DOWN\n{stars}\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n{stars}\n"
            );
            Reply { code: 1, ..Reply::text(out) }
        }
    }
}

/// Words for a job's own output.
fn notify(rest: &[String]) -> Reply {
    let [id, words @ ..] = rest else { return Reply::failed("too few arguments for keyword:notify") };
    if words.is_empty() {
        return Reply::failed("too few arguments for keyword:notify");
    }
    let failed = |why: &str| Reply::failed(&format!("job notify failure: {why}"));
    let Some(job) = crate::job_ids::parse_job(id) else { return failed(&Reject::NoSuchJob.to_string()) };
    let request =
        SignalRequest { jobs: vec![job], signal: 0, scope: SignalScope::Everything, message: words.join(" ") };
    asking("job notify failure", async |controller, _| {
        let results = controller.signal(&request).await?;
        let refused = results.iter().find_map(|one| one.result.as_ref().err());
        Ok(refused.map_or(Reply::default(), |reject| failed(&reject.to_string())))
    })
}

fn reconfigure() -> Reply {
    asking("slurm_reconfigure error", async |controller, _| {
        controller.reconfigure().await?;
        Ok(Reply::default())
    })
}

fn job_command(verb: Verb, rest: &[String]) -> Reply {
    let may_say_how = matches!(verb, Verb::Requeue | Verb::RequeueHold);
    let (how, rest): (Vec<&String>, Vec<&String>) = rest.iter().partition(|word| {
        may_say_how && (word.eq_ignore_ascii_case("incomplete") || word.to_ascii_lowercase().starts_with("state="))
    });
    let rest: Vec<String> = rest.into_iter().cloned().collect();
    let mut manner = jobs::Manner::default();
    for word in how {
        match word.split_once('=').map(|(_, state)| state.to_ascii_lowercase()) {
            None => manner.only_incomplete = true,
            Some(state) if state == "specialexit" || state == "se" => manner.is_special = true,
            Some(_) => return Reply::failed(&format!("Use only 'SpecialExit' or 'SE' keywords to {word}")),
        }
    }
    asking("scontrol: error", async |controller, _| {
        let mut lines = Vec::new();
        let mut items = jobs::items(&rest);
        // Each goes before all others, so the first that is named goes last.
        if verb == Verb::Top {
            items.reverse();
        }
        for item in items {
            lines.extend(match may_say_how && manner != jobs::Manner::default() {
                true => jobs::requeue(controller, verb, &item, manner).await?,
                false => jobs::act(controller, verb, &item).await?,
            });
        }
        Ok(if lines.is_empty() { Reply::default() } else { Reply::failed_lines(&lines) })
    })
}

/// `Nodes=switch{rack1}` as the nodes it means; whatever names no unit stays as it is.
fn without_units(words: &[String]) -> Result<Vec<String>, Reply> {
    let list_of = |word: &String| -> Option<(String, String)> {
        let (key, value) = word.split_once('=')?;
        let is_list = update_job::is_short_for(key.trim_end_matches(['+', '-']), "Nodes", 3);
        (is_list && value.contains('{')).then(|| (key.to_string(), value.to_string()))
    };
    if !words.iter().any(|word| list_of(word).is_some()) {
        return Ok(words.to_vec());
    }
    let mut resolved = Vec::new();
    let reply = asking("slurm_update error", async |controller, _| {
        let config = controller.configuration().await?.config;
        let network = crate::network::of(&config, &controller.nodes().await?);
        for word in words {
            let Some((key, list)) = list_of(word) else {
                resolved.push(word.clone());
                continue;
            };
            let (sign, list) = list.split_at(list.len() - list.trim_start_matches(['+', '-']).len());
            match network.expand(list) {
                Ok(names) => resolved.push(format!("{key}={sign}{}", hostlist::compress(names))),
                Err(_) => return Ok(Reply::failed("slurm_update error: Invalid node name specified")),
            }
        }
        Ok(Reply::default())
    });
    if reply.code == 0 { Ok(resolved) } else { Err(reply) }
}

fn update_any(rest: &[String]) -> Reply {
    let rest = &match without_units(rest) {
        Ok(words) => words,
        Err(reply) => return reply,
    };
    let clock = now();
    let moment = update_job::Now { unix_secs: clock.now().secs() as i64, zone: &clock };
    let update = match update::parse(rest, &moment) {
        Ok(update) => update,
        Err(lines) => return Reply::failed_lines(&lines),
    };
    asking("slurm_update error", async |controller, _| match update {
        update::Update::Job { ids, changes } => update_jobs(controller, ids, changes).await,
        update::Update::Named { name, uid, changes } => {
            let page =
                controller.all_jobs(&JobFilter { uids: uid.into_iter().collect(), ..JobFilter::default() }).await?;
            let is_it = |job: &&model::Job| job.spec.name == name && !job.is_over();
            let ids: Vec<_> =
                page.jobs.iter().filter(is_it).map(|job| (job.id.to_string(), Some(job.id.into()))).collect();
            match (ids.is_empty(), uid) {
                (true, Some(uid)) => Ok(Reply::failed(&format!("No jobs with user ID {uid} and name '{name}'"))),
                (true, None) => Ok(Reply::failed(&format!("No jobs with name '{name}'"))),
                (false, _) => update_jobs(controller, ids, changes).await,
            }
        }
        update::Update::Nodes { nodes, changes } => {
            let nodes: Vec<NodeName> = match nodes {
                Some(names) if names.iter().any(|name| name.contains('{')) => {
                    let config = controller.configuration().await?.config;
                    let network = crate::network::of(&config, &controller.nodes().await?);
                    match network.expand(&names.join(",")) {
                        Ok(names) => names.into_iter().map(NodeName::from).collect(),
                        Err(_) => return Ok(Reply::failed("slurm_update error: Invalid node name specified")),
                    }
                }
                Some(names) => names.into_iter().map(NodeName::from).collect(),
                None => controller.nodes().await?.into_iter().map(|view| view.node.name).collect(),
            };
            for change in changes {
                controller.command(Command::UpdateNodes { nodes: nodes.clone(), change }).await?;
            }
            Ok(Reply::default())
        }
        update::Update::Partition { name, changes } => {
            controller.command(Command::UpdatePartition { name, changes: Box::new(changes) }).await?;
            Ok(Reply::default())
        }
        update::Update::Reservation(reservation::Said { name, fields }) => {
            match controller.command(Command::UpdateReservation { name, fields }).await {
                Ok(_) => Ok(Reply::text("Reservation updated.\n".into())),
                Err(error) => Ok(Reply::failed(&format!("Error updating the reservation: {}", trouble::text(&error)))),
            }
        }
    })
}

async fn update_jobs(
    controller: &mut Controller,
    ids: Vec<(String, Option<model::JobRef>)>,
    changes: Box<model::update::JobChanges>,
) -> Result<Reply, CallError> {
    let mut lines = Vec::new();
    let mut told = String::new();
    let is_about_size = changes.min_nodes.is_some() || changes.nodes.is_some();
    for (item, job) in ids {
        let Some(job) = job else {
            lines.extend(jobs::refused(Verb::Update, &item, &Reject::NoSuchJob));
            continue;
        };
        match controller.command_each(Command::UpdateJob { job: job.clone(), changes: changes.clone() }).await {
            Ok(results) => {
                let refused = jobs::tell(Verb::Update, &item, &results);
                if is_about_size && refused.is_empty() {
                    told.push_str(&shrunk(controller, job).await?);
                }
                lines.extend(refused);
            }
            Err(CallError::Refused(reject)) => lines.extend(jobs::refused(Verb::Update, &item, &reject)),
            Err(other) => lines.extend(jobs::unanswered(&item, &other)),
        }
    }
    let reply = if lines.is_empty() { Reply::default() } else { Reply::failed_lines(&lines) };
    Ok(Reply { out: told, ..reply })
}

/// What to tell of a running job that has another size now.
async fn shrunk(controller: &mut Controller, job: model::JobRef) -> Result<String, CallError> {
    let page = controller.all_jobs(&JobFilter { jobs: vec![job], ..JobFilter::default() }).await?;
    let running = page.jobs.iter().find(|job| job.holds_nodes());
    Ok(running.map_or(String::new(), |job| match resized::write(job) {
        Ok(told) => told,
        Err(why) => format!("scontrol: error: {why}\n"),
    }))
}

/// What was asked for as JSON, in the other notation.
fn in_yaml(reply: Reply) -> Reply {
    Reply { out: if reply.out.is_empty() { String::new() } else { crate::json::yaml(&reply.out) }, ..reply }
}

/// `scontrol errnumstr`
fn error_text(rest: &[String]) -> Reply {
    match rest {
        [] => Reply::failed("one arguments required for keyword:errnumstr"),
        [number] => match number.parse() {
            Ok(number) => Reply::text(format!("{}\n", error_texts::text(number))),
            Err(_) => Reply::failed("numeric arguments required for keyword:errnumstr"),
        },
        _ => Reply::failed("too many arguments for keyword:errnumstr"),
    }
}

/// Jobs whose nodes are being cleared.
fn completing() -> Reply {
    asking("slurm_load_jobs error", async |controller, _| {
        let page = controller.all_jobs(&JobFilter::default()).await?;
        let ending = page.jobs.iter().filter(|job| job.phase == model::Phase::Ending);
        let line = |job: &model::Job| {
            let clock = now();
            let ended = clock.show_or(job.ended, "Unknown");
            let nodes = hostlist::compress(job.allocation.names());
            format!(
                "JobId={} EndTime={ended} CompletingTime={} Nodes(COMPLETING)={nodes}\n",
                job.id,
                completing_time(job, &clock)
            )
        };
        Ok(Reply::text(ending.map(line).collect()))
    })
}

fn completing_time(job: &model::Job, clock: &Clock) -> String {
    let since = job.ended.map_or(0, |ended| (clock.now() - ended).secs());
    model::duration::show(since)
}

/// Returns when the job's nodes are ready: as soon as it runs. Its exit code is 0 unless the job has ended.
fn wait_job(rest: &[String]) -> Reply {
    let Some(id) = rest.first() else { return Reply::failed("too few arguments for keyword:wait_job") };
    let Some(job) = crate::job_ids::parse_job(id) else { return Reply::failed("Invalid job_id") };
    let filter = JobFilter { jobs: vec![job], with_finished: true, ..JobFilter::default() };
    asking("slurm_job_node_ready error", async |controller, _| {
        let mut pages = std::pin::pin!(controller.watch_jobs(&filter).await?);
        while let Some(page) = pages.next().await {
            let page = page?;
            let Some(job) = page.jobs.first() else {
                return Ok(Reply::failed(&format!("Invalid job_id {id}")));
            };
            match job.phase {
                model::Phase::Pending | model::Phase::Starting => (),
                model::Phase::Running | model::Phase::Suspended => {
                    return Ok(Reply { err: format!("Job {id} is ready for use\n"), ..Reply::default() });
                }
                model::Phase::Ending | model::Phase::Finishing | model::Phase::Done => {
                    return Ok(Reply::failed(&format!("Job {id} is no longer running")));
                }
            }
        }
        Ok(Reply::failed("the controller went away"))
    })
}

fn create_any(rest: &[String]) -> Reply {
    let rest = &match without_units(rest) {
        Ok(words) => words,
        Err(reply) => return reply,
    };
    let clock = now();
    let unix_secs = clock.now().secs() as i64;
    let moment = update_job::Now { unix_secs, zone: &clock };
    match create::create(rest, &moment, reservation::utc_offset_secs(&clock, unix_secs)) {
        Ok(wish) => carry_out(&[wish]),
        Err(lines) => Reply::failed_lines(&lines),
    }
}

fn delete_any(rest: &[String]) -> Reply {
    if let Some(reply) = delete_buffer(rest) {
        return reply;
    }
    match create::delete(rest) {
        Ok(wishes) => carry_out(&wishes),
        Err(lines) => Reply::failed_lines(&lines),
    }
}

fn carry_out(wishes: &[create::Wish]) -> Reply {
    asking("slurm_update error", async |controller, _| {
        let mut all = Reply::default();
        for wish in wishes {
            let reply = match controller.command(wish.command.clone()).await {
                Ok(reply) => wish.told(Ok(reply)),
                Err(CallError::Refused(reject)) => wish.told(Err(&reject)),
                Err(other) => return Err(other),
            };
            all.out.push_str(&reply.out);
            all.err.push_str(&reply.err);
            all.code = all.code.max(reply.code);
        }
        Ok(all)
    })
}

/// This machine's clock: for relative times in arguments.
fn now() -> Clock {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let format = std::env::var("SLURM_TIME_FORMAT").ok().filter(|format| !format.is_empty());
    Clock::local(format.as_deref(), model::Timestamp(since.as_micros() as u64))
}

fn show_any(word: &str, rest: &[String], mode: Mode) -> Reply {
    let (entity, glued) = match rest[0].split_once('=') {
        Some((entity, id)) => (entity, Some(id.to_string())),
        None => (rest[0].as_str(), None),
    };
    let Some(entity) = Entity::parse(entity) else {
        return Reply::failed(&format!("invalid entity:{entity} for keyword:{word} "));
    };
    if let Entity::BurstStatus = entity {
        let words = rest[1..].to_vec();
        return asking("slurm_load_burst_buffer_stat error", async |controller, _| {
            let page = controller.burst().await?;
            if page.config.as_ref().is_some_and(|config| config.plugin.is_external()) {
                return Ok(Reply::text(controller.burst_status(words.clone()).await?));
            }
            Ok(match show_burst::status(&page, &words) {
                Ok(text) => Reply::text(text),
                Err(why) => Reply::failed(&format!("scontrol: error: {why}")),
            })
        });
    }
    if entity == Entity::Associations {
        let words: Vec<String> = glued.into_iter().chain(rest[1..].iter().cloned()).collect();
        return asking("slurm_load_assoc_mgr_info error", async |controller, _| {
            let accounts = controller.accounts().await?;
            let standing = controller.standing().await?;
            let cluster = controller.configuration().await?.config.cluster_name;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Ok(show_assoc_mgr::show(&words, &accounts, &standing, &cluster, mode.style))
        });
    }
    if matches!(entity, Entity::Topology | Entity::Topoconf) {
        return show_network(entity, &rest[1..], glued);
    }
    if rest.len() > 2 || rest.len() == 2 && glued.is_some() {
        return Reply::failed(&format!("too many arguments for keyword:{word}"));
    }
    let id = glued.or_else(|| rest.get(1).cloned());
    let id = id.as_deref();
    if mode.json && !matches!(entity, Entity::Job | Entity::Node | Entity::Partition | Entity::BurstBuffer) {
        return Reply::failed(&format!("scontrol: error: --json is not supported for show {}", rest[0]));
    }
    match entity {
        Entity::HostNames | Entity::HostList | Entity::HostListSorted => hosts(entity, id),
        Entity::Job => show_jobs(id, mode),
        Entity::Step => asking("slurm_get_job_steps error", async |controller, _| {
            let jobs = id.and_then(show::job_of_step).into_iter().collect();
            let filter = JobFilter { jobs, with_steps: true, with_finished: true, ..JobFilter::default() };
            let config = controller.configuration().await?.config;
            let page = controller.all_jobs(&filter).await?;
            let clock = now().at(page.now);
            let mut reply = show::steps(id, &page, &config, &clock, mode.style);
            preface(&mut reply, mode, &clock, page.steps.len());
            Ok(reply)
        }),
        Entity::Node => asking("slurm_load_node error", async |controller, _| {
            let configuration = controller.configuration().await?;
            let nodes = controller.nodes().await?;
            let clock = now().at(configuration.now);
            let mut reply = show::nodes(id, &nodes, &configuration.config, &clock, mode.style, mode.document());
            preface(&mut reply, mode, &clock, nodes.len());
            Ok(reply)
        }),
        Entity::Partition => asking("slurm_load_partitions error", async |controller, _| {
            let config = controller.configuration().await?.config;
            let nodes = controller.nodes().await?;
            let mut reply = show::partitions(id, &nodes, &config, mode.style, mode.all, mode.document());
            preface(&mut reply, mode, &now(), config.partitions.len());
            Ok(reply)
        }),
        Entity::Config => show_config_reply(),
        Entity::Aliases => asking("slurm_load_node error", async |controller, _| {
            let nodes = controller.nodes().await?;
            let fits = |view: &&model::request::NodeView| {
                id.is_none_or(|id| id == view.node.machine.hostname || id == view.node.name.as_str())
            };
            let names: Vec<&str> = nodes.iter().filter(fits).map(|view| view.node.name.as_str()).collect();
            Ok(Reply::text(if names.is_empty() { String::new() } else { names.join(" ") + "\n" }))
        }),
        Entity::Slurmd => show_slurmd::show(id),
        Entity::Daemons => Reply::text("slurmctld slurmd\n".into()),
        Entity::Reservation => asking("slurm_load_reservations error", async |controller, _| {
            let reservations = controller.reservations().await?;
            // Nodes may be private; then only their names are shown.
            let nodes = controller.nodes().await.unwrap_or_default();
            let clock = now();
            Ok(show_reservation::reservations(id, &reservations, &nodes, &clock, mode.style))
        }),
        Entity::Licenses => asking("slurm_load_licenses error", async |controller, _| {
            Ok(show_reservation::licenses(id, &controller.licenses().await?, mode.style))
        }),
        Entity::Associations | Entity::Topology | Entity::Topoconf => unreachable!("told apart before"),
        Entity::BurstBuffer => asking("slurm_load_burst_buffer error", async |controller, _| {
            let page = controller.burst().await?;
            if mode.json {
                return Ok(Reply::text(show_burst::json(&page)));
            }
            Ok(Reply::text(show_burst::text(&page, &now(), mode.style, mode.verbose)))
        }),
        Entity::BurstStatus | Entity::Federation => Reply::default(),
        Entity::Unsupported(name) => {
            Reply::failed(&format!("scontrol: error: show {name} is not supported; see docs/compat.md"))
        }
    }
}

/// What `-v` puts before records.
fn preface(reply: &mut Reply, mode: Mode, clock: &Clock, n_records: usize) {
    if mode.verbose && !mode.json {
        let line = format!("last_update_time={}, records={n_records}\n", clock.show(clock.now()));
        reply.out.insert_str(0, &line);
    }
}

fn show_network(entity: Entity, words: &[String], glued: Option<String>) -> Reply {
    let words: Vec<String> = glued.into_iter().chain(words.iter().cloned()).collect();
    let width = std::env::var("SLURM_TOPO_LEN").ok().and_then(|width| width.parse().ok()).filter(|width| *width > 0);
    asking("slurm_load_topo error", async |controller, _| {
        let config = controller.configuration().await?.config;
        let nodes = controller.nodes().await?;
        Ok(match entity {
            Entity::Topoconf => show_topology::topoconf(&config, &nodes),
            _ => show_topology::reply(&words, &config, &nodes, width),
        })
    })
}

fn show_jobs(id: Option<&str>, mode: Mode) -> Reply {
    let filter = match show::job_request(id) {
        Ok(filter) => filter,
        Err(line) => return Reply::failed(&line),
    };
    asking("slurm_load_jobs error", async |controller, _| {
        let config = controller.configuration().await?.config;
        let page = controller.all_jobs(&filter).await?;
        let clock = now().at(page.now);
        let mut reply = show::jobs(id, &page, &config, &clock, mode.style, mode.document());
        preface(&mut reply, mode, &clock, page.jobs.len());
        Ok(reply)
    })
}

fn show_config_reply() -> Reply {
    asking("slurm_load_ctl_conf error", async |controller, cluster| {
        let configuration = controller.configuration().await?;
        let clock = now().at(configuration.now);
        let file = cluster.file.display().to_string();
        let around = show_config::Around { file: &file, owner: owner(&configuration), clock: &clock };
        let mut out = show_config::text(&configuration, &around);
        let answer = controller.ping().await?;
        out.push_str(&format!("Slurmctld({}) at {} is UP\n", answer.mode, answer.host));
        Ok(Reply::text(out))
    })
}

/// `root(0)`: whom the cluster obeys. The file names them, or it is who started the controller.
pub fn owner(configuration: &wire::client::Configuration) -> String {
    let named = configuration.config.controller.admins.first().cloned();
    let socket = std::fs::metadata(&configuration.config.controller.socket);
    let uid = match &named {
        Some(name) => crate::users::uid_of(name).or_else(|| name.parse().ok()),
        None => socket.ok().map(|socket| std::os::unix::fs::MetadataExt::uid(&socket)),
    };
    let uid = uid.unwrap_or(0);
    format!("{}({uid})", named.unwrap_or_else(|| crate::users::Names::default().user(uid)))
}

fn hosts(entity: Entity, id: Option<&str>) -> Reply {
    let own = || ["SLURM_NODELIST", "SLURM_JOB_NODELIST"].iter().find_map(|name| std::env::var(name).ok());
    let answer = match (entity, id) {
        (Entity::HostNames, Some(list)) => hosts::names(list),
        (Entity::HostNames, None) => match own() {
            Some(list) => hosts::names(&list),
            None => Err("scontrol: error: host list is empty".into()),
        },
        (_, None) => return Reply { out: help::HELP.into(), ..Reply::failed("invalid encode argument") },
        (Entity::HostListSorted, Some(text)) => hosts::list_sorted(text),
        (_, Some(text)) => hosts::list(text),
    };
    match answer {
        Ok(text) => Reply::text(text),
        // Slurm complains, but does not fail.
        Err(line) => Reply { code: 0, ..Reply::failed(&line) },
    }
}

/// The text of an error, for commands that word it themselves.
fn text_of(error: &CallError) -> String {
    worded(&trouble::text(error)).to_string()
}

#[cfg(test)]
mod tests;
