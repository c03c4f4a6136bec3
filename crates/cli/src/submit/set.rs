//! How each option that concerns the job as a whole, or the command's own behaviour, changes the request.
use std::time::Duration;

use model::spec::{ArraySpec, MailKind, OpenMode, TimeLimit, Warning};
use model::time::Span;
use model::{Reject, Timestamp, dependency, duration, ranges, signal};

use super::login;
use super::request::{Bell, Question, Source};
use super::table::Opt;
use super::{Caller, Problem, Request};
use crate::users;

/// One option with its value, wherever it stood.
pub struct Argument<'a> {
    pub option: &'static Opt,
    pub value: Option<&'a str>,
    pub caller: &'a Caller,
    pub source: Source,
}

pub type Setter = fn(&mut Request, &Argument) -> Result<(), Problem>;
pub type Done = Result<(), Problem>;

impl Argument<'_> {
    pub fn text(&self) -> &str {
        self.value.unwrap_or_default()
    }

    pub fn owned(&self) -> String {
        self.text().to_string()
    }

    pub fn invalid(&self) -> Problem {
        Problem::invalid(self.option.long)
    }

    /// A count of at least one.
    pub fn count(&self) -> Result<u32, Problem> {
        match self.number()? {
            0 => Err(Problem::numeric(self.option.long, self.text())),
            count => Ok(count),
        }
    }

    pub fn number(&self) -> Result<u32, Problem> {
        let text = self.text();
        let refuse = || Problem::numeric(self.option.long, text);
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refuse());
        }
        text.parse().ok().filter(|number| *number <= i32::MAX as u32).ok_or_else(refuse)
    }

    /// `yes` and `no` in the forms Slurm knows.
    pub fn yes_or_no(&self) -> Result<bool, Problem> {
        match self.text().to_ascii_lowercase().as_str() {
            "yes" | "y" | "1" => Ok(true),
            "no" | "n" | "0" => Ok(false),
            _ => Err(self.invalid()),
        }
    }

    /// Variables of flags are on unless they say no.
    pub fn is_on(&self) -> bool {
        self.source != Source::Environment || !matches!(self.text(), "0" | "no" | "NO")
    }
}

pub fn account(request: &mut Request, given: &Argument) -> Done {
    // Accounts and QOS are known in small letters.
    request.spec.account = given.text().to_lowercase();
    Ok(())
}

pub fn array(request: &mut Request, given: &Argument) -> Done {
    // Nothing said of an array is no array.
    if given.text().is_empty() {
        request.spec.array = None;
        return Ok(());
    }
    let (tasks, limit) = ranges::parse_array(given.text()).map_err(|_| Problem::refused(Reject::BadArray))?;
    request.spec.array = Some(ArraySpec { tasks, limit });
    Ok(())
}

pub fn begin(request: &mut Request, given: &Argument) -> Done {
    request.spec.begin = Some(moment(given)?);
    Ok(())
}

pub fn deadline(request: &mut Request, given: &Argument) -> Done {
    request.spec.deadline = Some(moment(given)?);
    Ok(())
}

fn moment(given: &Argument) -> Result<Timestamp, Problem> {
    given.caller.moment(given.text()).map_err(|text| {
        let mut problem = given.invalid();
        problem.lines.insert(0, super::problem::Line::Bare(text));
        problem
    })
}

pub fn bell(request: &mut Request, given: &Argument) -> Done {
    if given.is_on() {
        request.behaviour.bell = Bell::Always;
    }
    Ok(())
}

pub fn no_bell(request: &mut Request, given: &Argument) -> Done {
    if given.is_on() {
        request.behaviour.bell = Bell::Never;
    }
    Ok(())
}

pub fn chdir(request: &mut Request, given: &Argument) -> Done {
    request.spec.work_dir = given.caller.absolute(given.text());
    Ok(())
}

/// Only the cluster that the command already talks to.
pub fn clusters(_: &mut Request, given: &Argument) -> Done {
    let own = &given.caller.cluster_name;
    let is_own = |name: &str| name == own || name == "all";
    if given.text().split(',').all(is_own) {
        return Ok(());
    }
    let text = given.text();
    Err(Problem::error(format!(
        "'{text}' can't be reached now, or it is an invalid entry for --cluster.  \
         Use 'sacctmgr list clusters' to see available clusters."
    )))
}

pub fn comment(request: &mut Request, given: &Argument) -> Done {
    request.spec.comment = given.owned();
    Ok(())
}

