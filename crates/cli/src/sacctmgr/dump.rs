//! `sacctmgr dump` and `load`: the tree of accounts as a file of Slurm's form.
use std::collections::{BTreeMap, BTreeSet};

use model::accounts::{
    Accounts, AdminLevel, Association, AssociationId, Change, Edit, EntityFilter, Field, Limits, ROOT, Shares, Tres,
    Value,
};

use super::Entity;
use super::words::{self, Begin};

const HEAD: &str = "\
# To edit this file start with a cluster line for the new cluster
# Cluster - 'cluster_name':MaxTRESPerJob=node=50
# Followed by Accounts you want in this fashion (root is created by default)...
# Parent - 'root'
# Account - 'cs':MaxTRESPerJob=node=5:MaxJobs=4:MaxTRESMinsPerJob=cpu=20:FairShare=399:MaxWallDurationPerJob=40:Description='Computer Science':Organization='LC'
# Any of the options after a ':' can be left out and they can be in any order.
# If you want to add any sub accounts just list the Parent THAT HAS ALREADY
# BEEN CREATED before the account line in this fashion...
# Parent - 'cs'
# Account - 'test':MaxTRESPerJob=node=1:MaxJobs=1:MaxTRESMinsPerJob=cpu=1:FairShare=1:MaxWallDurationPerJob=1:Description='Test Account':Organization='Test'
# To add users to a account add a line like this after a Parent - 'line'
# User - 'lipari':MaxTRESPerJob=node=2:MaxJobs=3:MaxTRESMinsPerJob=cpu=4:FairShare=1:MaxWallDurationPerJob=1
";

/// The whole file; `place` is the cluster as associations name it.
pub fn file(all: &Accounts, cluster: &str, place: &str) -> String {
    lines(all, cluster, place).into_iter().fold(HEAD.to_string(), |text, line| text + &line + "\n")
}

/// Its lines without the explanation.
pub fn lines(all: &Accounts, cluster: &str, place: &str) -> Vec<String> {
    let Some(root) = all.account_association_in(place, ROOT) else { return vec![format!("Cluster - '{cluster}'")] };
    let mut out = vec![format!("Cluster - '{cluster}'{}", settings(root))];
    below(all, root.id, &mut out);
    out
}

fn below(all: &Accounts, id: AssociationId, out: &mut Vec<String>) {
    let own = &all.associations[&id];
    let mut children: Vec<&Association> = all.associations.values().filter(|one| one.parent == id).collect();
    if children.is_empty() {
        return;
    }
    children.sort_by_key(|one| (one.is_account(), &one.account, &one.user, &one.partition));
    out.push(format!("Parent - '{}'", own.account));
    for one in &children {
        match one.is_account() {
            true => {
                let account = &all.accounts[&one.account];
                out.push(format!(
                    "Account - '{}':Description='{}':Organization='{}'{}",
                    one.account,
                    account.description,
                    account.organization,
                    settings(one)
                ));
            }
            false => out.push(format!("User - '{}'{}{}", one.user, of_user(all, one), settings(one))),
        }
    }
    children.into_iter().filter(|one| one.is_account()).for_each(|one| below(all, one.id, out));
}

fn of_user(all: &Accounts, one: &Association) -> String {
    let mut text = String::new();
    if !one.partition.is_empty() {
        text.push_str(&format!(":Partition='{}'", one.partition));
    }
    let Some(user) = all.users.get(&one.user) else { return text };
    text.push_str(&format!(":DefaultAccount='{}'", user.default_account_in(&one.cluster)));
    if !user.default_wckey.is_empty() {
        text.push_str(&format!(":DefaultWCKey='{}'", user.default_wckey));
    }
    if user.admin_level != AdminLevel::None {
        text.push_str(&format!(":AdminLevel='{}'", user.admin_level.name()));
    }
    let keys: Vec<&str> = all
        .wckeys
        .iter()
        .filter(|key| key.user == one.user && key.cluster == one.cluster)
        .map(|key| key.name.as_str())
        .collect();
    let coordinated: Vec<&str> = all
        .accounts
        .values()
        .filter(|account| account.coordinators.contains(&one.user))
        .map(|account| account.name.as_str())
        .collect();
    if !coordinated.is_empty() {
        text.push_str(&format!(":Coordinator='{}'", coordinated.join(",")));
    }
    if !keys.is_empty() {
        text.push_str(&format!(":WCKeys='{}'", keys.join(",")));
    }
    text
}

