//! `sshare`: the shares of accounts and users, what they have used, and what that makes of their priority.
use model::accounts::{Accounts, Amounts, Association, Place, Shares, Standing};

use crate::getopt::{Flag, Parsed, Value, flag, words};
use crate::output::print;
use crate::table::{Column, Table};
use crate::trouble::{self, Trouble};
use crate::viewer::unreachable;
use crate::{accounting, context, sacctmgr, users};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("accounts", Some('A'), Value::Required),
    flag("all", Some('a'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
    flag("helpformat", Some('e'), Value::None),
    flag("long", Some('l'), Value::None),
    flag("noheader", Some('n'), Value::None),
    flag("noheader", Some('h'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("partition", Some('m'), Value::None),
    flag("usage", None, Value::None),
    flag("users", Some('u'), Value::Required),
    flag("Users", Some('U'), Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
Usage:  sshare [OPTION]
  Valid OPTIONs are:
  -A, --accounts=LIST   these accounts only
  -a, --all             all users
  -e, --helpformat      the names of all columns
  -l, --long            more columns
  -m, --partition       the partitions of associations too
  -h, -n, --noheader    no heading
  -o, --format=FIELDS   these columns
  -p, --parsable        fields with a '|' after each
  -P, --parsable2       fields with a '|' between
  -U, --Users           users only, not their accounts
  -u, --users=LIST      these users
  -v, --verbose         display more information
  -V, --version         the version
";

struct Row<'a> {
    cluster: &'a str,
    one: &'a Association,
    place: &'a Place,
    depth: usize,
}

impl Row<'_> {
    fn is_root(&self) -> bool {
        self.one.parent == 0
    }

    /// What the root, to which all belongs, has nothing to say about.
    fn unless_root(&self, text: String) -> String {
        if self.is_root() { String::new() } else { text }
    }
}

struct Field {
    name: &'static str,
    width: i32,
    show: fn(&Row) -> String,
}

#[rustfmt::skip]
static FIELDS: &[Field] = &[
    Field { name: "Account", width: -20, show: |row| format!("{}{}", " ".repeat(row.depth), row.one.account) },
    Field { name: "Cluster", width: 10, show: |row| row.cluster.into() },
    Field { name: "EffectvUsage", width: 13, show: |row| format!("{:.6}", row.place.usage_effective) },
    Field { name: "FairShare", width: 10, show: |row| row.place.fair_share.map(|factor| format!("{factor:.6}")).unwrap_or_default() },
    Field { name: "GrpTRESMins", width: 30, show: |row| row.one.limits.grp_tres_mins.to_string() },
    Field { name: "GrpTRESRaw", width: 30, show: |row| minutes(&row.place.now.used.map(|secs| secs as u64)) },
    Field { name: "ID", width: 6, show: |row| row.one.id.to_string() },
    Field { name: "LevelFS", width: 10, show: |row| row.unless_root(row.place.level_fs.map_or("inf".into(), |level| format!("{level:.6}"))) },
    Field { name: "NormShares", width: 11, show: |row| format!("{:.6}", row.place.shares_norm) },
    Field { name: "NormUsage", width: 11, show: |row| row.unless_root(format!("{:.6}", row.place.usage_norm)) },
    Field { name: "Partition", width: 12, show: |row| row.one.partition.clone() },
    Field { name: "RawShares", width: 10, show: |row| row.unless_root(match row.one.shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    }) },
    Field { name: "RawUsage", width: 11, show: |row| format!("{}", row.place.now.used.billing as u64) },
    Field { name: "TRESRunMins", width: 30, show: |row| minutes(&row.place.now.run_secs) },
    Field { name: "User", width: 10, show: |row| row.one.user.clone() },
];

const USUAL: &str = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
const LONG: &str =
    "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins";

/// `cpu=78,mem=7853,energy=0,…`: every resource that Slurm counts, in minutes.
pub fn minutes(secs: &Amounts) -> String {
    let fixed = [
        ("cpu", secs.cpu),
        ("mem", secs.mem),
        ("energy", 0),
        ("node", secs.node),
        ("billing", secs.billing),
        ("fs/disk", 0),
        ("vmem", 0),
        ("pages", 0),
    ];
    let others = secs.others.iter().map(|(name, amount)| (name.as_str(), *amount));
    let all = fixed.into_iter().chain(others).map(|(name, amount)| format!("{name}={}", amount / 60));
    all.collect::<Vec<_>>().join(",")
}

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match accounting::begin("sshare", FLAGS, HELP, arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if parsed.has("helpformat") {
        print(&names());
        return 0;
    }
    let shown = context::ask(async {
        let (_, mut controller) = trouble::connect().await?;
        let accounts = controller.accounts().await?;
        let standing = controller.standing().await?;
        let cluster = controller.configuration().await?.config.cluster_name;
        let clusters = parsed.value("clusters").map(words).unwrap_or_default();
        if let Some(complaint) = unreachable(&clusters, &cluster) {
            return Ok(Err(complaint));
        }
        Ok::<_, Trouble>(render(&accounts, &standing, &cluster, &parsed))
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

fn names() -> String {
    let mut text = String::new();
    for four in FIELDS.chunks(4) {
        let line: Vec<String> = four.iter().map(|field| format!("{:<17}", field.name)).collect();
        text.push_str(&line.join(" "));
        text.push('\n');
    }
    text
}

fn render(all: &Accounts, standing: &Standing, cluster: &str, parsed: &Parsed) -> Result<String, String> {
    let usual = if parsed.has("long") { LONG } else { USUAL };
    let usual = if parsed.has("partition") { usual.replacen("User,", "User,Partition,", 1) } else { usual.into() };
    let format = parsed.value("format").unwrap_or(&usual);
    let fields = accounting::chosen(FIELDS, format, |field| field.name, |field| (field.name, field.width))
        .map_err(|name| format!("Invalid field requested: \"{name}\""))?;
    let (fields, columns): (Vec<&Field>, Vec<Column>) = fields.into_iter().unzip();
    let table = Table { columns, style: accounting::style(parsed) };
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
        (false, None) => Some(vec![wire::accounts::user_name(users::own_uid()).unwrap_or_default()]),
    };
    if parsed.has("verbose") {
        let told = |what: &str, list: &Option<Vec<String>>| {
            let lines: Vec<String> = match list {
                Some(list) => list.iter().map(|one| format!("\t: {one}\n")).collect(),
                None => vec!["\t: all\n".into()],
            };
            format!("{what} requested:\n{}", lines.concat())
        };
        eprint!("{}{}", told("Users", &wanted_users), told("Accounts", &accounts));
    }
    let only_users = parsed.has("Users");
    let nobody = Place::default();
    let is_shown = |one: &Association| {
        let is_in = accounts.as_ref().is_none_or(|accounts| accounts.contains(&one.account));
        let is_wanted = match one.is_account() {
            true => !only_users,
            false => wanted_users.as_ref().is_none_or(|users| users.contains(&one.user)),
        };
        is_in && is_wanted
    };
    for (id, _) in sacctmgr::tree(all) {
        let one = &all.associations[&id];
        if !is_shown(one) {
            continue;
        }
        let depth = all.lineage(id).skip(1).filter(|above| is_shown(above)).count();
        let row = Row { cluster, one, place: standing.associations.get(&id).unwrap_or(&nobody), depth };
        let texts: Vec<String> = fields.iter().map(|field| (field.show)(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    }
    Ok(text)
}
