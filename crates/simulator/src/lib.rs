//! A world in a test: a seeded clock, users, agents, a leader and their faults around the real state and scheduler.
//!
//! ```text
//! users ──commands──▶ log ──apply──▶ Cluster ──duties──▶ leader ──orders──▶ agents (what really runs)
//!                      ▲                                    │                 │
//!                      └────── door: results, exits, plans ◀┴──── answers ◀───┘
//! ```
//! After every entry the state's own invariants hold, and what it says agrees with what really happened on the nodes
//! (`truth`) and with what clients were promised (`promises`).
mod accounts;
mod agents;
mod dice;
mod faults;
mod heal;
mod leader;
mod promises;
mod setting;
mod silence;
mod stages;
mod stopwatch;
mod truth;
mod users;
mod world;

pub use world::World;

/// One whole life of a cluster: trouble, healing, and the end of every job. Panics where something is wrong.
pub fn run(seed: u64) {
    let mut world = World::new(seed);
    let n_rounds = 60 + world.dice.below(100);
    for round in 0..n_rounds {
        world.at.0 += world.dice.below(8_000_000);
        users::act(&mut world);
        faults::strike(&mut world);
        leader::act(&mut world);
        agents::act(&mut world);
        if round == n_rounds / 2 || round + 1 == n_rounds {
            world.ensure(silence::check(&world));
        }
    }
    world.check_replay();
    heal::heal(&mut world);
    world.check_replay();
}