fn settings(one: &Association) -> String {
    let mut text = String::new();
    if !one.default_qos.is_empty() {
        text.push_str(&format!(":DefaultQOS='{}'", one.default_qos));
    }
    text.push_str(&match one.shares {
        Shares::Number(number) => format!(":Fairshare={number}"),
        Shares::Parent => ":Fairshare=parent".into(),
    });
    let Limits { grp_jobs, grp_jobs_accrue, grp_submit, grp_wall, .. } = one.limits;
    let limits = &one.limits;
    let tres = |name: &str, tres: &Tres| if tres.is_empty() { String::new() } else { format!(":{name}={tres}") };
    let count = |name: &str, value: Option<u32>| value.map(|value| format!(":{name}={value}")).unwrap_or_default();
    text.push_str(&tres("GrpTRESMins", &limits.grp_tres_mins));
    text.push_str(&tres("GrpTRESRunMins", &limits.grp_tres_run_mins));
    text.push_str(&tres("GrpTRES", &limits.grp_tres));
    text.push_str(&count("GrpJobs", grp_jobs));
    text.push_str(&count("GrpJobsAccrue", grp_jobs_accrue));
    text.push_str(&count("GrpSubmitJobs", grp_submit));
    text.push_str(&count("GrpWall", grp_wall));
    text.push_str(&tres("MaxTRESMinsPerJob", &limits.max_tres_mins));
    text.push_str(&tres("MaxTRESRunMins", &limits.max_tres_run_mins));
    text.push_str(&tres("MaxTRESPerJob", &limits.max_tres));
    text.push_str(&tres("MaxTRESPerNode", &limits.max_tres_per_node));
    text.push_str(&count("MaxJobs", limits.max_jobs));
    text.push_str(&count("MaxJobsAccrue", limits.max_jobs_accrue));
    text.push_str(&count("MaxSubmitJobs", limits.max_submit));
    text.push_str(&count("MaxWallDurationPerJob", limits.max_wall));
    text.push_str(&count("MinPrioThresh", limits.min_priority));
    text.push_str(&count("Priority", limits.priority));
    // All that are allowed: which of them are the account's as well is no matter of the file.
    if let Some(allowed) = one.qos.as_ref().filter(|allowed| !allowed.is_empty()) {
        text.push_str(&format!(":QOS='{}'", allowed.iter().cloned().collect::<Vec<_>>().join(",")));
    }
    text
}

/// Which cluster a file is for: the one that is named besides it, or in it.
pub fn cluster_of(text: &str, named: Option<&str>) -> Option<String> {
    let in_file = text.lines().find_map(|line| {
        let (kind, rest) = line.trim().split_once('-')?;
        let is_cluster = kind.trim().eq_ignore_ascii_case("cluster") && !line.trim().starts_with('#');
        is_cluster.then(|| split(rest.trim()).first().map(|name| unquoted(name).to_lowercase())).flatten()
    });
    named.map(str::to_lowercase).or(in_file)
}

