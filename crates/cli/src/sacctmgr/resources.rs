//! `sacctmgr … resource`: licences of licence servers, and what each cluster may use of them.
use std::fmt::Write;

use model::accounts::{Accounts, Change, Resource, ResourceEdit, ResourceFilter, WHOLE};
use wire::Controller;

use super::agree::{agrees, commit};
use super::entity::Verb;
use super::show::ClusterFacts;
use super::{Options, words};
use crate::accounting;
use crate::output::print;
use crate::table::{Column, Table};
use crate::trouble::Trouble;

/// The server of those that name none.
const SOME_SERVER: &str = "slurmdb";

/// Which resources, and what is said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    filter: ResourceFilter,
    edit: ResourceEdit,
    /// Of what is added; in the order given.
    names: Vec<String>,
    server: String,
    clusters: Vec<String>,
    has_type: bool,
    has_values: bool,
    with_clusters: bool,
    format: Option<String>,
}

/// As a refusal is told: to whom, and the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    Printed(String),
    Error(String),
}

/// Whether the word says `resource`, of which lists need four letters (there are reservations).
pub fn is_meant(verb: Verb, word: &str) -> bool {
    let least = if verb == Verb::Show { 4 } else { 1 };
    word.len() >= least && "resources".starts_with(word)
}

pub async fn act(
    controller: &mut Controller,
    cluster: &ClusterFacts,
    verb: Verb,
    wish: Wish,
    options: &Options,
) -> Result<i32, Trouble> {
    let all = controller.accounts().await?;
    let planned = match meant(&all, cluster, wish) {
        Ok(wish) => match verb {
            Verb::Show => return Ok(list(&all, cluster, &wish, options)),
            Verb::Add => add(&all, cluster, wish),
            Verb::Modify => {
                let sure = "You didn't set any conditions with 'WHERE'.\nAre you sure you want to continue?";
                if wish.has_values && wish.filter.is_empty() && !options.is_immediate && !agrees(sure) {
                    print("Aborted\n");
                    return Ok(0);
                }
                modify(&all, cluster, wish)
            }
            Verb::Delete => delete(&all, cluster, wish),
        },
        Err(wrong) => Err(wrong),
    };
    match planned {
        Ok((change, text)) => commit(controller, change, &text, options).await,
        Err(wrong) => Ok(tell(&wrong)),
    }
}

pub fn tell(wrong: &Wrong) -> i32 {
    match wrong {
        Wrong::Printed(text) => drop(print(text)),
        Wrong::Error(text) => eprint!("{text}"),
    }
    1
}

/// With clusters as associations name them.
fn meant(all: &Accounts, cluster: &ClusterFacts, mut wish: Wish) -> Result<Wish, Wrong> {
    let unknown = |name: String| {
        Wrong::Error(format!(
            " This cluster '{name}' doesn't exist.\n        Contact your admin to add it to accounting.\n \
             Need a valid cluster name to add a cluster resource.\n"
        ))
    };
    wish.filter = wish.filter.seen_from(all, &cluster.name).map_err(unknown)?;
    if !wish.clusters.is_empty() {
        wish.clusters = all.clusters_meant(&cluster.name, &wish.clusters).map_err(unknown)?;
    }
    Ok(wish)
}

