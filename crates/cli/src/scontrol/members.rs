//! The controllers, as `scontrol ping` and `scontrol takeover` know them.
use model::members::{MemberView, Members, Wish};

use super::{Reply, asking};
use crate::json::{self, Shape};

/// A controller, and whether it answers.
pub struct Pinged {
    pub host: String,
    /// `primary`, `backup`, `backup2`.
    pub mode: String,
    pub answers: bool,
}

impl Pinged {
    pub fn line(&self) -> String {
        let Pinged { host, mode, answers } = self;
        format!("Slurmctld({mode}) at {host} is {}\n", if *answers { "UP" } else { "DOWN" })
    }
}

/// The one that leads is the primary; the others are its backups, in the order of their numbers.
pub fn ping(members: &Members) -> Vec<Pinged> {
    let pinged = |mode: String, member: &MemberView| {
        let host = if member.host.is_empty() { &member.address } else { &member.host };
        Pinged { host: host.clone(), mode, answers: member.answers }
    };
    let leaders = members.members.iter().filter(|member| member.is_leader);
    let n_backups = members.members.iter().filter(|member| !member.is_leader).count();
    let backups = (1..).zip(members.members.iter().filter(|member| !member.is_leader)).map(|(number, member)| {
        let mode = if n_backups == 1 { "backup".to_owned() } else { format!("backup{number}") };
        pinged(mode, member)
    });
    leaders.map(|leader| pinged("primary".into(), leader)).chain(backups).collect()
}

/// The same for programs; how long the asking took is the first one's latency.
pub fn document(shape: Shape, cluster: &str, all: &[Pinged], micros: u64) -> String {
    json::document(shape, "scontrol", cluster, "pings", |json| {
        for one in all {
            let is_primary = one.mode == "primary";
            json.object(|json| {
                json.field("hostname", &one.host);
                json.field("pinged", if one.answers { "UP" } else { "DOWN" });
                json.field("responding", one.answers);
                json.field("latency", if is_primary { micros } else { 0 });
                json.field("mode", &one.mode);
                json.field("primary", is_primary);
            });
        }
    })
}

/// `takeover [INDEX]`: a backup leads from now on, the first that is able to if none is named.
pub fn takeover(rest: &[String]) -> Reply {
    let index: Option<usize> = match rest {
        [] => None,
        [text] => match text.parse() {
            Ok(index) if index > 0 => Some(index),
            _ => return Reply::failed(&format!("scontrol: error: invalid backup controller index: {text}")),
        },
        _ => return Reply::failed("too many arguments for keyword:takeover"),
    };
    asking("slurm_takeover error", async |controller, _| {
        let id = match index {
            None => None,
            Some(index) => {
                let members = controller.members().await?;
                let Some(backup) = members.members.iter().filter(|member| !member.is_leader).nth(index - 1) else {
                    return Ok(Reply::failed(&format!("scontrol: error: there is no backup controller {index}")));
                };
                Some(backup.id)
            }
        };
        controller.change_members(&Wish::Lead { id }).await?;
        Ok(Reply::text(String::new()))
    })
}