/// What a file asks for, one change after the other; `place` is the cluster as associations name it.
pub fn changes(all: &Accounts, cluster: &str, place: &str, text: &str) -> Result<Vec<Change>, String> {
    let here = || all.associations.values().filter(|one| one.cluster == place);
    let mut known: BTreeSet<String> = here().map(|one| one.account.clone()).collect();
    known.insert(ROOT.into());
    let above = |one: &Association| all.associations.get(&one.parent).map(|parent| parent.account.clone());
    let mut parents: BTreeMap<String, String> =
        here().filter(|one| one.is_account()).filter_map(|one| Some((one.account.clone(), above(one)?))).collect();
    let mut users: BTreeSet<(String, String, String)> =
        here().map(|one| (one.account.clone(), one.user.clone(), one.partition.clone())).collect();
    let clusters = vec![cluster.to_string()];
    let chosen = EntityFilter { clusters: [cluster.to_string()].into(), ..EntityFilter::default() };
    let (mut parent, mut found) = (ROOT.to_string(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| format!("line({number}): {why}: {line}");
        let (kind, rest) = line.split_once('-').ok_or_else(|| wrong("misformatted line"))?;
        let mut parts = split(rest.trim());
        if parts.is_empty() {
            return Err(wrong("a name is missing"));
        }
        let name = unquoted(&parts.remove(0)).to_lowercase();
        let read = |entity: Entity, parts: &[String]| {
            words::read(entity, parts, Begin::Values).map_err(|wrongs| wrong(wrongs.join("; ").trim()))
        };
        match kind.trim().to_lowercase().as_str() {
            "cluster" => {
                let words = read(Entity::Cluster, &parts)?;
                if !words.edits.is_empty() {
                    found.push(Change::ModifyCluster { edits: words.edits, clusters: clusters.clone() });
                }
            }
            "parent" if known.contains(&name) => parent = name,
            "parent" => return Err(wrong("there is no such account")),
            "account" | "project" => {
                parts.retain(|part| !is_of_users(part));
                let words = read(Entity::Account, &parts)?;
                let mut edits: Vec<Edit> = words.edits.into_iter().filter(|edit| edit.field != Field::Parent).collect();
                // Whoever stands elsewhere in the file moves there.
                if parents.insert(name.clone(), parent.clone()).is_some_and(|before| before != parent) {
                    edits.insert(0, Edit { field: Field::Parent, value: Value::Text(parent.clone()) });
                }
                if known.insert(name.clone()) {
                    let (parent, clusters) = (parent.clone(), clusters.clone());
                    found.push(Change::AddAccounts { names: vec![name], parent, edits, clusters });
                } else if !edits.is_empty() {
                    let filter = EntityFilter { names: [name].into(), ..chosen.clone() };
                    found.push(Change::ModifyAccounts { filter, edits });
                }
            }
            "user" => {
                let coordinated = parts.iter().position(|part| part.to_lowercase().starts_with("coordinator="));
                let coordinated = coordinated.map(|place| parts.remove(place));
                let words = read(Entity::User, &parts)?;
                let keys = words.wckeys.clone();
                let partition = words.filter.partitions.first().cloned().unwrap_or_default();
                let is_new = users.insert((parent.clone(), name.clone(), partition.clone()));
                // The default may be an account that comes later in the file.
                let is_own =
                    |edit: &Edit| edit.field != Field::DefaultAccount || edit.value == Value::Text(parent.clone());
                let edits: Vec<Edit> = words.edits.into_iter().filter(is_own).collect();
                let partitions: Vec<String> = if partition.is_empty() { Vec::new() } else { vec![partition.clone()] };
                if is_new {
                    found.push(Change::AddUsers {
                        names: vec![name.clone()],
                        accounts: vec![parent.clone()],
                        partitions,
                        edits,
                        clusters: clusters.clone(),
                    });
                } else if !edits.is_empty() {
                    let filter = EntityFilter {
                        names: [name.clone()].into(),
                        accounts: [parent.clone()].into(),
                        // Without one it is the place for all others, and no other place of the user's.
                        partitions: [partition].into(),
                        ..chosen.clone()
                    };
                    found.push(Change::ModifyUsers { filter, edits });
                }
                if !keys.is_empty() {
                    let (users, clusters) = (vec![name.clone()], clusters.clone());
                    found.push(Change::AddWckeys { names: keys, users, clusters });
                }
                if let Some(list) = coordinated {
                    let list = list.split_once('=').map_or("", |(_, list)| list).to_string();
                    let accounts =
                        unquoted(&list).split(',').map(str::to_lowercase).filter(|one| known.contains(one)).collect();
                    found.push(Change::AddCoordinators { accounts, users: vec![name] });
                }
            }
            _ => return Err(wrong("misformatted line")),
        }
    }
    Ok(found)
}

/// Slurm takes it on every line, and gives it to users only.
fn is_of_users(part: &str) -> bool {
    part.to_lowercase().starts_with("adminlevel=")
}

/// What lines say that is not theirs to say.
pub fn misplaced(text: &str) -> Vec<String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.trim().to_lowercase().starts_with("account"));
    let parts = lines.flat_map(|(number, line)| split(line).into_iter().map(move |part| (number, part)));
    let parts = parts.filter(|(_, part)| is_of_users(part));
    parts.map(|(number, part)| format!("line({number}): {part} is not of an account: left out")).collect()
}

