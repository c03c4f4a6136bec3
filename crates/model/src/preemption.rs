//! The site's rules of preemption: who gives way to whom, and what becomes of them.
use serde::{Deserialize, Serialize};

use crate::partition::PreemptMode;
use crate::time::Span;

/// What makes one job more important than another that already runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreemptKind {
    #[default]
    Nothing,
    /// The PriorityTier of its partition.
    PartitionTier,
    /// The list of its QOS.
    Qos,
}

impl PreemptKind {
    pub fn word(self) -> &'static str {
        match self {
            PreemptKind::Nothing => "none",
            PreemptKind::PartitionTier => "partition_prio",
            PreemptKind::Qos => "qos",
        }
    }

    pub fn parse(word: &str) -> Option<PreemptKind> {
        let kinds = [PreemptKind::Nothing, PreemptKind::PartitionTier, PreemptKind::Qos];
        kinds.into_iter().find(|kind| kind.word().eq_ignore_ascii_case(word))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreemptionConfig {
    pub kind: PreemptKind,
    /// What becomes of jobs whose partition or QOS says nothing else: OFF, CANCEL, REQUEUE or SUSPEND.
    pub mode: PreemptMode,
    /// Jobs that share CPUs take turns.
    pub is_gang: bool,
    /// How long a turn is.
    pub time_slice: Span,
    /// Jobs of one QOS may preempt each other, by their priority.
    pub is_within_qos: bool,
    /// A job that has run for less is left alone.
    pub exempt_time: Span,
    /// Jobs with at least this priority are left alone.
    pub min_exempt_priority: Option<u32>,
    /// Of jobs of the same tier, the youngest goes first, whatever the priorities.
    pub youngest_first: bool,
    /// Only the lowest go, even if others would be fewer.
    pub strict_order: bool,
    /// Whoever asked for a warning signal (`--signal`) is told by that one.
    pub sends_user_signal: bool,
}

impl Default for PreemptionConfig {
    fn default() -> Self {
        PreemptionConfig {
            kind: PreemptKind::Nothing,
            mode: PreemptMode::Off,
            is_gang: false,
            time_slice: Span::from_secs(30),
            is_within_qos: false,
            exempt_time: Span(0),
            min_exempt_priority: None,
            youngest_first: false,
            strict_order: false,
            sends_user_signal: false,
        }
    }
}

impl PreemptionConfig {
    pub fn is_on(&self) -> bool {
        self.kind != PreemptKind::Nothing
    }

    /// A job of this kind is told to go by the signal it asked for.
    pub fn tells_by_own_signal(&self, spec: &crate::JobSpec) -> bool {
        spec.warning.as_ref().is_some_and(|warning| self.sends_user_signal || warning.overlaps_reservations)
    }

    /// `SUSPEND,GANG`: one mode, with or without taking turns. Says what is wrong with it.
    pub fn set_mode(&mut self, text: &str) -> Result<(), &'static str> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match PreemptMode::parse(word) {
                Some(PreemptMode::Gang) => self.is_gang = true,
                Some(PreemptMode::Within) => self.is_within_qos = true,
                Some(mode) => self.mode = mode,
                None => return Err("OFF, CANCEL, REQUEUE, SUSPEND, GANG or WITHIN is expected"),
            }
        }
        if self.mode == PreemptMode::Suspend && !self.is_gang {
            return Err("PreemptMode=SUSPEND requires GANG too");
        }
        Ok(())
    }

    /// What does not go together.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.is_on() == (self.mode != PreemptMode::Off) {
            true => Ok(()),
            false => Err("PreemptType and PreemptMode values incompatible"),
        }
    }

    /// As `scontrol show config` has it: `GANG,SUSPEND`.
    pub fn mode_text(&self) -> String {
        let mode = (self.mode != PreemptMode::Off || !self.is_gang).then_some(self.mode.word());
        let words = [self.is_gang.then_some("GANG"), mode, self.is_within_qos.then_some("WITHIN")];
        words.into_iter().flatten().collect::<Vec<_>>().join(",")
    }
}
