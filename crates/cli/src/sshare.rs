//! `sshare`: the shares of accounts and users, what they have used, and what that makes of their priority.
use model::accounts::{Accounts, Amounts, Association, Place, Shares, Standing};

use crate::getopt::{Flag, Parsed, Value, flag, words};
use crate::output::print;
use crate::table::{Column, Table};
use crate::trouble::{self, Trouble};
use crate::viewer::unreachable;
use crate::{accounting, context, json, sacctmgr, users};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("accounts", Some('A'), Value::Required),
    flag("all", Some('a'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
    flag("helpformat", Some('e'), Value::None),
    flag("json", None, Value::Optional),
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
    flag("yaml", None, Value::Optional),
];

pub const HELP: &str = "\
Usage:  sshare [OPTION]
  Valid OPTIONs are:
  -A, --accounts=LIST   these accounts only
  -a, --all             all users
  -e, --helpformat      the names of all columns
      --json[=PARSER]   JSON
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
      --yaml[=PARSER]   YAML
";

struct Row<'a> {
    cluster: &'a str,
    one: &'a Association,
    place: &'a Place,
    depth: usize,
    /// There is no fair tree.
    is_classic: bool,
}

impl Row<'_> {
    fn is_root(&self) -> bool {
        self.one.parent == 0
    }

    /// Who shares with the parent's siblings has no level; nor has the root, where levels are compared.
    fn level_fs(&self) -> String {
        match (self.one.shares, self.place.level_fs) {
            (Shares::Parent, _) => String::new(),
            (_, None) => self.unless_root("inf".into()),
            (_, Some(level)) if self.is_classic => format!("{level:.6}"),
            (_, Some(level)) => self.unless_root(format!("{level:.6}")),
        }
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
    Field { name: "LevelFS", width: 10, show: |row| row.level_fs() },
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
    let all = counted(secs).into_iter().map(|(name, amount)| format!("{name}={}", amount / 60));
    all.collect::<Vec<_>>().join(",")
}

/// Every resource that Slurm counts.
fn counted(secs: &Amounts) -> Vec<(String, u64)> {
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
    fixed.into_iter().chain(others).map(|(name, amount)| (name.to_string(), amount)).collect()
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
    let asked = match json::begin("sshare", &parsed) {
        Ok(shape) => shape,
        Err(code) => return code,
    };
    let shown = context::ask(async {
        let (_, mut controller) = trouble::connect().await?;
        let accounts = controller.accounts().await?;
        let standing = controller.standing().await?;
        let config = controller.configuration().await?.config;
        let cluster = &config.cluster_name;
        let clusters = parsed.value("clusters").map(words).unwrap_or_default();
        if let Some(complaint) = unreachable(&clusters, cluster) {
            return Ok(Err(complaint));
        }
        if parsed.has("json") || parsed.has("yaml") {
            let rows = rows(&accounts, &standing, cluster, &parsed);
            let text = document(json::settled(asked, &config), cluster, &accounts, &rows);
            return Ok(Ok(if parsed.has("yaml") { json::yaml(&text) } else { text }));
        }
        Ok::<_, Trouble>(render(&accounts, &standing, cluster, &parsed))
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
    let usual = match (parsed.has("long"), standing.classic.is_some()) {
        (true, false) => LONG.to_string(),
        (true, true) => LONG.replace("LevelFS,", ""),
        (false, _) => USUAL.to_string(),
    };
    let usual = if parsed.has("partition") { usual.replacen("User,", "User,Partition,", 1) } else { usual };
    let format = parsed.value("format").unwrap_or(&usual);
    let fields = accounting::chosen(FIELDS, format, |field| field.name, |field| (field.name, field.width))
        .map_err(|name| format!("Invalid field requested: \"{name}\""))?;
    let (fields, columns): (Vec<&Field>, Vec<Column>) = fields.into_iter().unzip();
    let table = Table { columns, style: accounting::style(parsed) };
    let mut text = String::new();
    if !parsed.has("noheader") {
        table.heading(&mut text);
    }
    for row in rows(all, standing, cluster, parsed) {
        let texts: Vec<String> = fields.iter().map(|field| (field.show)(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    }
    Ok(text)
}

static NOBODY: std::sync::LazyLock<Place> = std::sync::LazyLock::new(Place::default);

/// Who is to be shown, each before those below it.
fn rows<'a>(all: &'a Accounts, standing: &'a Standing, cluster: &'a str, parsed: &Parsed) -> Vec<Row<'a>> {
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
    let is_shown = |one: &Association| {
        let is_in = accounts.as_ref().is_none_or(|accounts| accounts.contains(&one.account));
        let is_wanted = match one.is_account() {
            true => !only_users,
            false => wanted_users.as_ref().is_none_or(|users| users.contains(&one.user)),
        };
        is_in && is_wanted
    };
    let tree = sacctmgr::tree(all).into_iter().map(|(id, _)| &all.associations[&id]);
    let row = |one: &'a Association| {
        let depth = all.lineage(one.id).skip(1).filter(|above| is_shown(above)).count();
        let place = standing.associations.get(&one.id).unwrap_or(&NOBODY);
        Row { cluster, one, place, depth, is_classic: standing.classic.is_some() }
    };
    tree.filter(|one| is_shown(one)).map(row).collect()
}

/// The same for programs.
fn document(shape: json::Shape, cluster: &str, all: &Accounts, rows: &[Row]) -> String {
    json::object(shape, "sshare", cluster, "shares", |json| {
        json.list_field("shares", |json| rows.iter().for_each(|row| json.object(|json| share(row, all, json))));
        json.field("total_shares", rows.len() as u64);
    })
}

fn share(row: &Row, all: &Accounts, json: &mut json::Json) {
    let Row { cluster, one, place, .. } = row;
    let is_user = !one.is_account();
    let parent = all.associations.get(&one.parent);
    json.field("id", one.id);
    json.field("cluster", *cluster);
    json.field("name", if is_user { &one.user } else { &one.account });
    json.field("parent", parent.map_or("", |parent| &parent.account));
    json.field("partition", &one.partition);
    json.real("shares_normalized", Some(place.shares_norm));
    let shares = match one.shares {
        Shares::Number(number) => Some(i64::from(number)),
        Shares::Parent => None,
    };
    json.number("shares", shares.filter(|_| !row.is_root()));
    json.object_field("tres", |json| {
        let amounts = |name: &str, list: Vec<(String, u64)>, json: &mut json::Json| {
            json.list_field(name, |json| {
                for (name, value) in list {
                    json.object(|json| {
                        json.field("name", &name);
                        json.number("value", Some(value as i64));
                    });
                }
            });
        };
        amounts("run_seconds", counted(&place.now.run_secs), json);
        let minutes = one.limits.grp_tres_mins.0.iter().map(|(name, most)| (name.clone(), *most));
        amounts("group_minutes", minutes.collect(), json);
        amounts("usage", counted(&place.now.used.map(|secs| secs as u64)), json);
    });
    json.real("effective_usage", Some(place.usage_effective));
    json.real("usage_normalized", Some(place.usage_norm));
    json.field("usage", place.now.used.billing as u64);
    json.object_field("fairshare", |json| {
        json.real("factor", place.fair_share);
        json.real("level", place.level_fs);
    });
    json.list_field("type", |json| json.item(if is_user { "USER" } else { "ASSOCIATION" }));
}
