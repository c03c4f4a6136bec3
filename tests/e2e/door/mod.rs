//! Attacks on the running daemons: one file a kind of attack, one test a finding. Each fails where the rule it names is missing.
mod answers;
mod at_rest;
mod audit;
mod callers;
mod certificates;
mod content;
mod contract;
mod endurance;
mod every_call;
mod hardening;
mod identity;
mod listeners;
mod nesting;
pub mod processes;
mod sizes;
mod texts;
mod transport;
mod trust_table;
