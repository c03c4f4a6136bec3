//! `sacctmgr --json`: entities in the shape of Slurm's data parsers for its accounting.
use model::accounts::{Accounts, Association, Limits, Qos, ROOT, Shares, Tres, User};

use super::columns::{Row, nearest, nearest_amounts};
use super::show::{self, ClusterFacts};
use super::words::Words;
use super::{Entity, Options};
use crate::json::{self, Json, Shape};

pub fn document(
    all: &Accounts,
    cluster: &ClusterFacts,
    entity: Entity,
    words: &Words,
    options: &Options,
    shape: Shape,
) -> String {
    let with_associations = words.with_associations || options.with_associations;
    let name = match entity {
        Entity::Account => "accounts",
        Entity::User => "users",
        Entity::Association => "associations",
        Entity::Cluster => "clusters",
        Entity::Qos => "qos",
        Entity::Coordinator => "coordinators",
        Entity::Tres => "TRES",
        Entity::Wckey => "wckeys",
    };
    json::document(shape, "sacctmgr", &cluster.name, name, |json| {
        show::each(all, cluster, entity, words, false, |row| {
            json.object(|json| write(entity, &row, with_associations, json));
        });
    })
}

fn write(entity: Entity, row: &Row, with_associations: bool, json: &mut Json) {
    match entity {
        Entity::Account => account(row, with_associations, json),
        Entity::User => user(row, with_associations, json),
        Entity::Association => association(row, json),
        Entity::Cluster => cluster(row, json),
        Entity::Qos => row.qos.into_iter().for_each(|qos| quality(qos, row, json)),
        Entity::Coordinator => {
            json.field("name", row.name);
            json.field("account", row.other);
        }
        Entity::Tres => {
            json.field("type", row.other);
            json.field("name", row.name);
            json.field("id", row.number);
            json.field("count", 0_u32);
        }
        Entity::Wckey => {
            json.list_field("accounting", |_| {});
            json.field("cluster", row.cluster.shown(row.place));
            json.field("id", row.number);
            json.field("name", row.other);
            json.field("user", row.name);
            json.list_field("flags", |_| {});
        }
    }
}

fn account(row: &Row, with_associations: bool, json: &mut Json) {
    let Some(account) = row.account else { return };
    let own = |one: &&Association| with_associations && one.account == account.name;
    associations(row, row.all.associations.values().filter(own), json);
    json.list_field("coordinators", |json| {
        account.coordinators.iter().for_each(|name| {
            json.object(|json| {
                json.field("name", name);
                json.field("direct", true);
            });
        });
    });
    json.field("description", &account.description);
    json.field("name", &account.name);
    json.field("organization", &account.organization);
    json.list_field("flags", |_| {});
}

fn user(row: &Row, with_associations: bool, json: &mut Json) {
    let Some(user) = row.user else { return };
    json.list_field("administrator_level", |json| json.item(user.admin_level.name()));
    let own = |one: &&Association| with_associations && one.user == user.name;
    associations(row, row.all.associations.values().filter(own), json);
    json.list_field("coordinators", |json| {
        for account in row.all.accounts.values().filter(|account| account.coordinators.contains(&user.name)) {
            json.object(|json| {
                json.field("name", &account.name);
                json.field("direct", true);
            });
        }
    });
    json.object_field("default", |json| {
        json.field("account", user.default_account_in(row.default_in.unwrap_or_default()));
        json.field("wckey", &user.default_wckey);
    });
    json.list_field("flags", |_| {});
    json.field("name", &user.name);
    json.field("old_name", "");
    json.list_field("wckeys", |json| {
        for key in row.all.wckeys.iter().filter(|key| with_associations && key.user == user.name) {
            json.object(|json| {
                json.field("cluster", row.cluster.shown(&key.cluster));
                json.field("name", &key.name);
                json.field("user", &key.user);
            });
        }
    });
}

fn associations<'a>(row: &Row, list: impl Iterator<Item = &'a Association>, json: &mut Json) {
    json.list_field("associations", |json| list.for_each(|one| json.object(|json| place(row, one, json))));
}

/// Which association it is.
fn place(row: &Row, one: &Association, json: &mut Json) {
    json.field("account", &one.account);
    json.field("cluster", row.cluster.shown(&one.cluster));
    json.field("partition", &one.partition);
    json.field("user", &one.user);
    json.field("id", one.id);
}

