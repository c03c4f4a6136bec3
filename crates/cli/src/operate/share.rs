//! `spur share --explain`: why somebody's fair-share factor is what it is, level by level, and when it will recover.
use model::accounts::{Accounts, Association, AssociationId, Classic, Place, Shares, Standing};
use model::duration;
use model::priority::{PriorityConfig, PriorityKind};

use crate::output::print;
use crate::trouble::{self, Trouble};
use crate::{context, users};

const HELP: &str = "\
spur share --explain [USER] [--account ACCOUNT]
  Says in one sentence a level why the user's fair-share factor is what it is, and when it will recover.
  The numbers themselves are shown by sshare.
";

pub fn run(arguments: &[String]) -> i32 {
    let (mut user, mut account, mut explains) = (None, None, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--explain" => explains = true,
            "--account" | "-A" => account = words.next().cloned(),
            "--help" | "-h" => {
                print(HELP);
                return 0;
            }
            name if !name.starts_with('-') && user.is_none() => user = Some(name.to_string()),
            other => {
                eprintln!("spur share: {other} is not known\n{HELP}");
                return 2;
            }
        }
    }
    if !explains {
        eprintln!("spur share: say --explain; the numbers are shown by sshare");
        return 2;
    }
    let user = user.or_else(|| wire::accounts::user_name(users::own_uid())).unwrap_or_default();
    let told = context::block_on(async {
        let (_, mut controller) = trouble::connect().await?;
        let accounts = controller.accounts().await?;
        let standing = controller.standing().await?;
        let config = controller.configuration().await?.config;
        let told = explain(&accounts, &standing, &user, account.as_deref());
        Ok::<_, Trouble>(told.map(|text| text + without_weight(&config.scheduler.priority)))
    });
    match told {
        Ok(Ok(text)) => {
            print(&text);
            0
        }
        Ok(Err(text)) | Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
            eprintln!("spur share: {text}");
            1
        }
    }
}

/// A factor that nobody looks at is told, but somebody who looks for a reason must know.
fn without_weight(priority: &PriorityConfig) -> &'static str {
    match (priority.kind, priority.weight_fair_share) {
        (PriorityKind::Basic, _) => {
            "None of this moves a job here: jobs start in the order of their submission (PriorityType=priority/basic).\n"
        }
        (PriorityKind::Multifactor, 0) => {
            "None of this moves a job here: fair-share has no weight (PriorityWeightFairshare is 0).\n"
        }
        (PriorityKind::Multifactor, _) => "",
    }
}

fn explain(all: &Accounts, standing: &Standing, user: &str, account: Option<&str>) -> Result<String, String> {
    let is_meant = |one: &&Association| one.user == user && account.is_none_or(|account| one.account == account);
    let found: Vec<&Association> = all.associations.values().filter(is_meant).collect();
    if found.is_empty() {
        return Err(match account {
            Some(account) => format!("{user} has no association in account {account}"),
            None => format!("{user} has no association; see sacctmgr list associations"),
        });
    }
    let mut text = String::new();
    for one in found {
        explain_one(all, standing, one, &mut text);
    }
    Ok(text)
}

fn explain_one(all: &Accounts, standing: &Standing, one: &Association, out: &mut String) {
    let place = place(standing, one.id);
    let factor = place.fair_share.unwrap_or(0.0);
    let is_user = |id: &AssociationId| all.associations.get(id).is_some_and(|one| !one.is_account() && one.is_here());
    let users = standing.associations.iter().filter(|(id, _)| is_user(id)).map(|(_, place)| place.fair_share);
    let (n_users, ahead) = (users.clone().count(), users.flatten().filter(|other| *other > factor).count());
    let partition = if one.partition.is_empty() { String::new() } else { format!(" in partition {}", one.partition) };
    out.push_str(&format!(
        "{} in account {}{partition}: factor {factor:.6}, {} of {n_users} in line.\n",
        one.user,
        one.account,
        ahead + 1,
    ));
    let mut lineage: Vec<&Association> = all.lineage(one.id).filter(|one| one.parent != 0).collect();
    lineage.reverse();
    for level in lineage {
        let told = match &standing.classic {
            Some(rules) => classic_sentence(standing, rules, level),
            None => sentence(all, standing, level),
        };
        out.push_str(&format!("  {told}\n"));
    }
    out.push_str(&format!("  {}\n", recovery(all, standing, one)));
}