fn add(all: &Accounts, cluster: &ClusterFacts, wish: Wish) -> Result<(Change, String), Wrong> {
    let server = if wish.server.is_empty() { SOME_SERVER } else { &wish.server };
    if wish.names.is_empty() {
        return Err(Wrong::Error(" Need name of resource to add.\n".into()));
    }
    let mut told = String::new();
    let mut last = None;
    for name in &wish.names {
        let known = all.resource(name, server);
        if known.is_none() {
            let lacks =
                |what: &str| Wrong::Error(format!(" Need to designate a resource {what} to initially add '{name}'.\n"));
            if !wish.has_type {
                return Err(lacks("type"));
            }
            wish.edit.count.ok_or_else(|| lacks("count"))?;
        }
        let has_share = |cluster: &&String| known.is_some_and(|one| one.shares.contains_key(*cluster));
        let fresh: Vec<&String> = wish.clusters.iter().filter(|cluster| !has_share(cluster)).collect();
        if known.is_some() && fresh.is_empty() {
            continue;
        }
        let _ = writeln!(told, "  {name}@{server}");
        if !fresh.is_empty() {
            let before = known.map_or(0, Resource::allocated);
            let percent = wish
                .edit
                .percent
                .ok_or_else(|| Wrong::Error(" PercentAllowed= says how much of it the clusters may use.\n".into()))?;
            if before + u32::from(percent) * fresh.len() as u32 > WHOLE {
                return Err(Wrong::Error(format!(
                    " Adding this {} clusters to resource {name}@{server} at {percent}% each , with {before}% already \
                     used,  would go over 100%.  Please redo your math and resubmit.\n",
                    wish.clusters.len()
                )));
            }
            for one in fresh {
                let _ = writeln!(told, "   Cluster - {}\t{percent}%", cluster.shown(one));
            }
        }
        last = Some((name, known.is_none()));
    }
    let Some((name, is_new)) = last else { return Err(Wrong::Printed(" Nothing new added.\n".into())) };
    let mut text = format!(" Adding Resource(s)\n{told} Settings\n");
    let mut setting = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<14} = {value}");
    };
    if is_new {
        setting("Name", name);
    }
    setting("Server", server);
    if is_new {
        setting("Description", wish.edit.description.as_ref().unwrap_or(name));
        wish.edit.server_type.iter().for_each(|kind| setting("ServerType", kind));
        wish.edit.count.iter().for_each(|count| setting("Count", &count.to_string()));
    }
    setting("Type", "License");
    let clusters = wish.clusters.iter().map(|name| cluster.shown(name).to_string()).collect();
    let server = server.to_string();
    Ok((Change::AddResources { names: wish.names, server, edit: wish.edit, clusters }, text))
}

fn modify(all: &Accounts, cluster: &ClusterFacts, wish: Wish) -> Result<(Change, String), Wrong> {
    let Wish { filter, edit, .. } = wish;
    let wrong = |text: &str| Err(Wrong::Error(format!("{text}\n")));
    if !wish.has_values {
        return wrong(" You didn't give me anything to set");
    }
    if edit.count.is_some() && !filter.clusters.is_empty() {
        return wrong("Can't change \"count\" on a cluster-based resource. Remove cluster selection.");
    }
    if edit.percent.is_some() && filter.clusters.is_empty() {
        return wrong("Can't change \"percentallowed\" without specifying a cluster.");
    }
    let mut text = String::new();
    let mut too_much = String::new();
    for resource in all.resources.values().filter(|one| filter.passes(one)) {
        let is_chosen = |one: &(&String, &u16)| filter.passes_share(one.0, *one.1);
        let chosen: Vec<&String> = resource.shares.iter().filter(is_chosen).map(|(name, _)| name).collect();
        if filter.is_about_shares() && chosen.is_empty() {
            continue;
        }
        if !filter.is_about_shares() {
            let _ = writeln!(text, "  {}", resource.license());
        }
        // What clusters hear of.
        if filter.is_about_shares() || edit.count.is_some() {
            shares(&mut text, cluster, resource, &chosen);
        }
        too_much.push_str(&over_allocated(cluster, resource, &chosen, edit.percent));
    }
    if !too_much.is_empty() {
        return Err(Wrong::Error(format!(
            "sacctmgr: error: You can not allocate more than 100% of a resource\n \
             If change was accepted it would look like this...\n{too_much}"
        )));
    }
    if text.is_empty() {
        return Err(Wrong::Printed(" Nothing modified\n".into()));
    }
    let filter = named(filter, cluster);
    Ok((Change::ModifyResources { filter, edit }, format!(" Modified server resource ...\n{text}")))
}

