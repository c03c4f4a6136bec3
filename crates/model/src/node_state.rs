//! Slurm's node states: a view, never stored.
use crate::node::NodePhase;
use crate::request::NodeView;

/// `IDLE`, `MIXED+DRAIN`, `DOWN+NOT_RESPONDING` … as `scontrol show node` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeState {
    pub base: Base,
    pub drain: bool,
    pub completing: bool,
    /// Does not answer: sinfo shows a trailing `*`.
    pub silent: bool,
    /// It is the time of a reservation for maintenance.
    pub maintenance: bool,
    /// It is the time of some other reservation.
    pub reserved: bool,
    /// Taken out because it failed.
    pub failed: bool,
    /// Idle, but kept free by a job that owns its block.
    pub blocked: bool,
    /// It is to start anew when its last job has left.
    pub reboot_requested: bool,
    /// It was told to start anew, and is awaited.
    pub reboot_issued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    Unknown,
    Down,
    Idle,
    Allocated,
    Mixed,
}

impl NodeView {
    pub fn state(&self) -> NodeState {
        let node = &self.node;
        let base = match node.phase {
            NodePhase::Unknown => Base::Unknown,
            NodePhase::Lost | NodePhase::Down => Base::Down,
            NodePhase::Up | NodePhase::Clearing => self.busy_base(),
        };
        let completing = self.has_ending_job || node.phase == NodePhase::Clearing;
        let silent = !node.answers || matches!(node.phase, NodePhase::Lost | NodePhase::Unknown);
        let (maintenance, failed) = (self.is_in_maintenance, node.has_failed);
        let reserved = !self.reservation.is_empty() && !maintenance;
        let drain = node.drain && !failed;
        let blocked = node.blocked_by.is_some();
        let reboot = node.reboot.as_ref();
        let reboot_issued = reboot.is_some_and(|reboot| reboot.issued.is_some());
        let reboot_requested = reboot.is_some() && !reboot_issued;
        NodeState {
            base,
            drain,
            completing,
            silent,
            maintenance,
            reserved,
            failed,
            blocked,
            reboot_requested,
            reboot_issued,
        }
    }

    fn busy_base(&self) -> Base {
        if !self.has_live_job {
            return Base::Idle;
        }
        let is_full = self.node.free_cpus() == 0 || self.node.exclusive_job.is_some();
        if is_full { Base::Allocated } else { Base::Mixed }
    }
}

impl NodeState {
    /// `IDLE+DRAIN`, as `scontrol show node` has it.
    pub fn long(self) -> String {
        let mut text = self.base.word().to_string();
        if self.completing {
            text.push_str("+COMPLETING");
        }
        if self.blocked {
            text.push_str("+BLOCKED");
        }
        if self.drain {
            text.push_str("+DRAIN");
        }
        if self.failed {
            text.push_str("+FAIL");
        }
        if self.maintenance {
            text.push_str("+MAINTENANCE");
        }
        if self.reserved {
            text.push_str("+RESERVED");
        }
        if self.reboot_requested {
            text.push_str("+REBOOT_REQUESTED");
        }
        if self.reboot_issued {
            text.push_str("+REBOOT_ISSUED");
        }
        if self.silent {
            text.push_str("+NOT_RESPONDING");
        }
        text
    }

    /// One word as `sinfo` has it: `drained`, `draining`, `down*`, `mixed` …
    pub fn word(self) -> String {
        let busy = matches!(self.base, Base::Allocated | Base::Mixed);
        let word = match (self.base, self.drain) {
            (Base::Idle | Base::Unknown, false) if self.maintenance && !self.failed => "maint",
            // What an administrator said of it goes before what became of it.
            _ if self.failed && (busy || self.completing) => "failing",
            _ if self.failed => "fail",
            (Base::Down, false) => "down",
            (Base::Unknown, true) => "drained",
            (Base::Unknown, false) => "unknown",
            (_, true) if busy || self.completing => "draining",
            (_, true) => "drained",
            (Base::Idle, _) if self.completing => "completing",
            (Base::Idle, _) if self.reserved => "reserved",
            (Base::Idle, _) if self.blocked => "blocked",
            (Base::Idle, _) => "idle",
            (Base::Allocated, _) if self.completing => "allocated+",
            (Base::Allocated, _) => "allocated",
            (Base::Mixed, _) if self.completing => "completing",
            (Base::Mixed, _) => "mixed",
        };
        match self {
            // Whatever else it is.
            NodeState { reboot_issued: true, .. } => "reboot^".into(),
            NodeState { reboot_requested: true, .. } => format!("{word}@"),
            NodeState { silent: true, .. } => format!("{word}*"),
            _ => word.to_string(),
        }
    }

    /// As `sinfo %t`: `alloc`, `mix`, `drng`, `drain`, `comp` …
    pub fn compact(self) -> String {
        let word = self.word();
        let is_mark = |c: char| ['*', '@', '^'].contains(&c);
        let (word, mark) = word.split_at(word.find(is_mark).unwrap_or(word.len()));
        let short = match word {
            "allocated" => "alloc",
            "allocated+" => "alloc+",
            "mixed" => "mix",
            "draining" => "drng",
            "drained" => "drain",
            "completing" => "comp",
            "unknown" => "unk",
            "reserved" => "resv",
            "failing" => "failg",
            "blocked" => "block",
            "reboot" => "boot",
            other => other,
        };
        format!("{short}{mark}")
    }
}

impl Base {
    pub fn word(self) -> &'static str {
        match self {
            Base::Unknown => "UNKNOWN",
            Base::Down => "DOWN",
            Base::Idle => "IDLE",
            Base::Allocated => "ALLOCATED",
            Base::Mixed => "MIXED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    #[test]
    fn drained_and_failed_nodes_are_called_so_also_when_they_are_down() {
        for (phase, drain, has_failed, word, compact) in [
            (NodePhase::Down, false, false, "down", "down"),
            (NodePhase::Down, true, false, "drained", "drain"),
            (NodePhase::Down, true, true, "fail", "fail"),
            (NodePhase::Lost, false, false, "down*", "down*"),
            (NodePhase::Lost, true, false, "drained*", "drain*"),
        ] {
            let node = Node { phase, drain, has_failed, answers: phase != NodePhase::Lost, ..Node::default() };
            let state = NodeView { node, ..NodeView::default() }.state();
            assert_eq!((state.word().as_str(), state.compact().as_str()), (word, compact), "{}", state.long());
        }
    }
}