pub fn dependency(request: &mut Request, given: &Argument) -> Done {
    if given.text().is_empty() {
        request.spec.dependency = Default::default();
        return Ok(());
    }
    let read = dependency::parse(given.text()).map_err(|_| Problem::refused(Reject::BadDependency))?;
    request.spec.dependency = read;
    Ok(())
}

pub fn input(request: &mut Request, given: &Argument) -> Done {
    request.spec.stdin = Some(file(given.text()));
    Ok(())
}

pub fn output(request: &mut Request, given: &Argument) -> Done {
    request.spec.stdout = Some(file(given.text()));
    Ok(())
}

pub fn error(request: &mut Request, given: &Argument) -> Done {
    request.spec.stderr = Some(file(given.text()));
    Ok(())
}

fn file(text: &str) -> String {
    if text.eq_ignore_ascii_case("none") { "/dev/null".to_string() } else { text.to_string() }
}

pub fn export(request: &mut Request, given: &Argument) -> Done {
    request.export = Some(given.owned());
    Ok(())
}

pub fn help(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.asks.get_or_insert(Question::Help);
    Ok(())
}

pub fn usage(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.asks.get_or_insert(Question::Usage);
    Ok(())
}

pub fn version(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.asks.get_or_insert(Question::Version);
    Ok(())
}

pub fn hold(request: &mut Request, _: &Argument) -> Done {
    request.spec.held = true;
    Ok(())
}

/// Whether such lines are read is decided before the options are (`components`).
pub fn ignore_pbs(_: &mut Request, _: &Argument) -> Done {
    Ok(())
}

/// `--immediate` without a time, as with one second, means at once.
const IMMEDIATE_DEFAULT_SECS: u64 = 1;

pub fn immediate(request: &mut Request, given: &Argument) -> Done {
    let secs = match given.value {
        None => IMMEDIATE_DEFAULT_SECS,
        Some(text) => {
            let secs: u32 = text
                .parse()
                .map_err(|_| Problem::error(format!("Invalid numeric value \"{text}\" for {}.", given.option.long)))?;
            u64::from(secs)
        }
    };
    request.behaviour.immediate = Some(Duration::from_secs(secs));
    Ok(())
}

pub fn job_name(request: &mut Request, given: &Argument) -> Done {
    request.spec.name = given.owned();
    Ok(())
}

pub fn kill_command(request: &mut Request, given: &Argument) -> Done {
    let signal = match given.value {
        None | Some("1") => signal::Signal::TERM,
        Some(text) => signal::parse(text).ok_or_else(|| given.invalid())?,
    };
    request.behaviour.kill_command = Some(signal.number().into());
    Ok(())
}

pub fn kill_on_invalid_dependency(request: &mut Request, given: &Argument) -> Done {
    request.spec.kill_on_invalid_dependency = Some(given.yes_or_no()?);
    Ok(())
}

/// What `ALL` stands for.
const MAIL_ALL: [MailKind; 6] = [
    MailKind::Begin,
    MailKind::End,
    MailKind::Fail,
    MailKind::Requeue,
    MailKind::InvalidDependency,
    MailKind::StageOut,
];

pub fn mail_type(request: &mut Request, given: &Argument) -> Done {
    let mail = request.spec.mail.get_or_insert_default();
    (mail.kinds, mail.for_each_task) = mail_kinds(given.text()).ok_or_else(|| given.invalid())?;
    Ok(())
}

/// What mails tell, and whether each task of an array has its own; none where a word is unknown.
pub fn mail_kinds(text: &str) -> Option<(Vec<MailKind>, bool)> {
    let (mut kinds, mut for_each_task) = (Vec::new(), false);
    for word in text.split(',') {
        match word.to_ascii_uppercase().as_str() {
            "NONE" => kinds.clear(),
            "BEGIN" => kinds.push(MailKind::Begin),
            "END" => kinds.push(MailKind::End),
            "FAIL" => kinds.push(MailKind::Fail),
            "REQUEUE" => kinds.push(MailKind::Requeue),
            "INVALID_DEPEND" => kinds.push(MailKind::InvalidDependency),
            "TIME_LIMIT" => kinds.push(MailKind::TimeLimit),
            "TIME_LIMIT_50" => kinds.push(MailKind::TimeLimit50),
            "TIME_LIMIT_80" => kinds.push(MailKind::TimeLimit80),
            "TIME_LIMIT_90" => kinds.push(MailKind::TimeLimit90),
            "ALL" => kinds.extend(MAIL_ALL),
            "STAGE_OUT" => kinds.push(MailKind::StageOut),
            "ARRAY_TASKS" => for_each_task = true,
            _ => return None,
        }
    }
    Some((kinds, for_each_task))
}

