//! What the leader does by itself: plan, tick, carry out duties, notice silence.
pub mod disk_room;
mod fanout;
pub mod health;
mod het;
pub mod hooks;
mod launch;
mod liveness;
mod mail_arrays;
pub(crate) mod mail_queue;
mod mail_words;
mod mailer;
pub mod neighbours;
mod numbers;
mod planner;
pub mod pools;
pub mod rules;
pub mod runner;
pub mod stage_orders;
pub mod stager;
mod ticker;
mod triggers;

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::agents::Agents;
use crate::door::Door;
use crate::machine::Published;

/// Starts all loops; they end when the lead does.
pub fn start(
    door: Arc<Door>,
    published: Published,
    agents: Arc<Agents>,
    places: hooks::Places,
    loops: &mut JoinSet<()>,
) -> (runner::Handle, stager::Handle) {
    loops.spawn(planner::run(door.clone(), published.clone()));
    loops.spawn(mailer::run(published.clone()));
    loops.spawn(ticker::run(door.clone(), published.clone()));
    loops.spawn(triggers::run(door.clone(), published.clone(), places.config_file.clone()));
    loops.spawn(health::run(published.clone(), agents.clone()));
    loops.spawn(pools::run(published.clone(), agents.clone()));
    loops.spawn(liveness::run(door.clone(), published.clone(), agents.clone()));
    let stager = stager::start(door.clone(), published.clone(), agents.clone(), loops);
    (runner::start(door, published, agents, places, loops), stager)
}
