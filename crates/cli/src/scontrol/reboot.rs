//! `scontrol reboot` and `scontrol cancel_reboot`.
use model::node::NextState;
use model::update::NodeChange;
use model::{Command, hostlist};
use wire::{CallError, Controller};

use super::update::unquote;
use super::{Reply, asking};

/// `[ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] ALL|NODES`
#[derive(Debug, PartialEq)]
struct Wanted {
    is_asap: bool,
    next: Option<NextState>,
    reason: String,
    nodes: String,
}

pub fn reboot(rest: &[String]) -> Reply {
    let wanted = match read(rest) {
        Ok(wanted) => wanted,
        Err(why) => return Reply::failed(&why),
    };
    asking("scontrol_reboot_nodes error", async |controller, _| {
        let config = controller.configuration().await?.config;
        if config.health.reboot_program.is_empty() {
            let lines = "scontrol: error: RebootProgram isn't defined\nscontrol_reboot_nodes error: Unspecified error";
            return Ok(Reply::failed(lines));
        }
        let Some(nodes) = named(controller, &wanted.nodes).await? else {
            return Ok(Reply::failed("scontrol_reboot_nodes error: Invalid node name specified"));
        };
        let Wanted { is_asap, next, reason, .. } = wanted;
        let change = NodeChange::Reboot { is_asap, next, reason };
        match controller.command(Command::UpdateNodes { nodes, change }).await {
            Err(CallError::Refused(model::Reject::NotPermitted)) => {
                Ok(Reply::failed("scontrol_reboot_nodes error: Permission denied"))
            }
            other => other.map(|_| Reply::default()),
        }
    })
}

pub fn cancel(rest: &[String]) -> Reply {
    let text = match rest {
        [text] => text,
        [] => return Reply::failed("missing argument for keyword:cancel_reboot"),
        _ => return Reply::failed("too many arguments for keyword:cancel_reboot"),
    };
    asking("slurm_update error", async |controller, _| {
        let Some(nodes) = named(controller, text).await? else {
            return Ok(Reply::failed("slurm_update error: Invalid node name specified"));
        };
        match controller.command(Command::UpdateNodes { nodes, change: NodeChange::CancelReboot }).await {
            Err(CallError::Refused(model::Reject::NotPermitted)) => {
                Ok(Reply::failed("slurm_update error: Invalid user id"))
            }
            other => other.map(|_| Reply::default()),
        }
    })
}

fn read(words: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted { is_asap: false, next: None, reason: String::new(), nodes: String::new() };
    for word in words {
        match word.split_once('=') {
            None if word.eq_ignore_ascii_case("asap") && wanted.nodes.is_empty() => wanted.is_asap = true,
            Some((key, value)) if key.eq_ignore_ascii_case("nextstate") => {
                wanted.next = match value.to_ascii_uppercase().as_str() {
                    "RESUME" => Some(NextState::Resume),
                    "DOWN" => Some(NextState::Down),
                    _ => return Err(format!("Invalid state: {value}\nValid states: DOWN, RESUME")),
                };
            }
            Some((key, value)) if key.eq_ignore_ascii_case("reason") => wanted.reason = unquote(value).to_owned(),
            _ if wanted.nodes.is_empty() => wanted.nodes = word.clone(),
            _ => return Err("too many arguments for keyword:reboot".into()),
        }
    }
    match wanted.nodes.is_empty() {
        true => Err("Missing node list. Specify ALL|<NodeList>".into()),
        false => Ok(wanted),
    }
}

/// None: there is no such list.
async fn named(controller: &mut Controller, text: &str) -> Result<Option<Vec<model::NodeName>>, CallError> {
    let known: Vec<model::NodeName> = controller.nodes().await?.into_iter().map(|view| view.node.name).collect();
    if text.eq_ignore_ascii_case("ALL") {
        return Ok(Some(known));
    }
    let Ok(names) = hostlist::expand(text) else { return Ok(None) };
    let names: Vec<model::NodeName> = names.iter().map(|name| name.as_str().into()).collect();
    Ok(names.iter().all(|name| known.contains(name)).then_some(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_as_slurm_reads_it() {
        let read = |words: &[&str]| super::read(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        let wanted = |is_asap, next, reason: &str, nodes: &str| {
            Ok(Wanted { is_asap, next, reason: reason.into(), nodes: nodes.into() })
        };
        assert_eq!(read(&["n1"]), wanted(false, None, "", "n1"));
        assert_eq!(
            read(&["ASAP", "nextstate=down", "reason=new kernel", "n[1-3]"]),
            wanted(true, Some(NextState::Down), "new kernel", "n[1-3]")
        );
        assert_eq!(read(&["asap", "n1", "n2"]), Err("too many arguments for keyword:reboot".into()));
        assert_eq!(read(&["ASAP"]), Err("Missing node list. Specify ALL|<NodeList>".into()));
        assert_eq!(read(&["nextstate=foo", "n1"]), Err("Invalid state: foo\nValid states: DOWN, RESUME".into()));
    }
}
