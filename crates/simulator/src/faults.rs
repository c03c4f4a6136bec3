//! What goes wrong: streams break, machines restart or lose everything, nodes are given up, the controller restarts.
use model::node::Machine;
use model::{Command, ExitStatus, NodeName, codec};

use crate::World;
use crate::agents::Part;
use crate::leader::{self, Leader};

pub fn strike(world: &mut World) {
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    for name in names {
        if world.agent(&name).connection.is_some() {
            match world.dice.below(100) {
                0..3 => world.disconnect(&name),
                3 => restart_machine(world, &name),
                4 => wipe_machine(world, &name),
                _ => (),
            }
        } else {
            match world.dice.below(10) {
                0..4 => connect(world, &name),
                4 => world.leader.propose_later(Command::NodeLost { node: name.clone() }),
                _ => (),
            }
        }
    }
    if crate::setting::has_foreign_files(world.seed) {
        crate::stages::find_foreign_files(world);
    }
    if world.dice.one_in(25) {
        restart_controller(world);
    }
}

pub fn connect(world: &mut World, name: &NodeName) {
    let number = world.next_number();
    let agent = world.agent(name);
    agent.connection = Some(number);
    let machine = Box::new(Machine { boot_id: agent.n_boots.to_string(), ..Machine::default() });
    let command = Command::RegisterNode { node: name.clone(), machine, runs: agent.runs() };
    // What an earlier stream brought is not listened to any more.
    world.leader.answers.retain(|(from, ..)| from != name);
    world.leader.propose_later(command);
}

/// Every process is gone; the spool tells so when the agent comes up again.
fn restart_machine(world: &mut World, name: &NodeName) {
    world.disconnect(name);
    let lost: Vec<Part> = world.agent(name).processes.iter().copied().collect();
    for part in lost {
        let exited = world.agent(name).end(name, part, ExitStatus::signaled(9));
        world.truth.ended(&exited);
    }
    forget_memory(world, name);
}

/// The machine comes back empty: nobody will ever hear of what ran there.
fn wipe_machine(world: &mut World, name: &NodeName) {
    world.disconnect(name);
    world.disks.wipe(name);
    let agent = world.agent(name);
    let results = std::mem::take(&mut agent.spool).into_values();
    let unheard = results.map(|exited| (exited.job, exited.attempt, exited.step));
    let lost: Vec<Part> = std::mem::take(&mut agent.processes).into_iter().chain(unheard).collect();
    world.truth.forgotten(name, lost.into_iter());
    world.agent(name).prologs.clear();
    world.agent(name).epilogs.clear();
    world.truth.wiped(name);
    forget_memory(world, name);
}

fn forget_memory(world: &mut World, name: &NodeName) {
    let agent = world.agent(name);
    agent.n_boots += 1;
    agent.frozen.clear();
    agent.started.clear();
    agent.killed.clear();
}

/// Some of the proposals under way still reach the log; all else the leader knew is gone, and so are the streams.
fn restart_controller(world: &mut World) {
    let leader = std::mem::take(&mut world.leader);
    for command in leader.some_of_the_door(&mut world.dice) {
        leader::commit(world, command);
    }
    world.leader = Leader::default();
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    for name in names {
        world.disconnect(&name);
    }
    let snapshot = codec::encode(&world.cluster);
    let decoded = codec::decode(&snapshot).expect("a snapshot can be read");
    assert!(world.cluster == decoded, "seed {}: a snapshot reads as something else", world.seed);
    world.cluster = decoded;
    world.snapshot = Some((snapshot, world.log.len()));
}
