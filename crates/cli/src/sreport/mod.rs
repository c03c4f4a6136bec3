//! `sreport`: who used how much, from history.
use std::io::BufRead;

use model::Timestamp;
use model::accounts::Accounts;

use crate::getopt::{Flag, Value, flag, words};
use crate::output::print;
use crate::trouble::{self, Trouble};
use crate::zone::Clock;
use crate::{accounting, context, version};

mod options;
mod reports;
mod reserved;
mod show;
mod usage;
mod utilization;

use options::{Options, Subject, Unit};
use reports::{Scene, Sizes};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("all_clusters", Some('a'), Value::None),
    flag("cluster", Some('M'), Value::Required),
    flag("federation", None, Value::None),
    flag("help", Some('h'), Value::None),
    flag("local", None, Value::None),
    flag("noheader", Some('n'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("quiet", Some('Q'), Value::None),
    flag("time", Some('t'), Value::Required),
    flag("tres", Some('T'), Value::Required),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
sreport [<OPTION>] [<COMMAND>]
    Valid <OPTION> values are:
  -n, --noheader        no heading
  -p, --parsable        fields with a '|' after each
  -P, --parsable2       fields with a '|' between
  -t, --time=FORMAT     Seconds, Minutes, Hours, Percent, SecPer, MinPer, HourPer
  -T, --tres=LIST       these resources, or ALL
  -V, --version         the version
    Valid <COMMAND> values are:
  cluster      AccountUtilizationByUser, UserUtilizationByAccount, UserUtilizationByWckey, Utilization, WCKeyUtilizationByUser
  job          SizesByAccount, SizesByAccountAndWckey, SizesByWckey
  reservation  Utilization
  user         TopUsage
    Words after a report:
  Start=, End=, Format=, Accounts=, Users=, WCKeys=, Names=, Tree, Group, TopCount=, Grouping=, PrintJobCount, FlatView, AcctAsParent
Without a report, commands are read from the standard input; `quit` ends.
";

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match accounting::begin("sreport", FLAGS, HELP, arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut options = Options { top_count: 10, ..Options::default() };
    options.no_heading = parsed.has("noheader");
    options.parsable = parsed.has("parsable");
    options.parsable2 = parsed.has("parsable2");
    let asked = |option: &str, variable: &str| {
        parsed.value(option).map(str::to_string).or_else(|| std::env::var(variable).ok())
    };
    options.clusters = asked("cluster", "SREPORT_CLUSTER").map(|names| words(&names)).unwrap_or_default();
    if let Some(text) = parsed.value("time") {
        match Unit::parse(text) {
            Some(unit) => options.unit = unit,
            None => eprint!("unknown time format {text}"),
        }
    }
    options.tres = asked("tres", "SREPORT_TRES")
        .map(|list| list.split(',').map(|one| one.trim().to_lowercase()).filter(|one| !one.is_empty()).collect());
    if let Some(list) = &mut options.tres {
        let is_known = |name: &String| name == "all" || model::accounts::tres::parse(&format!("{name}=0")).is_ok();
        list.retain(is_known);
        if list.is_empty() {
            eprintln!("sreport: fatal: No valid TRES given");
            return 1;
        }
    }
    if parsed.operands.is_empty() { converse(options) } else { command(&parsed.operands, &mut options.clone()) }
}

/// One command a line, until there are no more.
fn converse(mut options: Options) -> i32 {
    let mut code = 0;
    loop {
        print("sreport: ");
        let mut line = String::new();
        if !matches!(std::io::stdin().lock().read_line(&mut line), Ok(1..)) {
            print("\n");
            return code;
        }
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        match words.first().map(|word| word.to_lowercase()).as_deref() {
            None => (),
            Some("quit" | "exit" | "q") => return code,
            Some("parsable") => (options.parsable, options.parsable2) = (true, false),
            Some("parsable2") => (options.parsable, options.parsable2) = (false, true),
            Some("nonparsable") => (options.parsable, options.parsable2) = (false, false),
            Some("time") => match words.get(1).and_then(|text| Unit::parse(text)) {
                Some(unit) => options.unit = unit,
                None => eprintln!("unknown time format {}", words.get(1).map_or("", String::as_str)),
            },
            Some(_) => code = command(&words, &mut options.clone()),
        }
    }
}

#[derive(Clone, Copy)]
enum Report {
    Utilization,
    ByAccount,
    ByUser,
    UserByWckey,
    WckeyByUser,
    Sizes(Sizes),
    Reservations,
    Top,
}

/// What there are reports about, and which.
const REPORTS: &[(&str, &[(&str, Report)])] = &[
    (
        "cluster",
        &[
            ("AccountUtilizationByUser", Report::ByAccount),
            ("UserUtilizationByAccount", Report::ByUser),
            ("UserUtilizationByWckey", Report::UserByWckey),
            ("Utilization", Report::Utilization),
            ("WCKeyUtilizationByUser", Report::WckeyByUser),
        ],
    ),
    (
        "job",
        &[
            ("SizesByAccount", Report::Sizes(Sizes::Account)),
            ("SizesByAccountAndWckey", Report::Sizes(Sizes::AccountAndWckey)),
            ("SizesByWckey", Report::Sizes(Sizes::Wckey)),
        ],
    ),
    ("reservation", &[("Utilization", Report::Reservations)]),
    ("user", &[("TopUsage", Report::Top)]),
];

/// What may come next, for completion in a shell.
pub fn next(words: &[&str]) -> Vec<String> {
    let kind = |word: &&str| REPORTS.iter().find(|(kind, _)| begins(kind, word)).map(|(_, reports)| *reports);
    match words {
        [] => REPORTS.iter().map(|(kind, _)| kind.to_string()).collect(),
        [word] => kind(word).unwrap_or_default().iter().map(|(name, _)| name.to_string()).collect(),
        [..] => Vec::new(),
    }
}

fn begins(of: &str, text: &str) -> bool {
    !text.is_empty() && of.to_lowercase().starts_with(&text.to_lowercase())
}

/// The report that the words name, or what is wrong with them.
fn find(kind: &str, name: Option<&str>) -> Result<Report, String> {
    let Some((known, all)) = REPORTS.iter().find(|(known, _)| begins(known, kind)) else {
        return Err(format!("invalid keyword: {kind}"));
    };
    let Some(name) = name else { return Err(format!("too few arguments for keyword:{kind}")) };
    let exact = all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut likely = all.iter().filter(|(known, _)| begins(known, name));
    let first = likely.next();
    // Of sizes the first is meant; who uses what is told in two ways, and which one must be said.
    let first = first.filter(|_| *known == "job" || likely.next().is_none());
    exact.or(first).map(|(_, report)| *report).ok_or_else(|| {
        let list = match *known {
            "job" => "SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey".to_string(),
            "user" => "Top".to_string(),
            _ => all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\", \""),
        };
        let list = match list.rsplit_once(", \"") {
            Some((rest, last)) => format!("{rest}, and \"{last}"),
            None => list,
        };
        format!("Not valid report {name}\nValid {} reports are, \"{list}\"", kind.to_lowercase())
    })
}

fn command(words: &[String], options: &mut Options) -> i32 {
    match words[0].to_lowercase().as_str() {
        "help" => return i32::from(!print(HELP)),
        "version" => return i32::from(!print(&version::line())),
        _ => (),
    }
    let report = match find(&words[0], words.get(1).map(String::as_str)) {
        Ok(report) => report,
        Err(text) => {
            eprintln!("{text}");
            return 1;
        }
    };
    let now = Timestamp::from_secs(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    );
    let clock = Clock::local(std::env::var("SLURM_TIME_FORMAT").ok().as_deref(), now);
    options.subject = match report {
        Report::Sizes(_) => Subject::Jobs,
        Report::Reservations => Subject::Reservations,
        _ => Subject::Others,
    };
    words.iter().skip(2).for_each(|word| options.word(word, &clock));
    if matches!(report, Report::Sizes(_)) && options.tres.as_ref().is_some_and(|list| list.len() > 1) {
        eprintln!(" Job report only supports a single --tres type.\n Generate a separate report for each TRES type.");
        return 1;
    }
    if matches!(report, Report::Utilization)
        && options.tres.as_ref().is_some_and(|list| list.iter().any(|one| one == "node"))
    {
        eprintln!(
            "sreport: fatal: TRES node usage is no longer reported in the Cluster Utilization report.  Please use TRES CPU instead."
        );
        return 1;
    }
    match context::ask(make(report, options, &clock)) {
        Ok(Ok(text)) => drop(print(&text)),
        Ok(Err(text)) => {
            let (shown, complaint) = text.split_once('\0').unwrap_or((&text, ""));
            print(shown);
            eprintln!("{complaint}");
            options.failed = true;
        }
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
            eprintln!("sreport: error: {text}");
            return 1;
        }
    }
    options.complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
    i32::from(options.failed)
}

