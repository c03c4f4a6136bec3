//! `sshare`: the tree of accounts and users with their shares.
use model::accounts::{Accounts, Association, Shares};

use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};
use crate::output::print;
use crate::table::{Column, Style, Table};
use crate::trouble::{self, Trouble};
use crate::{context, sacctmgr, users, version};

#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    flag("accounts", Some('A'), Value::Required),
    flag("all", Some('a'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
    flag("long", Some('l'), Value::None),
    flag("noheader", Some('n'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("partition", Some('m'), Value::None),
    flag("usage", None, Value::None),
    flag("users", Some('u'), Value::Required),
    flag("Users", Some('U'), Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

const HELP: &str = "\
sshare [OPTIONS]
  -A, --accounts=LIST   these accounts only
  -a, --all             all users
  -l, --long            more columns
  -m, --partition       the partitions of associations too
  -n, --noheader        no heading
  -o, --format=FIELDS   these columns
  -p, --parsable        fields with a '|' after each
  -P, --parsable2       fields with a '|' between
  -U, --Users           users only, not their accounts
  -u, --users=LIST      these users
  -V, --version         the version
";

struct Row<'a> {
    all: &'a Accounts,
    cluster: &'a str,
    one: &'a Association,
    depth: usize,
}

struct Field {
    name: &'static str,
    width: i32,
    show: fn(&Row) -> String,
}

/// The sum over an association and its siblings of a kind: users among users, accounts among accounts.
fn norm_shares(row: &Row) -> f64 {
    let mut share = 1.0;
    for one in row.all.lineage(row.one.id) {
        let Some(parent) = row.all.associations.get(&one.parent) else { break };
        let Shares::Number(own) = one.shares else { continue };
        let total: u64 = row
            .all
            .associations
            .values()
            .filter(|sibling| sibling.parent == parent.id)
            .map(|sibling| match sibling.shares {
                Shares::Number(number) => u64::from(number),
                Shares::Parent => 0,
            })
            .sum();
        share *= if total == 0 { 0.0 } else { f64::from(own) / total as f64 };
    }
    share
}

#[rustfmt::skip]
static FIELDS: &[Field] = &[
    Field { name: "Account", width: -20, show: |row| format!("{}{}", " ".repeat(row.depth), row.one.account) },
    Field { name: "Cluster", width: 10, show: |row| row.cluster.into() },
    Field { name: "ID", width: 6, show: |row| row.one.id.to_string() },
    Field { name: "NormShares", width: 11, show: |row| format!("{:.6}", norm_shares(row)) },
    Field { name: "Partition", width: 12, show: |row| row.one.partition.clone() },
    Field { name: "RawShares", width: 10, show: |row| match row.one.shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    } },
    Field { name: "User", width: 10, show: |row| row.one.user.clone() },
    Field { name: "GrpTRESMins", width: 30, show: |row| row.one.limits.grp_tres_mins.to_string() },
];

/// Columns that need the usage of a job's resources over time, which is not kept yet.
const LATER: &[&str] = &["rawusage", "normusage", "effectvusage", "fairshare", "levelfs", "grptresraw", "tresrunmins"];
const USUAL: &str = "Account,User,RawShares,NormShares";
const WITH_PARTITIONS: &str = "Account,User,Partition,RawShares,NormShares";

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match getopt::parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(text) => {
            eprintln!("sshare: {text}\nTry \"sshare --help\" for more information");
            return 1;
        }
    };
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    if parsed.has("help") || parsed.has("usage") {
        print(HELP);
        return 0;
    }
    let shown = context::block_on(async {
        let (_, mut controller) = trouble::connect().await?;
        let accounts = controller.accounts().await?;
        let cluster = controller.configuration().await?.config.cluster_name;
        Ok::<_, Trouble>(render(&accounts, &cluster, &parsed))
    });
    match shown {
        Ok(Ok(text)) => {
            print(&text);
            0
        }
        Ok(Err(text)) | Err(Trouble::NoCluster(text)) | Err(Trouble::Call(text)) => {
            eprintln!("sshare: error: {text}");
            1
        }
    }
}

fn render(all: &Accounts, cluster: &str, parsed: &Parsed) -> Result<String, String> {
    let usual = if parsed.has("partition") { WITH_PARTITIONS } else { USUAL };
    let fields = chosen(parsed.value("format").unwrap_or(usual))?;
    let (fields, columns): (Vec<&Field>, Vec<Column>) = fields.into_iter().unzip();
    let style = match (parsed.has("parsable"), parsed.has("parsable2")) {
        (_, true) => Style::Between("|".into()),
        (true, false) => Style::After("|".into()),
        (false, false) => Style::Aligned,
    };
    let table = Table { columns, style };
    let mut text = String::new();
    if !parsed.has("noheader") {
        table.heading(&mut text);
    }
    let list = |name: &str| -> Option<Vec<String>> {
        Some(parsed.value(name)?.split(',').map(|word| word.trim().to_lowercase()).collect())
    };
    let accounts = list("accounts");
    // Without a word, one sees oneself; -a shows all.
    let wanted_users = match (parsed.has("all"), list("users")) {
        (true, _) => None,
        (false, Some(users)) => Some(users),
        (false, None) if accounts.is_some() => None,
        (false, None) => Some(vec![wire::accounts::user_name(users::own_uid()).unwrap_or_default()]),
    };
    for (id, depth) in sacctmgr::tree(all) {
        let one = &all.associations[&id];
        let is_wanted = match one.is_account() {
            true => !parsed.has("Users"),
            false => wanted_users.as_ref().is_none_or(|users| users.contains(&one.user)),
        };
        let is_in = accounts.as_ref().is_none_or(|accounts| accounts.contains(&one.account));
        if !is_wanted || !is_in {
            continue;
        }
        let row = Row { all, cluster, one, depth };
        let texts: Vec<String> = fields.iter().map(|field| (field.show)(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    }
    Ok(text)
}

fn chosen(format: &str) -> Result<Vec<(&'static Field, Column)>, String> {
    let words = format.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (name, width) = match word.split_once('%') {
                Some((name, width)) => (name, width.parse::<i32>().ok().filter(|width| *width != 0)),
                None => (word, None),
            };
            let begins = |known: &str| known.len() >= name.len() && known[..name.len()].eq_ignore_ascii_case(name);
            if LATER.iter().any(|known| begins(known)) && !FIELDS.iter().any(|field| begins(field.name)) {
                return Err(format!("{name}: usage is not kept by this version yet"));
            }
            let field =
                FIELDS.iter().find(|field| begins(field.name)).ok_or(format!("Invalid field requested: \"{name}\""))?;
            Ok((field, Column::new(field.name, width.unwrap_or(field.width))))
        })
        .collect()
}