/// What clusters would have together, if that is more than there is; else nothing.
fn over_allocated(cluster: &ClusterFacts, resource: &Resource, chosen: &[&String], percent: Option<u16>) -> String {
    let Some(percent) = percent else { return String::new() };
    let mut after = resource.clone();
    after.shares.extend(chosen.iter().map(|name| ((*name).clone(), percent)));
    let total = after.allocated();
    if total <= WHOLE {
        return String::new();
    }
    let mut text = format!("  {}\n", resource.license());
    for (name, percent) in &after.shares {
        let _ = writeln!(text, "   Cluster - {}\t {percent}%", cluster.shown(name));
    }
    let _ = writeln!(text, "   total\t\t{total}%");
    text
}

fn delete(all: &Accounts, cluster: &ClusterFacts, wish: Wish) -> Result<(Change, String), Wrong> {
    let filter = wish.filter;
    if filter.is_empty() {
        return Err(Wrong::Error(" No conditions given to remove, not executing.\n".into()));
    }
    let mut text = String::new();
    for resource in all.resources.values().filter(|one| filter.passes(one)) {
        if !filter.is_about_shares() {
            let _ = writeln!(text, "  {}", resource.license());
        }
        let is_chosen = |one: &(&String, &u16)| filter.passes_share(one.0, *one.1);
        let chosen: Vec<&String> = resource.shares.iter().filter(is_chosen).map(|(name, _)| name).collect();
        shares(&mut text, cluster, resource, &chosen);
    }
    if text.is_empty() {
        return Err(Wrong::Printed(" Nothing deleted\n".into()));
    }
    let filter = named(filter, cluster);
    Ok((Change::DeleteResources { filter }, format!(" Deleting resource(s)...\n{text}")))
}

fn shares(text: &mut String, cluster: &ClusterFacts, resource: &Resource, chosen: &[&String]) {
    for name in chosen {
        let _ = writeln!(text, "  Cluster - {}\t- {}", cluster.shown(name), resource.license());
    }
}

/// With clusters as users name them.
fn named(mut filter: ResourceFilter, cluster: &ClusterFacts) -> ResourceFilter {
    filter.clusters = filter.clusters.iter().map(|name| cluster.shown(name).to_string()).collect();
    filter
}

/// One line: a resource, and the cluster whose part it is.
struct Row<'a> {
    resource: &'a Resource,
    /// The cluster's name, and its percent.
    share: Option<(&'a str, u16)>,
}

/// Name, title, width, what it shows.
type Field = (&'static str, &'static str, i32, fn(&Row) -> String);

const FIELDS: &[Field] = &[
    ("Name", "Name", 10, |row| row.resource.name.clone()),
    ("Server", "Server", 10, |row| row.resource.server.clone()),
    ("Type", "Type", 8, |_| "License".into()),
    ("Count", "Count", 6, |row| row.resource.count.to_string()),
    ("Allocated", "% Allocated", 11, |row| row.resource.allocated().to_string()),
    ("ServerType", "ServerType", 10, |row| row.resource.server_type.clone()),
    ("Cluster", "Cluster", 10, |row| row.share.map(|(name, _)| name.to_string()).unwrap_or_default()),
    ("Allowed", "% Allowed", 10, |row| row.share.map_or(0, |(_, percent)| percent).to_string()),
    ("CountAllowed", "# Allowed", 10, |row| row.share.map_or(0, |(_, percent)| row.resource.part(percent)).to_string()),
    ("Description", "Descr", 20, |row| row.resource.description.clone()),
    // There are none.
    ("Flags", "Flags", 20, |_| String::new()),
    ("ID", "ID", 6, |row| row.resource.id.to_string()),
];

fn list(all: &Accounts, cluster: &ClusterFacts, wish: &Wish, options: &Options) -> i32 {
    match table(all, cluster, wish, options) {
        Ok(text) => {
            print(&text);
            0
        }
        Err(field) => {
            eprintln!("Unknown field '{field}'");
            1
        }
    }
}