fn place(standing: &Standing, id: AssociationId) -> Place {
    standing.associations.get(&id).cloned().unwrap_or_default()
}

fn sentence(all: &Accounts, standing: &Standing, one: &Association) -> String {
    let who = if one.is_account() { format!("account {}", one.account) } else { one.user.clone() };
    let place = place(standing, one.id);
    if one.shares == Shares::Parent {
        return format!("{who} shares with the parent's siblings: it has no share of its own.");
    }
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let above = all.associations.get(&one.parent).map_or("the cluster", |above| above.account.as_str());
    let has = format!("{who} has {} of what {above} shares out", percent(place.shares_norm));
    match place.level_fs {
        None => format!("{has} and has used nothing of late, so it goes before all who have."),
        Some(_) if place.shares_norm == 0.0 => format!("{has}, so it goes last."),
        Some(level) if (level - 1.0).abs() < 0.005 => {
            format!("{has} and used {} of what was used there: just its share.", percent(place.usage_effective))
        }
        Some(level) if level > 1.0 => format!(
            "{has} and used {} of what was used there: less than its share, which is {level:.2} times that.",
            percent(place.usage_effective)
        ),
        Some(level) => format!(
            "{has} and used {} of what was used there: more than its share (level factor {level:.2}).",
            percent(place.usage_effective)
        ),
    }
}

/// Without a fair tree: shares and use are parts of the whole cluster's, and each level has a factor of its own.
fn classic_sentence(standing: &Standing, rules: &Classic, one: &Association) -> String {
    let who = if one.is_account() { format!("account {}", one.account) } else { one.user.clone() };
    let place = place(standing, one.id);
    if one.shares == Shares::Parent {
        return format!("{who} has no share of its own: the account's counts.");
    }
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    if place.shares_norm == 0.0 {
        return format!("{who} has no share of the cluster, so its factor is 0.");
    }
    let dampened = if rules.dampening > 1 { format!("/{}", rules.dampening) } else { String::new() };
    let own = match place.usage_effective == place.usage_norm {
        true => String::new(),
        false => format!(" ({} of its own, and a part of what others in the account used)", percent(place.usage_norm)),
    };
    format!(
        "{who} has {} of the cluster, and {} of all that was used counts for it{own}: 2^(-{:.6}/{:.6}{dampened}) = {:.6}.",
        percent(place.shares_norm),
        percent(place.usage_effective),
        place.usage_effective,
        place.shares_norm,
        place.fair_share.unwrap_or(0.0),
    )
}

/// Share over use: below 1 more was used than the share is.
fn level_factor(standing: &Standing, place: &Place) -> Option<f64> {
    match standing.classic {
        Some(_) => (place.usage_effective > 0.0).then(|| place.shares_norm / place.usage_effective),
        None => place.level_fs,
    }
}

/// How long until the levels at which too much was used are level again, if nothing more is used by them and others go on as they do.
fn recovery(all: &Accounts, standing: &Standing, one: &Association) -> String {
    let over: Vec<Place> = all
        .lineage(one.id)
        .filter(|one| one.parent != 0)
        .map(|one| place(standing, one.id))
        .filter(|place| level_factor(standing, place).is_some_and(|level| level < 1.0) && place.shares_norm > 0.0)
        .collect();
    if over.is_empty() {
        return "Nothing has to recover: no level has used more than its share.".into();
    }
    if standing.half_life_secs == 0 {
        return "It will not recover by itself: nothing is forgotten here (PriorityDecayHalfLife is 0); it does when others use more.".into();
    }
    // Use halves in every half-life: to come down from level factor f to 1, so many halvings.
    let worst = over.iter().filter_map(|place| level_factor(standing, place)).fold(1.0f64, f64::min);
    let secs = (1.0 / worst.max(1e-9)).log2() * standing.half_life_secs as f64;
    format!(
        "Every level is back within its share in about {}, if nothing more is used there while the others go on as they do (half is forgotten every {}).",
        duration::show(secs as u64),
        duration::show(standing.half_life_secs),
    )
}
