//! `sacctmgr`: accounts, users, associations and qualities of service, shown and changed.
mod columns;
mod dump;
mod help;
mod show;
mod tell;
#[cfg(test)]
mod tests;
mod words;

use std::io::{IsTerminal, Write};

use model::accounts::{Accounts, Change, Field};
use wire::{CallError, Controller};

use crate::getopt::{self, Flag, Operands, Value, flag};
use crate::output::print;
use crate::table::Style;
use crate::trouble::{self, Trouble};
use crate::{context, version};
use show::ClusterFacts;
pub use show::tree;
use words::{Begin, Words};

#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    flag("associations", Some('s'), Value::None),
    flag("help", Some('h'), Value::None),
    flag("immediate", Some('i'), Value::None),
    flag("noheader", Some('n'), Value::None),
    flag("oneliner", Some('o'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("quiet", Some('Q'), Value::None),
    flag("readonly", Some('r'), Value::None),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub style: Style,
    pub has_heading: bool,
    pub with_associations: bool,
    is_immediate: bool,
    is_quiet: bool,
    is_readonly: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Account,
    Association,
    Cluster,
    Coordinator,
    Qos,
    Tres,
    User,
    Wckey,
}

const ENTITIES: &[(&str, usize, Entity)] = &[
    ("accounts", 4, Entity::Account),
    ("associations", 2, Entity::Association),
    ("clusters", 2, Entity::Cluster),
    ("coordinators", 4, Entity::Coordinator),
    ("qos", 1, Entity::Qos),
    ("tres", 2, Entity::Tres),
    ("users", 1, Entity::User),
    ("wckeys", 1, Entity::Wckey),
];

/// Entities of Slurm that there are none of here.
const ABSENT: &[&str] =
    &["event", "federation", "instance", "job", "problem", "reservation", "resource", "runawayjobs", "transaction"];

impl Entity {
    fn has(self, field: Field) -> bool {
        let is_qos_only = field >= Field::Flags;
        match self {
            Entity::Qos => {
                is_qos_only
                    || field >= Field::GrpJobs
                    || matches!(field, Field::Description | Field::Priority | Field::MinPriority | Field::NewName)
            }
            Entity::Account => {
                !is_qos_only && !matches!(field, Field::DefaultAccount | Field::DefaultWckey | Field::AdminLevel)
            }
            Entity::User => !is_qos_only && !matches!(field, Field::Description | Field::Organization | Field::Parent),
            Entity::Cluster | Entity::Association => !is_qos_only && field >= Field::Comment,
            Entity::Coordinator | Entity::Tres | Entity::Wckey => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Delete,
    Modify,
    Show,
}

const VERBS: &[(&str, usize, Verb)] = &[
    ("add", 2, Verb::Add),
    ("create", 2, Verb::Add),
    ("delete", 3, Verb::Delete),
    ("remove", 3, Verb::Delete),
    ("list", 2, Verb::Show),
    ("show", 2, Verb::Show),
    ("modify", 1, Verb::Modify),
    ("update", 1, Verb::Modify),
];

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match getopt::parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(text) => {
            eprintln!("sacctmgr: {text}\nTry \"sacctmgr --help\" for more information");
            return 1;
        }
    };
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    if parsed.has("help") || parsed.has("usage") {
        print(help::TEXT);
        return 0;
    }
    let style = match (parsed.has("parsable"), parsed.has("parsable2")) {
        (_, true) => Style::Between("|".into()),
        (true, false) => Style::After("|".into()),
        (false, false) => Style::Aligned,
    };
    let options = Options {
        style,
        has_heading: !parsed.has("noheader"),
        with_associations: parsed.has("associations"),
        is_immediate: parsed.has("immediate"),
        is_quiet: parsed.has("quiet"),
        is_readonly: parsed.has("readonly"),
    };
    if parsed.operands.is_empty() {
        return interactive(&options);
    }
    one_command(&parsed.operands, &options)
}

/// Without a command: one a line from standard input, until `quit`.
fn interactive(options: &Options) -> i32 {
    let mut code = 0;
    loop {
        print("sacctmgr: ");
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
            return code;
        }
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        match words.first().map(|word| word.to_lowercase()).as_deref() {
            None => {}
            Some("quit" | "exit" | "!q") => return code,
            Some(_) => code = one_command(&words, options),
        }
    }
}