fn association(row: &Row, json: &mut Json) {
    let Some(one) = row.association else { return };
    let limits = &one.limits;
    let most = |of: fn(&Limits) -> Option<u32>| nearest(row, of, |_| None).map(i64::from);
    let amounts = |of: fn(&Limits) -> Option<&Tres>| nearest_amounts(row, of, |qos| &qos.limits.max_tres_per_job);
    let is_default = |user: &User| user.default_account_in(&one.cluster) == one.account;
    json.list_field("accounting", |_| {});
    json.field("account", &one.account);
    json.field("cluster", row.cluster.shown(&one.cluster));
    json.field("comment", &one.comment);
    json.object_field("default", |json| json.field("qos", &one.default_qos));
    json.list_field("flags", |_| {});
    json.object_field("max", |json| {
        json.object_field("jobs", |json| {
            json.object_field("per", |json| {
                json.limit("count", most(|limits| limits.max_jobs), true);
                json.limit("accruing", most(|limits| limits.max_jobs_accrue), true);
                json.limit("submitted", most(|limits| limits.max_submit), true);
                json.limit("wall_clock", most(|limits| limits.max_wall), true);
            });
            json.limit("active", limits.grp_jobs.map(i64::from), true);
            json.limit("accruing", limits.grp_jobs_accrue.map(i64::from), true);
            json.limit("total", limits.grp_submit.map(i64::from), true);
        });
        json.object_field("tres", |json| {
            tres("total", &limits.grp_tres, row, json);
            json.object_field("group", |json| {
                tres("minutes", &limits.grp_tres_mins, row, json);
                tres("active", &limits.grp_tres_run_mins, row, json);
            });
            json.object_field("minutes", |json| {
                tres("total", &amounts(|limits| Some(&limits.max_tres_run_mins)), row, json);
                json.object_field("per", |json| tres("job", &amounts(|limits| Some(&limits.max_tres_mins)), row, json));
            });
            json.object_field("per", |json| {
                tres("job", &amounts(|limits| Some(&limits.max_tres)), row, json);
                tres("node", &amounts(|limits| Some(&limits.max_tres_per_node)), row, json);
            });
        });
        json.object_field("per", |json| {
            json.object_field("account", |json| json.limit("wall_clock", limits.grp_wall.map(i64::from), true));
        });
    });
    json.object_field("id", |json| place(row, one, json));
    json.field("is_default", row.all.users.get(&one.user).is_some_and(is_default));
    json.field("lineage", &lineage(row.all, one));
    json.object_field("min", |json| {
        json.limit("priority_threshold", most(|limits| limits.min_priority), true);
    });
    let parent = row.all.associations.get(&one.parent);
    // A user's parent is the account that both stand for.
    json.field("parent_account", parent.filter(|_| one.is_account()).map_or("", |parent| &parent.account));
    json.field("partition", &one.partition);
    json.limit("priority", most(|limits| limits.priority), true);
    json.list_field("qos", |json| row.all.allowed_qos(one.id).iter().for_each(|name| json.item(name)));
    json.field(
        "shares_raw",
        match one.shares {
            Shares::Number(number) => i64::from(number),
            Shares::Parent => i64::from(i32::MAX),
        },
    );
    json.field("user", &one.user);
}

/// `/physics/atoms/0-alice/`
fn lineage(all: &Accounts, one: &Association) -> String {
    let above = all.lineage(one.id).filter(|above| above.is_account() && above.account != ROOT);
    let mut names: Vec<String> = above.map(|above| above.account.clone()).collect();
    names.reverse();
    names.extend((!one.is_account()).then(|| format!("0-{}", one.user)));
    names.extend((!one.partition.is_empty()).then(|| one.partition.clone()));
    names.iter().fold("/".to_string(), |path, name| format!("{path}{name}/"))
}

fn cluster(row: &Row, json: &mut Json) {
    let is_own = row.place.is_empty();
    let name = row.cluster.shown(row.place);
    json.object_field("controller", |json| {
        json.field("host", if is_own { row.cluster.host.as_str() } else { "" });
        json.field("port", 0_u32);
    });
    json.list_field("flags", |json| {
        row.all.clusters.get(row.place).into_iter().flat_map(|one| &one.flags).for_each(|flag| json.item(flag));
    });
    json.field("name", name);
    json.field("nodes", if is_own { row.cluster.nodes.as_str() } else { "" });
    json.field("select_plugin", "");
    json.object_field("associations", |json| {
        json.object_field("root", |json| {
            json.field("account", "root");
            json.field("cluster", name);
            json.field("partition", "");
            json.field("user", "");
        });
    });
    json.field("rpc_version", 0_u32);
    json.list_field("tres", |json| {
        for (kind, amount) in row.cluster.amounts.iter().filter(|_| is_own) {
            json.object(|json| one_tres(kind, *amount, row, json));
        }
    });
}