fn table(all: &Accounts, cluster: &ClusterFacts, wish: &Wish, options: &Options) -> Result<String, String> {
    let usual = match wish.with_clusters {
        true => "Name,Server,Type,Count,Allocated,ServerType,Cluster,Allowed",
        false => "Name,Server,Type,Count,Allocated,ServerType",
    };
    let format = wish.format.as_deref().unwrap_or(usual);
    let chosen = accounting::chosen(FIELDS, format, |field| field.0, |field| (field.1, field.2))?;
    let (fields, columns): (Vec<&Field>, Vec<Column>) = chosen.into_iter().unzip();
    let table = Table { columns, style: options.style.clone() };
    let mut text = String::new();
    if options.has_heading {
        table.heading(&mut text);
    }
    let mut put = |row: Row| {
        let texts: Vec<String> = fields.iter().map(|field| (field.3)(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    };
    for resource in all.resources.values().filter(|one| wish.filter.passes(one)) {
        if !wish.with_clusters {
            put(Row { resource, share: None });
            continue;
        }
        for (name, percent) in
            resource.shares.iter().filter(|(name, percent)| wish.filter.passes_share(name, **percent))
        {
            put(Row { resource, share: Some((cluster.shown(name), *percent)) });
        }
    }
    Ok(text)
}

/// Values from the beginning where something is added, else conditions until `set`; `where` leads back.
pub fn read(verb: Verb, given: &[String]) -> Result<Wish, Wrong> {
    let mut wish = Wish::default();
    let mut is_value = verb == Verb::Add;
    for word in given {
        let Some((key, value)) = word.split_once('=') else {
            match word.to_lowercase().as_str() {
                "set" => is_value = true,
                "where" => is_value = verb == Verb::Add,
                lower if lower.len() >= 5 && "withdeleted".starts_with(lower) => (),
                lower if lower.len() >= 5 && "withclusters".starts_with(lower) => wish.with_clusters = true,
                _ => wish.names.extend(listed(word)),
            }
            continue;
        };
        let key = key.trim_end_matches(['+', '-']).to_lowercase();
        match is_value {
            true => set(&mut wish, verb, &key, word, words::unquoted(value))?,
            false => condition(&mut wish, &key, word, value)?,
        }
    }
    if verb != Verb::Add {
        wish.filter.names.extend(std::mem::take(&mut wish.names));
    }
    Ok(wish)
}

/// In small letters, as in Slurm.
fn listed(text: &str) -> impl Iterator<Item = String> + '_ {
    words::unquoted(text).split(',').map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty())
}

fn begins(key: &str, of: &str, least: usize) -> bool {
    key.len() >= least && of.starts_with(key)
}

fn condition(wish: &mut Wish, key: &str, word: &str, value: &str) -> Result<(), Wrong> {
    let filter = &mut wish.filter;
    let is = |of: &str, least: usize| begins(key, of, least);
    match () {
        () if is("names", 1) => filter.names.extend(listed(value)),
        () if is("clusters", 1) => filter.clusters.extend(listed(value)),
        () if is("descriptions", 1) => filter.descriptions.extend(listed(value)),
        () if is("format", 1) => wish.format = Some(value.to_string()).filter(|format| !format.is_empty()),
        () if is("ids", 1) => filter.ids.extend(numbers::<u32>(value, "RES ID")?),
        () if is("percentallowed", 1) => filter.percents.extend(numbers::<u16>(value, "PercentAllowed")?),
        () if is("servertype", 7) => filter.server_types.extend(listed(value)),
        () if is("server", 2) => filter.servers.extend(listed(value)),
        () => {
            let text = format!(" Unknown condition: {word}\n Use keyword 'set' to modify SLURM_PRINT_VALUE\n");
            return Err(Wrong::Error(text));
        }
    }
    Ok(())
}

