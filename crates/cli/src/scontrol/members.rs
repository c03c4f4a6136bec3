//! The controllers, as `scontrol ping` and `scontrol takeover` know them.
use model::members::{MemberView, Members, Wish};

use super::{Reply, asking};

/// The one that leads is the primary; the others are its backups, in the order of their numbers.
pub fn ping(members: &Members) -> String {
    let mut text = String::new();
    let line = |mode: &str, member: &MemberView| {
        let host = if member.host.is_empty() { &member.address } else { &member.host };
        format!("Slurmctld({mode}) at {host} is {}\n", if member.answers { "UP" } else { "DOWN" })
    };
    members.members.iter().filter(|member| member.is_leader).for_each(|leader| text.push_str(&line("primary", leader)));
    let n_backups = members.members.iter().filter(|member| !member.is_leader).count();
    for (number, member) in (1..).zip(members.members.iter().filter(|member| !member.is_leader)) {
        let mode = if n_backups == 1 { "backup".to_owned() } else { format!("backup{number}") };
        text.push_str(&line(&mode, member));
    }
    text
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