pub fn burst_buffer(request: &mut Request, given: &Argument) -> Done {
    request.spec.burst_buffer = given.owned();
    Ok(())
}

pub fn burst_buffer_file(request: &mut Request, given: &Argument) -> Done {
    request.spec.burst_buffer_file = std::fs::read_to_string(given.text()).map_err(|_| {
        let mut problem = given.invalid();
        problem.code = 1;
        problem
    })?;
    Ok(())
}

pub fn mail_user(request: &mut Request, given: &Argument) -> Done {
    request.spec.mail.get_or_insert_default().to = given.owned();
    Ok(())
}

const NICE_DEFAULT: i32 = 100;
const NICE_MAX: i32 = i32::MAX - 2;

pub fn nice(request: &mut Request, given: &Argument) -> Done {
    let nice = match given.value {
        None => i128::from(NICE_DEFAULT),
        Some(text) => text.parse::<i128>().map_err(|_| Problem::usage("Invalid --nice value"))?,
    };
    if !(-i128::from(NICE_MAX)..=i128::from(NICE_MAX)).contains(&nice) {
        return Err(Problem::usage(format!("Invalid --nice value, out of range (+/- {NICE_MAX})")));
    }
    request.spec.nice = nice as i32;
    Ok(())
}

pub fn no_kill(request: &mut Request, given: &Argument) -> Done {
    request.spec.no_kill = match given.value {
        Some("off" | "no") => false,
        None => true,
        Some(_) if given.source == Source::Environment => true,
        Some(_) => return Err(given.invalid()),
    };
    Ok(())
}

pub fn requeue(request: &mut Request, _: &Argument) -> Done {
    request.spec.requeue = Some(true);
    Ok(())
}

pub fn no_requeue(request: &mut Request, _: &Argument) -> Done {
    request.spec.requeue = Some(false);
    Ok(())
}

pub fn no_shell(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.no_shell = true;
    Ok(())
}

pub fn open_mode(request: &mut Request, given: &Argument) -> Done {
    request.spec.open_mode = match given.text().chars().next().map(|first| first.to_ascii_lowercase()) {
        Some('a') => OpenMode::Append,
        Some('t') => OpenMode::Truncate,
        _ => return Err(given.invalid()),
    };
    Ok(())
}

pub fn parsable(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.is_parsable = true;
    Ok(())
}

pub fn partition(request: &mut Request, given: &Argument) -> Done {
    request.spec.partitions = given.text().split(',').filter(|name| !name.is_empty()).map(str::to_string).collect();
    Ok(())
}

/// `TOP`: before every job that has no priority of its own.
const PRIORITY_TOP: u32 = u32::MAX - 1;

pub fn priority(request: &mut Request, given: &Argument) -> Done {
    request.spec.priority = Some(match given.text() {
        text if text.eq_ignore_ascii_case("TOP") => PRIORITY_TOP,
        text => match text.parse::<i128>().map_err(|_| given.invalid())? {
            below if below < 0 => return Err(Problem::usage("Priority must be >= 0")),
            above if above >= i128::from(PRIORITY_TOP) => {
                return Err(Problem::usage(format!("Priority must be < {PRIORITY_TOP}")));
            }
            priority => priority as u32,
        },
    });
    Ok(())
}

pub fn propagate(request: &mut Request, given: &Argument) -> Done {
    let list = given.value.unwrap_or("ALL");
    super::limits::check(list)?;
    request.propagate = Some(list.to_string());
    Ok(())
}

pub fn qos(request: &mut Request, given: &Argument) -> Done {
    request.spec.qos = given.text().to_lowercase();
    Ok(())
}

pub fn licenses(request: &mut Request, given: &Argument) -> Done {
    match model::license::parse(given.text()) {
        Some(licenses) => request.spec.licenses = licenses,
        // The controller refuses it in Slurm's words.
        None => request.spec.licenses = model::license::LicenseRequest::unknown(given.text()),
    }
    Ok(())
}