fn one_command(words: &[String], options: &Options) -> i32 {
    let first = words[0].to_lowercase();
    match first.as_str() {
        "help" => {
            print(help::TEXT);
            return 0;
        }
        "version" => {
            print(&version::line());
            return 0;
        }
        "dump" | "load" => return dump_or_load(&first, &words[1..], options),
        "archive" | "clear" | "reconfigure" | "shutdown" | "ping" => {
            eprintln!(
                "sacctmgr: error: {first}: there is no accounting daemon here; this command is not supported by this version"
            );
            return 1;
        }
        _ => {}
    }
    let Some(verb) = find(VERBS, &first) else {
        eprintln!("sacctmgr: error: invalid keyword: {}", words[0]);
        return 1;
    };
    let Some(second) = words.get(1) else {
        eprintln!(
            "sacctmgr: error: No entity specified: \"{}\" needs one of account, association, cluster, coordinator, qos, tres, user, wckey",
            words[0]
        );
        return 1;
    };
    let Some(entity) = find(ENTITIES, &second.to_lowercase()) else {
        if ABSENT.iter().any(|known| known.starts_with(&second.to_lowercase())) {
            eprintln!("sacctmgr: error: {second}: not supported by this version");
        } else {
            eprintln!(
                "sacctmgr: error: No valid entity in {} command\nsacctmgr: error: Input line must include, \"Account\", \"User\", \"QOS\", \"Association\", \"Cluster\", \"Coordinator\", \"TRES\" or \"WCKey\"",
                words[0]
            );
        }
        return 1;
    };
    let begin = if verb == Verb::Add { Begin::Values } else { Begin::Conditions };
    let read = match words::read(entity, &words[2..], begin) {
        Ok(read) => read,
        Err(wrong) => {
            wrong.iter().for_each(|text| eprintln!("{text}"));
            return 1;
        }
    };
    if verb != Verb::Show && options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return 1;
    }
    let outcome = context::block_on(async {
        let (_, mut controller) = trouble::connect().await?;
        act(&mut controller, verb, entity, &read, options).await
    });
    match outcome {
        Ok(code) => code,
        Err(Trouble::NoCluster(text)) | Err(Trouble::Call(text)) => {
            eprintln!("sacctmgr: error: {text}");
            1
        }
    }
}

/// `dump CLUSTER [FILE=…]` writes the tree, `load FILE` makes it so.
fn dump_or_load(verb: &str, words: &[String], options: &Options) -> i32 {
    let named = |word: &&String| word.to_lowercase().starts_with("file=");
    let file = words.iter().find(named).and_then(|word| word.split_once('=')).map(|(_, file)| file.to_string());
    let plain = words.iter().find(|word| !word.contains('=')).cloned();
    let outcome = context::block_on(async {
        let (_, mut controller) = trouble::connect().await?;
        let all = controller.accounts().await?;
        let cluster = controller.configuration().await?.config.cluster_name;
        match verb {
            "dump" => Ok(dump_to(&all, &cluster, plain, file)),
            _ => load(&mut controller, &all, file.or(plain), options).await,
        }
    });
    match outcome {
        Ok(code) => code,
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
            eprintln!("sacctmgr: error: {text}");
            1
        }
    }
}

fn dump_to(all: &Accounts, cluster: &str, wanted: Option<String>, file: Option<String>) -> i32 {
    let Some(wanted) = wanted else {
        eprintln!(" We need a cluster to dump.");
        return 1;
    };
    if wanted.to_lowercase() != cluster.to_lowercase() {
        eprintln!(" This cluster '{wanted}' doesn't exist. Contact your admin to add it to accounting.");
        return 1;
    }
    let file = file.unwrap_or_else(|| {
        print(&format!(" No filename given, using ./{cluster}.cfg.\n"));
        format!("./{cluster}.cfg")
    });
    dump::lines(all, cluster).iter().for_each(|line| eprintln!("sacctmgr: {line}"));
    match std::fs::write(&file, dump::file(all, cluster)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sacctmgr: error: Can't open file {file}: {error}");
            1
        }
    }
}

