//! `sacctmgr`: accounts, users, associations and qualities of service, shown and changed.
mod agree;
mod columns;
mod conditions;
mod configuration;
mod differences;
mod dump;
mod entity;
mod help;
mod jobs;
mod json;
mod load;
mod records;
mod resources;
mod show;
mod tell;
#[cfg(test)]
mod tests;
mod words;

use model::accounts::{Accounts, Field, NORMAL, Value};
use wire::Controller;

use crate::getopt::{self, Flag, flag};
use crate::json::Shape;
use crate::output::print;
use crate::table::Style;
use crate::trouble::{self, Trouble};
use crate::{accounting, context, version};
use agree::commit;
use entity::{ENTITIES, Entity, VERBS, Verb, find, may, must_include};
pub use help::TEXT as HELP;
use show::ClusterFacts;
pub use show::tree;
use words::{Begin, Words};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("associations", Some('s'), getopt::Value::None),
    flag("help", Some('h'), getopt::Value::None),
    flag("immediate", Some('i'), getopt::Value::None),
    flag("json", None, getopt::Value::Optional),
    flag("noheader", Some('n'), getopt::Value::None),
    flag("oneliner", Some('o'), getopt::Value::None),
    flag("parsable", Some('p'), getopt::Value::None),
    flag("parsable2", Some('P'), getopt::Value::None),
    flag("quiet", Some('Q'), getopt::Value::None),
    flag("readonly", Some('r'), getopt::Value::None),
    flag("usage", None, getopt::Value::None),
    flag("verbose", Some('v'), getopt::Value::None),
    flag("version", Some('V'), getopt::Value::None),
    flag("yaml", None, getopt::Value::Optional),
];

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub style: Style,
    pub has_heading: bool,
    pub with_associations: bool,
    is_immediate: bool,
    is_quiet: bool,
    is_readonly: bool,
    document: Option<Document>,
}

/// A document instead of a table.
#[derive(Clone, Copy, Debug)]
struct Document {
    /// None: the cluster's.
    shape: Option<Shape>,
    is_yaml: bool,
}

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match accounting::begin("sacctmgr", FLAGS, help::TEXT, arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let shape = match crate::json::begin("sacctmgr", &parsed) {
        Ok(shape) => shape,
        Err(code) => return code,
    };
    let is_yaml = parsed.has("yaml");
    let options = Options {
        document: (is_yaml || parsed.has("json")).then_some(Document { shape, is_yaml }),
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

/// Commands that speak of no entity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Archive,
    File,
    Help,
    Operate,
    Version,
}

const PLAIN: &[(&str, Plain)] = &[
    ("archive", Plain::Archive),
    ("clear", Plain::Operate),
    ("dump", Plain::File),
    ("help", Plain::Help),
    ("load", Plain::File),
    ("ping", Plain::Operate),
    ("reconfigure", Plain::Operate),
    ("shutdown", Plain::Operate),
    ("version", Plain::Version),
];

/// What may come next, from the tables that read it: for completion in a shell.
pub fn next(words: &[&str]) -> Vec<String> {
    let [first, rest @ ..] = words else {
        let verbs = VERBS.iter().map(|(name, ..)| *name);
        let plain = PLAIN.iter().filter(|(_, plain)| *plain != Plain::Archive).map(|(name, _)| *name);
        return verbs.chain(plain).map(str::to_string).collect();
    };
    let Some(verb) = find(VERBS, &first.to_lowercase()) else { return Vec::new() };
    let Some((second, rest)) = rest.split_first() else {
        let entities = ENTITIES.iter().filter(|(_, _, entity)| may(verb, *entity)).map(|(name, ..)| *name);
        let records = records::RECORDS.iter().filter(|_| verb == Verb::Show).map(|(name, ..)| *name);
        let others = [Some("resources"), Some("job").filter(|_| verb == Verb::Modify)];
        return entities.chain(records).chain(others.into_iter().flatten()).map(str::to_string).collect();
    };
    match find(ENTITIES, &second.to_lowercase()).filter(|entity| may(verb, *entity)) {
        Some(entity) => words::next(entity, rest, verb),
        None => Vec::new(),
    }
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
    match PLAIN.iter().find(|(name, _)| *name == first).map(|(_, plain)| *plain) {
        Some(Plain::Help) => {
            print(help::TEXT);
            return 0;
        }
        Some(Plain::Version) => {
            print(&version::line());
            return 0;
        }
        Some(Plain::File) => return load::dump_or_load(&first, &words[1..], options),
        Some(Plain::Archive) => {
            eprintln!(
                "sacctmgr: error: archive: history is kept whole and needs no archive; this command is not supported"
            );
            return 1;
        }
        Some(Plain::Operate) => return operate(&first, &words[1..]),
        None => {}
    }
    let Some(verb) = find(VERBS, &first) else {
        eprintln!("invalid keyword: {}", words[0]);
        return 1;
    };
    let second = words.get(1).map(|word| word.to_lowercase()).unwrap_or_default();
    if resources::is_meant(verb, &second) {
        return resource(verb, &words[2..], options);
    }
    let record = if verb == Verb::Show { find(records::RECORDS, &second) } else { None };
    let entity = find(ENTITIES, &second).filter(|entity| may(verb, *entity));
    if let (Some(record), None) = (record, entity) {
        if options.document.is_some() {
            eprintln!("sacctmgr: error: --json is not supported for {first} {second}");
            return 1;
        }
        return asked(async |controller, facts| records::show(controller, record, &words[2..], facts, options).await);
    }
    if verb == Verb::Modify && !second.is_empty() && "job".starts_with(&second) {
        if options.is_readonly {
            eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
            return 1;
        }
        return asked(async |controller, facts| jobs::modify(controller, &facts.name, &words[2..], options).await);
    }
    let Some(entity) = entity else {
        let of_others = ["federation", "reservation"];
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
            let text: String = wrong.iter().map(|text| format!("{text}\n")).collect();
            // Of qualities of service it is told where other things are.
            if entity == Entity::Qos && verb != Verb::Show {
                print(&text);
            } else {
                eprint!("{text}");
            }
            return 1;
        }
    };
    if verb != Verb::Show && options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return 1;
    }
    asked(async |controller, facts| act(controller, facts, verb, entity, &read, options).await)
}

