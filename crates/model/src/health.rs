//! What is done for the health of nodes: the site's check, and how a node is started anew.
use serde::{Deserialize, Serialize};

use crate::request::NodeView;
use crate::time::Span;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthConfig {
    /// Run on nodes as the agent's own user; empty: none.
    pub check: String,
    /// How often; 0: when an agent starts, and never again.
    pub check_interval: Span,
    /// Nodes in any of these states are looked at; empty: all.
    pub check_states: Vec<HealthState>,
    /// Not all nodes at once, but spread over the interval.
    pub spreads_checks: bool,
    /// Only when an agent starts.
    pub checks_at_start_only: bool,
    /// Run on a node that is to start anew; empty: that cannot be asked for.
    pub reboot_program: String,
    /// A node that was told to start anew has this long to be back.
    pub resume_timeout: Span,
}

impl Default for HealthConfig {
    fn default() -> Self {
        HealthConfig {
            check: String::new(),
            check_interval: Span(0),
            check_states: Vec::new(),
            spreads_checks: false,
            checks_at_start_only: false,
            reboot_program: String::new(),
            resume_timeout: Span::from_secs(60),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthState {
    Allocated,
    Idle,
    Mixed,
    NonDrainedIdle,
}

impl HealthState {
    pub const ALL: [(&'static str, HealthState); 4] = [
        ("ALLOC", HealthState::Allocated),
        ("IDLE", HealthState::Idle),
        ("MIXED", HealthState::Mixed),
        ("NONDRAINED_IDLE", HealthState::NonDrainedIdle),
    ];
}

impl HealthConfig {
    /// The words of HealthCheckNodeState: `ANY`, `IDLE,CYCLE` … None: one is not known.
    pub fn read_states(&mut self, text: &str) -> Option<()> {
        (self.check_states, self.spreads_checks, self.checks_at_start_only) = (Vec::new(), false, false);
        let mut is_any = false;
        for word in text.split(',').map(|word| word.trim().to_ascii_uppercase()).filter(|word| !word.is_empty()) {
            match word.as_str() {
                "ANY" => is_any = true,
                "CYCLE" => self.spreads_checks = true,
                "START_ONLY" => self.checks_at_start_only = true,
                _ => self.check_states.push(HealthState::ALL.iter().find(|(name, _)| *name == word)?.1),
            }
        }
        if is_any {
            self.check_states.clear();
        }
        Some(())
    }

    pub fn states_text(&self) -> String {
        let states = HealthState::ALL.iter().filter(|(_, state)| self.check_states.contains(state));
        let mut words: Vec<&str> = states.map(|(name, _)| *name).collect();
        if words.is_empty() && !self.checks_at_start_only {
            words.push("ANY");
        }
        words.extend(self.spreads_checks.then_some("CYCLE"));
        words.extend(self.checks_at_start_only.then_some("START_ONLY"));
        words.join(",")
    }

    /// Whether the check is for a node that is as this one.
    pub fn concerns(&self, view: &NodeView) -> bool {
        use crate::node_state::Base;
        let state = view.state();
        self.check_states.is_empty()
            || self.check_states.iter().any(|wanted| match wanted {
                HealthState::Allocated => state.base == Base::Allocated,
                HealthState::Mixed => state.base == Base::Mixed,
                HealthState::Idle => state.base == Base::Idle,
                HealthState::NonDrainedIdle => state.base == Base::Idle && !state.drain,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_and_shown_alike() {
        for text in ["ANY", "IDLE", "ALLOC,IDLE,MIXED", "IDLE,CYCLE", "ANY,CYCLE", "START_ONLY", "NONDRAINED_IDLE"] {
            let mut config = HealthConfig::default();
            assert_eq!(config.read_states(text), Some(()), "{text}");
            assert_eq!(config.states_text(), text);
        }
        assert_eq!(HealthConfig::default().read_states("SICK"), None);
    }
}