/// At the colons that are not inside quotes.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut quote) = (vec![String::new()], None);
    for c in text.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (':', None) => {
                parts.push(String::new());
                continue;
            }
            _ => (),
        }
        parts.last_mut().expect("there is always one").push(c);
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['\'', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_at_colons_outside_quotes() {
        assert_eq!(split("'a':Description='x: y':MaxJobs=3"), ["'a'", "Description='x: y'", "MaxJobs=3"]);
        let found = changes(
            &Accounts::default(),
            "c",
            "",
            "Cluster - 'c':Fairshare=3\nParent - 'root'\nAccount - 'a':MaxJobs=3\nParent - 'a'\nUser - 'u':DefaultAccount='a'\n",
        );
        assert_eq!(found.map(|found| found.len()), Ok(3));
        assert_eq!(cluster_of("# x\nCluster - 'C':Fairshare=3\n", None).as_deref(), Some("c"));
        assert!(changes(&Accounts::default(), "c", "", "Parent - 'nope'").is_err());
    }

    /// The same user in the same account, once for a partition and once for all others.
    #[test]
    fn places_of_a_user_in_several_partitions_are_told_apart() {
        let mut all = Accounts::default();
        all.users.insert("u".into(), model::accounts::User { name: "u".into(), ..Default::default() });
        for (id, user, partition, shares) in [(1, "", "", 1), (2, "u", "debug", 1), (3, "u", "", 3)] {
            let shares = model::accounts::Shares::Number(shares);
            let (parent, account) = (id.min(2) - 1, "root".to_string());
            let (user, partition) = (user.to_string(), partition.to_string());
            all.associations
                .insert(id, Association { id, parent, account, user, partition, shares, ..Default::default() });
        }
        let file = "Parent - 'root'\nUser - 'u':Partition='debug':Fairshare=1\nUser - 'u':Fairshare=3\n";
        let found = changes(&all, "c", "", file).unwrap();
        let chosen: Vec<Vec<u32>> = found
            .iter()
            .map(|change| match change {
                Change::ModifyUsers { filter, .. } => all.chosen_users(&filter.clone().seen_from("c")),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(chosen, [[2], [3]]);
    }

    #[test]
    fn an_account_goes_where_the_file_has_it() {
        let mut all = Accounts::default();
        for (id, account, parent) in [(1, "root", 0), (2, "a", 1), (3, "b", 2)] {
            all.associations.insert(id, Association { id, parent, account: account.into(), ..Default::default() });
        }
        let moved = changes(&all, "c", "", "Parent - 'root'\nAccount - 'a'\nAccount - 'b'\n").unwrap();
        let [Change::ModifyAccounts { filter, edits }] = &moved[..] else { panic!("{moved:?}") };
        assert_eq!(filter.names, ["b".to_string()].into());
        assert_eq!(edits[..], [Edit { field: Field::Parent, value: Value::Text("root".into()) }]);
    }
}