fn resource(verb: Verb, words: &[String], options: &Options) -> i32 {
    if options.document.is_some() {
        eprintln!("sacctmgr: error: --json is not supported for resources");
        return 1;
    }
    let wish = match resources::read(verb, words) {
        Ok(wish) => wish,
        Err(wrong) => return resources::tell(&wrong),
    };
    if verb != Verb::Show && options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return 1;
    }
    asked(async |controller, facts| resources::act(controller, facts, verb, wish, options).await)
}

/// Asks the controller; what goes wrong on the way is told.
fn asked(what: impl AsyncFnOnce(&mut Controller, &ClusterFacts) -> Result<i32, Trouble>) -> i32 {
    let outcome = context::ask(async {
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
    let all = model::capacity::whole(config, None);
    let billing: u64 = model::capacity::billing_by_node(config).values().sum();
    let amounts = vec![("cpu", all.cpu), ("mem", all.mem), ("node", all.node), ("billing", billing)];
    ClusterFacts {
        name: config.cluster_name.clone(),
        host: config.controller.host.clone(),
        data_parser: config.controller.data_parser,
        gres,
        nodes: model::hostlist::compress(config.nodes.iter().map(|node| node.name.as_str())),
        n_nodes: config.nodes.len(),
        tres: all_tres(&all, billing),
        amounts,
    }
}

/// In the order of their names; nothing counts those that are 0.
fn all_tres(all: &model::accounts::Amounts, billing: u64) -> String {
    let devices: String = crate::node_view::devices(all).map(|(name, count)| format!("{name}={count},")).collect();
    let (cpus, memory, n_nodes) = (all.cpu, model::size::show_megabytes(all.mem), all.node);
    format!("billing={billing},cpu={cpus},energy=0,fs/disk=0,{devices}mem={memory},node={n_nodes},pages=0,vmem=0")
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

async fn act(
    controller: &mut Controller,
    cluster: &ClusterFacts,
    verb: Verb,
    entity: Entity,
    words: &Words,
    options: &Options,
) -> Result<i32, Trouble> {
    let all = controller.accounts().await?;
    if let (Verb::Show, Some(document)) = (verb, options.document) {
        let shape = document.shape.unwrap_or(cluster.data_parser);
        let text = json::document(&all, cluster, entity, words, options, shape);
        print(&if document.is_yaml { crate::json::yaml(&text) } else { text });
        return Ok(0);
    }
    if verb == Verb::Show {
        return Ok(match show::render(&all, cluster, entity, words, options) {
            Ok(text) => {
                print(&text);
                0
            }
            Err(field) => {
                eprintln!("Unknown field '{field}'");
                1
            }
        });
    }
    if let Some((name, told)) = unknown_qos(&all, words) {
        eprintln!("sacctmgr: error: You gave a bad qos '{name}'. Valid QOS's are {}", qos_names(&all));
        if entity != Entity::Qos {
            eprintln!(" Unknown option: {told}\n Use keyword 'where' to modify condition");
        }
        return Ok(1);
    }
    let planned = match verb {
        Verb::Add => tell::add(&all, cluster, entity, words),
        Verb::Modify => tell::modify(&all, cluster, entity, words),
        Verb::Delete | Verb::Show => tell::delete(&all, cluster, entity, words),
    };
    match planned {
        Ok((change, text)) => commit(controller, change, &text, options).await,
        Err((text, code)) => {
            if code == 0 || text.lines().any(|line| line.starts_with(" Nothing")) {
                print(&text);
            } else {
                eprint!("{text}");
            }
            Ok(code)
        }
    }
}

/// The first QOS that somebody is to have, or to preempt, and that there is not; and the words that name it.
fn unknown_qos(all: &Accounts, words: &Words) -> Option<(String, String)> {
    let is_known = |name: &&String| name.is_empty() || *name == NORMAL || all.qos.contains_key(*name);
    for (edit, (key, value)) in words.edits.iter().zip(&words.told) {
        let unknown = match (&edit.field, &edit.value) {
            (Field::Qos | Field::Preempt, Value::Names(names)) => names.names().find(|name| !is_known(name)).cloned(),
            (Field::DefaultQos, Value::Text(name)) => Some(name).filter(|name| !is_known(name)).cloned(),
            _ => None,
        };
        if let Some(name) = unknown {
            return Some((name, format!("{key}={value}")));
        }
    }
    None
}

fn qos_names(all: &Accounts) -> String {
    all.qos.keys().map(String::as_str).collect::<Vec<_>>().join(",")
}