pub fn reservation(request: &mut Request, given: &Argument) -> Done {
    let names = given.text().split(',').filter(|name| !name.is_empty());
    request.spec.reservations = names.map(str::to_string).collect();
    Ok(())
}

pub fn quiet(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.is_quiet = true;
    Ok(())
}

/// `--signal` without a time: a minute before the end.
const WARNING_DEFAULT_SECS: u64 = 60;
const WARNING_MAX_SECS: u64 = 65_535;

pub fn signal(request: &mut Request, given: &Argument) -> Done {
    let (flags, rest) = given.text().split_once(':').unwrap_or(("", given.text()));
    if !matches!(flags, "" | "B" | "R" | "BR" | "RB") {
        return Err(given.invalid());
    }
    let (name, secs) = match rest.split_once('@') {
        None => (rest, WARNING_DEFAULT_SECS),
        Some((name, secs)) => (name, secs.parse().map_err(|_| given.invalid())?),
    };
    let signal = signal::parse(name).filter(|_| secs <= WARNING_MAX_SECS).ok_or_else(|| given.invalid())?;
    request.spec.warning = Some(Warning {
        signal: signal.number().into(),
        before: Span::from_secs(secs),
        batch_only: flags.contains('B'),
        overlaps_reservations: flags.contains('R'),
    });
    Ok(())
}

pub fn test_only(request: &mut Request, _: &Argument) -> Done {
    request.behaviour.is_test = true;
    Ok(())
}

pub fn time(request: &mut Request, given: &Argument) -> Done {
    let limit = limit(given)?;
    request.step.time_limit = Some(limit);
    request.spec.time_limit = Some(time_limit(limit));
    Ok(())
}

pub fn time_min(request: &mut Request, given: &Argument) -> Done {
    request.spec.time_min = Some(time_limit(limit(given)?));
    Ok(())
}

fn limit(given: &Argument) -> Result<duration::Limit, Problem> {
    // Slurm takes "1-" for a whole day.
    let text = match given.text().strip_suffix('-') {
        Some(days) if !days.is_empty() => format!("{days}-0"),
        _ => given.owned(),
    };
    duration::parse_limit(&text).ok_or_else(|| given.invalid())
}

pub(crate) fn time_limit(limit: duration::Limit) -> TimeLimit {
    match limit {
        duration::Limit::Seconds(secs) => TimeLimit::Secs(secs),
        duration::Limit::Unlimited => TimeLimit::Unlimited,
    }
}

pub fn uid(request: &mut Request, given: &Argument) -> Done {
    if given.caller.uid != 0 {
        return Err(Problem::usage("--uid only permitted by root user"));
    }
    request.user = Some(users::account_of(given.text()).ok_or_else(|| given.invalid())?);
    Ok(())
}

pub fn gid(request: &mut Request, given: &Argument) -> Done {
    if given.caller.uid != 0 {
        return Err(Problem::usage("--gid only permitted by root user"));
    }
    request.group = Some(users::gid_of(given.text()).ok_or_else(|| given.invalid())?);
    Ok(())
}

pub fn get_user_env(request: &mut Request, given: &Argument) -> Done {
    request.login = Some(login::parse(given.text()).ok_or_else(|| given.invalid())?);
    Ok(())
}

pub fn export_file(request: &mut Request, given: &Argument) -> Done {
    request.export_file = Some(given.owned());
    Ok(())
}

pub fn verbose(request: &mut Request, given: &Argument) -> Done {
    request.behaviour.verbosity += match given.source {
        Source::Environment => given.text().parse().unwrap_or(0),
        Source::Script | Source::Arguments => 1,
    };
    Ok(())
}

pub fn wait(request: &mut Request, given: &Argument) -> Done {
    request.behaviour.waits = given.is_on();
    Ok(())
}

pub fn wait_bb(request: &mut Request, given: &Argument) -> Done {
    request.behaviour.waits_for_data = given.is_on();
    request.behaviour.waits |= given.is_on();
    Ok(())
}

/// A start covers all nodes, so both answers come to the same.
pub fn wait_all_nodes(_: &mut Request, given: &Argument) -> Done {
    match given.number()? {
        0 | 1 => Ok(()),
        _ => Err(given.invalid()),
    }
}

pub fn wckey(request: &mut Request, given: &Argument) -> Done {
    request.spec.wckey = given.owned();
    Ok(())
}

pub fn wrap(request: &mut Request, given: &Argument) -> Done {
    request.behaviour.wrap = Some(given.owned());
    Ok(())
}