fn set(wish: &mut Wish, verb: Verb, key: &str, word: &str, value: &str) -> Result<(), Wrong> {
    let is = |of: &str, least: usize| begins(key, of, least);
    let edit = &mut wish.edit;
    match () {
        () if is("names", 1) || is("resources", 1) => {
            wish.names.extend(listed(value));
            return Ok(());
        }
        () if is("clusters", 1) && verb == Verb::Add => {
            wish.clusters.extend(listed(value));
            return Ok(());
        }
        () if is("clusters", 1) => {
            return Err(Wrong::Error(" Can't modify the cluster of an resource\n".into()));
        }
        () if is("count", 3) => edit.count = Some(number(value, "count")?),
        () if is("description", 1) => edit.description = Some(value.to_lowercase()),
        () if is("flags", 2) => {
            return Err(Wrong::Printed(format!(
                " Unknown Server Resource flag used in:\n  '{value}'\n Valid Server Resource flags are\n '(null)'\n"
            )));
        }
        () if is("server", 1) && verb == Verb::Add => wish.server = value.to_lowercase(),
        () if is("server", 1) => return Err(Wrong::Error(" Can't modify the server of a resource\n".into())),
        () if is("servertype", 7) => edit.server_type = Some(value.to_lowercase()),
        () if is("percentallowed", 1) => edit.percent = Some(number(value, "PercentAllowed")?),
        () if is("type", 1) => {
            if value.is_empty() || !"license".starts_with(&value.to_lowercase()) {
                return Err(Wrong::Error(format!(" Unknown resource type: '{value}'  Valid resources is License.\n")));
            }
            wish.has_type = true;
            return Ok(());
        }
        () => {
            let text = format!(" Unknown option: {word}\n Use keyword 'where' to modify condition\n");
            return Err(Wrong::Printed(text));
        }
    }
    wish.has_values = true;
    Ok(())
}

fn number<N: std::str::FromStr>(value: &str, of: &str) -> Result<N, Wrong> {
    value.parse().map_err(|_| Wrong::Error(format!("sacctmgr: error: Invalid value for {of} ({value})\n")))
}

fn numbers<N: std::str::FromStr>(value: &str, of: &str) -> Result<Vec<N>, Wrong> {
    listed(value).map(|one| number(&one, of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(verb: Verb, text: &str) -> Result<Wish, Wrong> {
        read(verb, &text.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_as_slurm_reads_them() {
        let wish = words(Verb::Add, "Matlab,idl s=Flex servert=flexlm cou=10 t=lic c=bench perc=50").unwrap();
        let edit = ResourceEdit {
            count: Some(10),
            server_type: Some("flexlm".into()),
            percent: Some(50),
            ..ResourceEdit::default()
        };
        assert_eq!(
            (&wish.names, wish.server.as_str(), &wish.edit),
            (&vec!["matlab".into(), "idl".into()], "flex", &edit)
        );
        assert!(wish.has_type && wish.clusters == ["bench"]);

        let wish = words(Verb::Modify, "matlab where server=flex set count=3 where cluster=bench").unwrap();
        let set = |name: &str| [name.to_string()].into();
        let filter = ResourceFilter {
            names: set("matlab"),
            servers: set("flex"),
            clusters: set("bench"),
            ..ResourceFilter::default()
        };
        assert_eq!((wish.filter, wish.edit.count), (filter, Some(3)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| Err(Wrong::Error(text.to_string()));
        let printed = |text: &str| Err(Wrong::Printed(text.to_string()));
        for (verb, text, wrong) in [
            (Verb::Add, "a type=x", error(" Unknown resource type: 'x'  Valid resources is License.\n")),
            (Verb::Add, "a count=x", error("sacctmgr: error: Invalid value for count (x)\n")),
            (Verb::Modify, "a set cluster=b", error(" Can't modify the cluster of an resource\n")),
            (
                Verb::Modify,
                "a set colour=b",
                printed(" Unknown option: colour=b\n Use keyword 'where' to modify condition\n"),
            ),
            (
                Verb::Show,
                "colour=b",
                error(" Unknown condition: colour=b\n Use keyword 'set' to modify SLURM_PRINT_VALUE\n"),
            ),
        ] {
            assert_eq!(words(verb, text), wrong, "{text}");
        }
    }
}