/// Change after change; the first that is refused ends it.
async fn load(
    controller: &mut Controller,
    all: &Accounts,
    file: Option<String>,
    options: &Options,
) -> Result<i32, Trouble> {
    if options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return Ok(1);
    }
    let Some(file) = file else {
        eprintln!(" No filename given.");
        return Ok(1);
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("sacctmgr: error: Unable to read \"{file}\": {error}");
            return Ok(1);
        }
    };
    let changes = match dump::changes(all, &text) {
        Ok(changes) => changes,
        Err(why) => {
            eprintln!("sacctmgr: error: {why}");
            return Ok(1);
        }
    };
    if changes.is_empty() {
        print(" Nothing new added.\n");
        return Ok(0);
    }
    print(&format!(" {} changes\n", changes.len()));
    if !options.is_immediate && !agrees() {
        print(" Changes Discarded\n");
        return Ok(0);
    }
    for change in &changes {
        match controller.change_accounts(change).await {
            Ok(()) => (),
            Err(CallError::Refused(reject)) => {
                eprintln!(" Error with request: {reject}\n What comes after it in the file was not loaded.");
                return Ok(1);
            }
            Err(other) => return Err(other.into()),
        }
    }
    Ok(0)
}

fn find<T: Copy>(table: &[(&str, usize, T)], word: &str) -> Option<T> {
    let fits = |(name, least, _): &&(&str, usize, T)| word.len() >= *least && name.starts_with(word);
    table.iter().find(fits).map(|(_, _, found)| *found)
}

async fn act(
    controller: &mut Controller,
    verb: Verb,
    entity: Entity,
    words: &Words,
    options: &Options,
) -> Result<i32, Trouble> {
    let all = controller.accounts().await?;
    let config = controller.configuration().await?.config;
    let mut gres: Vec<String> =
        config.nodes.iter().flat_map(|node| &node.config.gres).map(|gres| gres.name.clone()).collect();
    gres.sort();
    gres.dedup();
    let cluster = ClusterFacts { name: config.cluster_name.clone(), host: config.controller.host.clone(), gres };
    if verb == Verb::Show {
        return Ok(match show::render(&all, &cluster, entity, words, options) {
            Ok(text) => {
                print(&text);
                0
            }
            Err(field) => {
                eprintln!(" Unknown field '{field}'");
                1
            }
        });
    }
    let planned = match verb {
        Verb::Add => tell::add(&all, &cluster, entity, words),
        Verb::Modify => tell::modify(&all, &cluster, entity, words),
        Verb::Delete | Verb::Show => tell::delete(&all, &cluster, entity, words),
    };
    match planned {
        Ok((change, text)) => commit(controller, change, &text, options).await,
        Err((text, code)) => {
            if code == 0 || text.starts_with(" Nothing") {
                print(&text);
            } else {
                eprint!("{text}");
            }
            Ok(code)
        }
    }
}

async fn commit(controller: &mut Controller, change: Change, text: &str, options: &Options) -> Result<i32, Trouble> {
    if !options.is_quiet {
        print(text);
    }
    if !options.is_immediate && !agrees() {
        print(" Changes Discarded\n");
        return Ok(0);
    }
    match controller.change_accounts(&change).await {
        Ok(()) => Ok(0),
        Err(CallError::Refused(reject)) => {
            eprintln!(" Error with request: {reject}");
            Ok(1)
        }
        Err(other) => Err(other.into()),
    }
}

fn agrees() -> bool {
    print("Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ");
    let _ = std::io::stdout().flush();
    let mut answer = String::new();
    let ready = answer_is_there();
    let is_read = ready && std::io::stdin().read_line(&mut answer).is_ok();
    if !std::io::stdin().is_terminal() {
        print("\n");
    }
    is_read && answer.trim_start().to_lowercase().starts_with('y')
}

/// Waits for a line, or the end of the input, as long as was promised.
fn answer_is_there() -> bool {
    let mut wait = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut wait, 1, 30_000) == 1 }
}
