//! `scontrol`: shows and changes what is in the cluster.
use std::io::{BufRead, IsTerminal};

use model::Command;
use model::request::{JobFilter, SignalRequest, SignalScope};
use model::{Reject, hostlist};
use wire::{CallError, Controller};

use self::members::Pinged;
use crate::context::{self, block_on};
use crate::getopt::{Flag, Operands, Value, flag, parse as read_options};
use crate::json::Shape;
use crate::output::print;
use crate::trouble::{self, Trouble, connect};
use crate::version;
use crate::zone::Clock;

mod bbstat;
mod config_names;
pub mod create;
mod dampening;
mod help;
mod hosts;
mod jobs;
mod keyword;
mod listpids;
mod loudness;
mod members;
mod next;
mod pidinfo;
mod reboot;
mod record;
pub mod reservation;
pub mod reserved;
mod resized;
mod script;
pub mod show;
mod show_any;
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
mod update_any;
mod update_job;
mod write_config;

pub use help::HELP;
pub use jobs::{Verb, items, refused, tell};
pub use keyword::{Entity, Keyword};
pub use next::next;
pub use record::Style;
pub use show_node::job_defaults;
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
    shape: Option<Shape>,
    /// As `json`, in the other notation.
    yaml: bool,
}

impl Mode {
    /// The shape of the document, if one is wanted.
    fn document(&self, config: &model::Config) -> Option<Shape> {
        self.json.then(|| crate::json::settled(self.shape, config))
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
    // What follows `setdebugflags` may begin with a minus.
    let is_last = |word: &String| Keyword::parse(word) == Some(Keyword::SetDebugFlags);
    let (arguments, flags) = match arguments.iter().position(is_last) {
        Some(at) => arguments.split_at(at),
        None => (arguments, &[][..]),
    };
    let parsed = match read_options(FLAGS, Operands::Mixed, arguments) {
        Ok(mut parsed) => {
            parsed.operands.extend_from_slice(flags);
            parsed
        }
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
    if parsed.has("uid") {
        eprintln!("scontrol: error: --uid is not supported");
        return 1;
    }
    if let Some(cluster) = parsed.value("clusters")
        && !crate::context::cluster().is_ok_and(|own| own.cluster_name == cluster)
    {
        eprintln!("scontrol: error: '{cluster}' can't be reached now, or it is an invalid entry for --cluster.");
        return 1;
    }
    let shape = match crate::json::begin("scontrol", &parsed) {
        Ok(shape) => shape,
        Err(code) => return code,
    };
    let mut mode = Mode {
        shape,
        style: Style { one_line: parsed.has("oneliner"), details: parsed.has("details") },
        all: (parsed.has("all") || std::env::var_os("SCONTROL_ALL").is_some()) && !parsed.has("hide"),
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
                None => return worst,
            }
        }
        if is_terminal {
            prompt("");
        }
    }
    // The end of the input was waited for too.
    if !is_terminal {
        prompt("\n");
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
        eprint!("{}", reply.err);
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
        Keyword::Ping => ping(*mode),
        Keyword::Takeover => members::takeover(rest),
        Keyword::Reconfigure => reconfigure(),
        Keyword::Show if rest.is_empty() => too_few(),
        Keyword::Show if mode.yaml => in_yaml(show_any::show_any(word, rest, *mode)),
        Keyword::Show => show_any::show_any(word, rest, *mode),
        Keyword::Job(_) if rest.is_empty() => too_few(),
        Keyword::Job(verb) => job_command(verb, rest),
        Keyword::Update => update_any::update_any(rest),
        Keyword::Create => create_any(rest),
        Keyword::Completing => completing(),
        Keyword::WaitJob => wait_job(rest),
        Keyword::ErrorText => error_text(rest),
        Keyword::Delete => delete_any(rest),
        Keyword::Write => script::write(rest),
        Keyword::Notify => notify(rest),
        Keyword::ListPids => listpids::list(rest),
        Keyword::ListJobs => listpids::jobs(rest),
        Keyword::ListSteps => listpids::steps(rest),
        Keyword::SetDebug => loudness::level(rest),
        Keyword::SetDebugFlags => loudness::flags(rest),
        Keyword::SchedLogLevel => loudness::scheduler(rest),
        Keyword::Dampening => dampening::set(word, rest),
        Keyword::Shutdown => shutdown::shutdown(rest),
        Keyword::Abort => shutdown::abort(),
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
    told(
        what,
        block_on(async {
            let (cluster, mut controller) = connect().await?;
            Ok(ask(&mut controller, &cluster).await?)
        }),
    )
}

/// As [`asking`], where the controller is all that is waited for.
fn only_asking(what: &str, ask: impl AsyncFnOnce(&mut Controller) -> Result<Reply, CallError>) -> Reply {
    let asked = context::ask(async {
        let (_, mut controller) = connect().await?;
        Ok(ask(&mut controller).await?)
    });
    told(what, asked)
}

fn told(what: &str, outcome: Result<Reply, Trouble>) -> Reply {
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

fn ping(mode: Mode) -> Reply {
    let begun = std::time::Instant::now();
    let outcome = block_on(async {
        let (_, mut controller) = connect().await?;
        let answer = controller.ping().await?;
        let micros = begun.elapsed().as_micros() as u64;
        let members = controller.members().await?;
        let pinged = match members.members.len() > 1 {
            true => members::ping(&members),
            false => vec![Pinged { host: answer.host, mode: answer.mode, answers: true }],
        };
        let config = if mode.json { controller.configuration().await?.config } else { Default::default() };
        Ok::<_, Trouble>((pinged, micros, config))
    });
    let told = |pinged: &[Pinged], micros: u64, config: &model::Config| match mode.document(config) {
        Some(shape) => members::document(shape, &config.cluster_name, pinged, micros),
        None => pinged.iter().map(Pinged::line).collect(),
    };
    match outcome {
        Ok((pinged, micros, config)) => Reply::text(told(&pinged, micros, &config)),
        Err(Trouble::NoCluster(text)) => Reply::failed(&format!("scontrol: error: {text}")),
        Err(Trouble::Call(_)) => {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let mut out = told(&[Pinged { host, mode: "primary".into(), answers: false }], 0, &Default::default());
            if !mode.json {
                let stars = "*".repeat(41);
                out += &format!("{stars}\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n{stars}\n");
            }
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
        Ok(match refused {
            None => Reply::default(),
            Some(Reject::JobPending) => failed("Requested operation is presently disabled"),
            Some(reject) => failed(worded(&reject.to_string())),
        })
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
        if matches!(verb, Verb::Requeue | Verb::RequeueHold) {
            jobs::outlive_own_job();
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

/// What was asked for as JSON, in the other notation.
fn in_yaml(reply: Reply) -> Reply {
    Reply { out: if reply.out.is_empty() { String::new() } else { crate::json::yaml(&reply.out) }, ..reply }
}

/// `scontrol errnumstr`
fn error_text(rest: &[String]) -> Reply {
    match rest {
        [] => Reply::failed("one arguments required for keyword:errnumstr"),
        [number] => match number.parse() {
            Ok(number) => Reply::text(format!("{}\n", model::error_texts::text(number))),
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
    let id = match rest {
        [] => return Reply::failed("too few arguments for keyword:wait_job"),
        [id] => id,
        _ => return Reply::failed("too many arguments for keyword:wait_job"),
    };
    let Some(job) = crate::job_ids::parse_job(id) else { return Reply::failed("Invalid job_id") };
    let filter = JobFilter { jobs: vec![job], with_finished: true, ..JobFilter::default() };
    asking("slurm_job_node_ready error", async |controller, cluster| {
        let mut watch = crate::watch::Watch::new(cluster, filter, Some(controller.clone()));
        loop {
            let page = watch.next().await?;
            let Some(job) = page.jobs.first() else {
                return Ok(Reply::failed(&format!("scontrol: Problem running job {id}")));
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
    })
}

fn create_any(rest: &[String]) -> Reply {
    let rest = &match update_any::without_units(rest) {
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

/// The text of an error, for commands that word it themselves.
fn text_of(error: &CallError) -> String {
    worded(&trouble::text(error)).to_string()
}

#[cfg(test)]
mod tests;