fn quality(qos: &Qos, row: &Row, json: &mut Json) {
    let limits = &qos.limits;
    let count = |value: Option<u32>| value.map(i64::from);
    json.field("description", &qos.description);
    json.list_field("flags", |json| qos.flags.iter().for_each(|flag| json.item(&screaming(flag))));
    json.field("id", qos.id);
    json.object_field("limits", |json| {
        json.field("grace_time", qos.grace_secs);
        json.object_field("max", |json| {
            json.object_field("active_jobs", |json| {
                json.limit("accruing", count(limits.grp_jobs_accrue), true);
                json.limit("count", count(limits.grp_jobs), true);
            });
            json.object_field("accruing", |json| {
                json.object_field("per", |json| {
                    json.limit("account", count(limits.max_jobs_accrue_per_account), true);
                    json.limit("user", count(limits.max_jobs_accrue_per_user), true);
                });
            });
            json.object_field("jobs", |json| {
                json.limit("count", count(limits.grp_submit), true);
                json.object_field("active_jobs", |json| {
                    json.object_field("per", |json| {
                        json.limit("account", count(limits.max_jobs_per_account), true);
                        json.limit("user", count(limits.max_jobs_per_user), true);
                    });
                });
                json.object_field("per", |json| {
                    json.limit("account", count(limits.max_submit_per_account), true);
                    json.limit("user", count(limits.max_submit_per_user), true);
                });
            });
            json.object_field("tres", |json| {
                tres("total", &limits.grp_tres, row, json);
                json.object_field("minutes", |json| {
                    tres("total", &limits.grp_tres_mins, row, json);
                    json.object_field("per", |json| {
                        tres("qos", &limits.grp_tres_run_mins, row, json);
                        tres("job", &limits.max_tres_mins_per_job, row, json);
                        tres("account", &limits.max_tres_run_mins_per_account, row, json);
                        tres("user", &limits.max_tres_run_mins_per_user, row, json);
                    });
                });
                json.object_field("per", |json| {
                    tres("account", &limits.max_tres_per_account, row, json);
                    tres("job", &limits.max_tres_per_job, row, json);
                    tres("node", &limits.max_tres_per_node, row, json);
                    tres("user", &limits.max_tres_per_user, row, json);
                });
            });
            json.object_field("wall_clock", |json| {
                json.object_field("per", |json| {
                    json.limit("qos", count(limits.grp_wall), true);
                    json.limit("job", count(limits.max_wall), true);
                });
            });
        });
        json.real("factor", qos.limit_factor_thousandths.map(thousandths));
        json.object_field("min", |json| {
            json.limit("priority_threshold", count(limits.min_priority), true);
            json.object_field("tres", |json| {
                json.object_field("per", |json| tres("job", &limits.min_tres_per_job, row, json));
            });
        });
    });
    json.field("name", &qos.name);
    json.object_field("preempt", |json| {
        json.list_field("list", |json| qos.preempt.iter().for_each(|name| json.item(name)));
        let mode = if qos.preempt_mode.is_empty() { "DISABLED".to_string() } else { qos.preempt_mode.to_uppercase() };
        json.list_field("mode", |json| json.item(&mode));
        json.number("exempt_time", qos.preempt_exempt_secs.map(i64::from));
    });
    json.number("priority", Some(i64::from(qos.priority)));
    json.real("usage_factor", Some(qos.usage_factor_thousandths.map_or(1.0, thousandths)));
    json.real("usage_threshold", qos.usage_threshold_thousandths.map(thousandths));
}

fn thousandths(value: u32) -> f64 {
    f64::from(value) / 1000.0
}

/// `DenyOnLimit` as `DENY_ON_LIMIT`.
fn screaming(flag: &str) -> String {
    let mut text = String::new();
    let mut was_small = false;
    for sign in flag.chars() {
        if sign.is_uppercase() && was_small {
            text.push('_');
        }
        was_small = sign.is_lowercase();
        text.extend(sign.to_uppercase());
    }
    text
}

fn tres(name: &str, amounts: &Tres, row: &Row, json: &mut Json) {
    json.list_field(name, |json| {
        for (kind, amount) in &amounts.0 {
            json.object(|json| one_tres(kind, *amount, row, json));
        }
    });
}

fn one_tres(kind: &str, amount: u64, row: &Row, json: &mut Json) {
    let (family, name) = kind.split_once('/').unwrap_or((kind, ""));
    json.field("type", family);
    json.field("name", name);
    json.field("id", show::tres_number(row.cluster, kind));
    json.field("count", amount);
}
