//! What the leader does by itself: plan, tick, carry out duties, notice silence.
mod het;
mod launch;
mod liveness;
mod mailer;
mod planner;
pub mod runner;
mod stage_orders;
pub mod stager;
mod ticker;

use std::sync::Arc;

use crate::agents::Agents;
use crate::door::Door;
use crate::machine::Published;

/// Starts all loops; they end with the process.
pub fn start(door: Arc<Door>, published: Published, agents: Arc<Agents>) -> (runner::Handle, stager::Handle) {
    tokio::spawn(planner::run(door.clone(), published.clone()));
    tokio::spawn(mailer::run(published.clone()));
    tokio::spawn(ticker::run(door.clone(), published.clone()));
    tokio::spawn(liveness::run(door.clone(), published.clone(), agents.clone()));
    let stager = stager::start(door.clone(), published.clone(), agents.clone());
    (runner::start(door, published, agents), stager)
}
