//! Ports that the site keeps for the steps of jobs (`MpiParams=ports=12000-12999`).
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    /// `12000-12999`
    pub fn parse(text: &str) -> Option<PortRange> {
        let (first, last) = text.split_once('-')?;
        let range = PortRange { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? };
        (range.first > 0 && range.first <= range.last).then_some(range)
    }

    pub fn all(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }

    pub fn count(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}
