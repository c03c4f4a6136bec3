//! `sacctmgr`: accounts, users, associations and qualities of service, shown and changed.
mod columns;
mod configuration;
mod dump;
mod help;
mod records;
mod show;
mod tell;
#[cfg(test)]
mod tests;
mod words;

use std::io::{IsTerminal, Write};

use model::accounts::{Accounts, Association, Change, EntityFilter, Field, ROOT};
use wire::{CallError, Controller};

use crate::getopt::{Flag, Value, flag};
use crate::output::print;
use crate::table::Style;
use crate::trouble::{self, Trouble};
use crate::{accounting, context, version};
pub use help::TEXT as HELP;
use show::ClusterFacts;
pub use show::tree;
use words::{Begin, Words};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
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

impl Entity {
    fn has(self, field: Field) -> bool {
        let is_qos_only = field >= Field::Flags;
        match self {
            Entity::Qos => {
                is_qos_only
                    || field >= Field::GrpJobs
                    || matches!(field, Field::Description | Field::Priority | Field::MinPriority | Field::RawUsage)
            }
            Entity::Account => {
                let of_others = [
                    Field::DefaultAccount,
                    Field::DefaultWckey,
                    Field::AdminLevel,
                    Field::NewName,
                    Field::Classification,
                ];
                !is_qos_only && !of_others.contains(&field)
            }
            Entity::User => {
                let of_others = [Field::Description, Field::Organization, Field::Parent, Field::Classification];
                !is_qos_only && !of_others.contains(&field)
            }
            Entity::Cluster | Entity::Association => {
                !is_qos_only && field >= Field::Comment && field != Field::RawUsage
            }
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
    let parsed = match accounting::begin("sacctmgr", FLAGS, help::TEXT, arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let options = Options {
        style: accounting::style(&parsed),
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
        "archive" => {
            eprintln!(
                "sacctmgr: error: archive: history is kept whole and needs no archive; this command is not supported"
            );
            return 1;
        }
        "clear" | "ping" | "reconfigure" | "shutdown" => return operate(&first, &words[1..]),
        _ => {}
    }
    let Some(verb) = find(VERBS, &first) else {
        eprintln!("sacctmgr: error: invalid keyword: {}", words[0]);
        return 1;
    };
    let second = words.get(1).map(|word| word.to_lowercase()).unwrap_or_default();
    let record = if verb == Verb::Show { find(records::RECORDS, &second) } else { None };
    let entity = find(ENTITIES, &second).filter(|entity| may(verb, *entity));
    if let (Some(record), None) = (record, entity) {
        return asked(async |controller, facts| records::show(controller, record, &words[2..], facts, options).await);
    }
    let Some(entity) = entity else {
        let of_others = ["federation", "resource", "job", "reservation"];
        if second.len() > 2 && of_others.iter().any(|known| known.starts_with(&second)) {
            eprintln!("sacctmgr: error: {first} {second}: not supported by this version");
        } else {
            eprintln!("No valid entity in {first} command\n{}", must_include(verb));
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
    asked(async |controller, facts| act(controller, facts, verb, entity, &read, options).await)
}

fn may(verb: Verb, entity: Entity) -> bool {
    match verb {
        Verb::Show => true,
        Verb::Add | Verb::Delete => !matches!(entity, Entity::Association | Entity::Tres),
        Verb::Modify => !matches!(entity, Entity::Association | Entity::Tres | Entity::Wckey | Entity::Coordinator),
    }
}

fn must_include(verb: Verb) -> &'static str {
    match verb {
        Verb::Add => {
            "Input line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", \"User\", or \"WCKey\""
        }
        Verb::Show => {
            "Input line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\""
        }
        Verb::Modify => {
            "Input line must include \"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\""
        }
        Verb::Delete => {
            "Input line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
        }
    }
}

/// Asks the controller; what goes wrong on the way is told.
fn asked(what: impl AsyncFnOnce(&mut Controller, &ClusterFacts) -> Result<i32, Trouble>) -> i32 {
    let outcome = context::block_on(async {
        let (_, mut controller) = trouble::connect().await?;
        let facts = facts(&controller.configuration().await?.config);
        what(&mut controller, &facts).await
    });
    match outcome {
        Ok(code) => code,
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
            eprintln!("sacctmgr: error: {text}");
            1
        }
    }
}

fn facts(config: &model::Config) -> ClusterFacts {
    let mut gres: Vec<String> =
        config.nodes.iter().flat_map(|node| &node.config.gres).map(|gres| gres.name.clone()).collect();
    gres.sort();
    gres.dedup();
    let sum = |of: fn(&model::config::NamedNode) -> u64| config.nodes.iter().map(of).sum::<u64>();
    let (cpus, memory) = (sum(|node| node.config.cpus.into()), sum(|node| node.config.memory_mb));
    let memory = model::size::show_megabytes(memory);
    let n_nodes = config.nodes.len();
    ClusterFacts {
        name: config.cluster_name.clone(),
        host: config.controller.host.clone(),
        gres,
        nodes: model::hostlist::compress(config.nodes.iter().map(|node| node.name.as_str())),
        n_nodes,
        tres: format!("cpu={cpus},mem={memory},node={n_nodes},billing={cpus}"),
    }
}

/// What Slurm's users do with its accounting daemon. There is none here: the controller keeps accounts and history.
fn operate(verb: &str, words: &[String]) -> i32 {
    match (verb, words.first().map(|word| word.to_lowercase()).as_deref()) {
        ("clear", Some("stats" | "stat")) => asked(async |controller, _| {
            controller.reset_statistics().await?;
            Ok(0)
        }),
        ("clear", _) => {
            eprintln!("sacctmgr: error: invalid keyword: clear {}", words.join(" "));
            1
        }
        ("ping", _) => asked(async |controller, _| {
            let answer = controller.ping().await?;
            print(&format!("slurmdbd({}) at {} is UP\n", answer.mode, answer.host));
            Ok(0)
        }),
        // Whoever wants accounting stopped, or its file read again, finds it so.
        (_, None) => {
            eprintln!("sacctmgr: accounts are kept by the controller: there is no accounting daemon to {verb}");
            0
        }
        (_, Some(word)) => {
            eprintln!("sacctmgr: error: {verb}: bad argument {word}");
            1
        }
    }
}

/// `dump CLUSTER [FILE=…]` writes the tree, `load FILE` makes it so.
fn dump_or_load(verb: &str, words: &[String], options: &Options) -> i32 {
    let value = |key: &str| {
        let named = words.iter().filter_map(|word| word.split_once('='));
        named.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.to_string()).next()
    };
    let plain: Vec<String> = words.iter().filter(|word| !word.contains('=')).cloned().collect();
    let cleans = verb == "load" && plain.iter().any(|word| word.eq_ignore_ascii_case("clean"));
    let plain = plain.into_iter().find(|word| !(cleans && word.eq_ignore_ascii_case("clean")));
    let file = value("file");
    asked(async |controller, facts| {
        let all = controller.accounts().await?;
        match verb {
            "dump" => Ok(dump_to(&all, &facts.name, plain.or(value("cluster")), file)),
            _ => {
                let order = Load { file: file.or(plain), cluster: value("cluster"), cleans };
                load(controller, &all, &facts.name, order, options).await
            }
        }
    })
}

fn dump_to(all: &Accounts, own_name: &str, wanted: Option<String>, file: Option<String>) -> i32 {
    let Some(wanted) = wanted else {
        eprintln!(" We need a cluster to dump.");
        return 1;
    };
    let Some(place) = all.cluster_known_as(own_name, &wanted) else {
        eprintln!(" This cluster '{wanted}' doesn't exist. Contact your admin to add it to accounting.");
        return 1;
    };
    let cluster = if place.is_empty() { own_name } else { &place };
    let file = file.unwrap_or_else(|| {
        print(&format!(" No filename given, using ./{cluster}.cfg.\n"));
        format!("./{cluster}.cfg")
    });
    dump::lines(all, cluster, &place).iter().for_each(|line| eprintln!("sacctmgr: {line}"));
    match std::fs::write(&file, dump::file(all, cluster, &place)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sacctmgr: error: Can't open file {file}: {error}");
            1
        }
    }
}

struct Load {
    file: Option<String>,
    cluster: Option<String>,
    /// What the file does not have goes first.
    cleans: bool,
}

/// All that the file asks for, or nothing.
async fn load(
    controller: &mut Controller,
    all: &Accounts,
    own_name: &str,
    order: Load,
    options: &Options,
) -> Result<i32, Trouble> {
    if options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return Ok(1);
    }
    let Some(file) = order.file else {
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
    let cluster = dump::cluster_of(&text, order.cluster.as_deref()).unwrap_or_else(|| own_name.to_lowercase());
    let place = all.cluster_known_as(own_name, &cluster);
    let mut before = all.clone();
    let mut changes = Vec::new();
    if place.is_none() {
        changes.push(Change::AddClusters { names: vec![cluster.clone()], edits: Vec::new() });
    }
    let place = place.unwrap_or_else(|| cluster.clone());
    if order.cleans {
        let is_top = |one: &Association| one.parent == 0 || one.account == ROOT;
        let own = |one: &&Association| one.cluster == place && one.is_account() && !is_top(one);
        let names: std::collections::BTreeSet<String> =
            all.associations.values().filter(own).map(|one| one.account.clone()).collect();
        if !names.is_empty() {
            let filter = EntityFilter { names, clusters: [cluster.clone()].into(), ..EntityFilter::default() };
            changes.push(Change::DeleteAccounts { filter });
        }
        before.associations.retain(|_, one| one.cluster != place || is_top(one));
    }
    match dump::changes(&before, &cluster, &place, &text) {
        Ok(found) => changes.extend(found),
        Err(why) => {
            eprintln!("sacctmgr: error: {why}");
            return Ok(1);
        }
    }
    if changes.is_empty() {
        print(" Nothing new added.\n");
        return Ok(0);
    }
    let class = text.lines().filter(|line| line.to_lowercase().trim_start().starts_with("cluster"));
    let class = class.flat_map(|line| line.split(':')).find_map(|part| part.trim().strip_prefix("Classification="));
    let before_it =
        all.clusters.get(&place).map(|other| other.classification.as_str()).filter(|class| !class.is_empty());
    let told = |class: &str| match before_it.filter(|before| *before != class) {
        Some(before) => format!("  Classification: {before} -> {class}\n"),
        None => format!("  Classification: {class}\n"),
    };
    let class = class.map_or(String::new(), |class| told(class.trim_matches(['\'', '"'])));
    let text = format!("For cluster {cluster}\n{class} {} changes\n", changes.len());
    commit(controller, Change::Several(changes), &text, options).await
}

fn find<T: Copy>(table: &[(&str, usize, T)], word: &str) -> Option<T> {
    let fits = |(name, least, _): &&(&str, usize, T)| word.len() >= *least && name.starts_with(word);
    table.iter().find(fits).map(|(_, _, found)| *found)
}

async fn act(
    controller: &mut Controller,
    cluster: &ClusterFacts,
    verb: Verb,
    entity: Entity,
    words: &Words,
    options: &Options,
) -> Result<i32, Trouble> {
    let all = controller.accounts().await?;
    if verb == Verb::Show {
        return Ok(match show::render(&all, cluster, entity, words, options) {
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
        Verb::Add => tell::add(&all, cluster, entity, words),
        Verb::Modify => tell::modify(&all, cluster, entity, words),
        Verb::Delete | Verb::Show => tell::delete(&all, cluster, entity, words),
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
    let is_terminal = std::io::stdin().is_terminal();
    let answer = if is_terminal { key() } else { line() };
    print("\n");
    answer.trim_start().to_lowercase().starts_with('y')
}

fn line() -> String {
    let mut answer = String::new();
    if answer_is_there() {
        // What cannot be read is no agreement.
        let _ = std::io::stdin().read_line(&mut answer);
    }
    answer
}

/// One key, without waiting for the end of the line. The terminal is left as it was.
fn key() -> String {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let input = std::io::stdin();
    let Ok(before) = tcgetattr(&input) else { return line() };
    let mut at_once = before.clone();
    at_once.local_modes.remove(LocalModes::ICANON);
    if tcsetattr(&input, OptionalActions::Now, &at_once).is_err() {
        return line();
    }
    let mut key = [0u8; 1];
    let n_read = if answer_is_there() { rustix::io::read(&input, &mut key).unwrap_or(0) } else { 0 };
    // A terminal that is gone needs nothing put back.
    let _ = tcsetattr(&input, OptionalActions::Now, &before);
    String::from_utf8_lossy(&key[..n_read]).into_owned()
}

/// Waits for a line, or the end of the input, as long as was promised.
fn answer_is_there() -> bool {
    let mut wait = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut wait, 1, 30_000) == 1 }
}