async fn make(report: Report, options: &Options, clock: &Clock) -> Result<Result<String, String>, Trouble> {
    let (_, mut controller) = trouble::connect().await?;
    let config = controller.configuration().await?.config;
    if !config.accounting.records {
        return Err(Trouble::Call("Slurm accounting storage is disabled".into()));
    }
    let accounts = controller.accounts().await?;
    // Where events are private, nothing is known of them.
    let past = controller.chronicle().await.unwrap_or_default();
    let mut reservations = past.reservations;
    reservations.extend(controller.reservations().await?);
    let period = options.period(clock);
    let mut parts = Vec::new();
    {
        let mut pages = controller.history(&reports::query(period, options)).await?;
        while let Some(page) = pages.next().await? {
            parts.extend(usage::parts(&page.runs, period, page.now));
        }
    }
    let accounts = if options.leave_out(&config.cluster_name) {
        parts.clear();
        reservations.clear();
        Accounts::default()
    } else {
        accounts
    };
    let scene = Scene {
        options,
        config: &config,
        accounts: &accounts,
        reservations: &reservations,
        parts: &parts,
        period,
        clock,
        events: &past.events,
        began: past.began,
    };
    Ok(match report {
        Report::Utilization => scene.utilization(),
        Report::ByAccount => scene.by_account(),
        Report::ByUser => scene.by_user(),
        Report::UserByWckey => scene.by_wckey(true),
        Report::WckeyByUser => scene.by_wckey(false),
        Report::Sizes(by) => scene.sizes(by),
        Report::Reservations => scene.reservations(),
        Report::Top => scene.top(),
    })
}
