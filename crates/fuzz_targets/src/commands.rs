//! Commands of users and reports of nodes, one after the other, on a small cluster: none breaks an invariant, none panics, and a
//! refused one leaves no trace.
use model::config::NamedNode;
use model::node::NodeConfig;
use model::{Caller, Command, Config, Entry, Partition, Reject, Timestamp};
use state::{Cluster, apply, check};
use testkit::hostile_values::draw;

const ALICE: Caller = Caller { uid: 1000, gid: 1000, is_admin: false };
const BOB: Caller = Caller { uid: 1001, gid: 1001, is_admin: false };
/// Longer stories only cost time.
const COMMANDS_MAX: usize = 24;

fn config() -> Config {
    let node = |number: u32| NamedNode {
        name: format!("n{number}").into(),
        config: NodeConfig { cpus: 4, memory_mb: 1000, ..Default::default() },
    };
    let nodes: Vec<NamedNode> = (1..=3).map(node).collect();
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    let partition = Partition { name: "debug".into(), nodes: names, is_default: true, ..Default::default() };
    Config { nodes, partitions: vec![partition], ..Default::default() }
}

fn start() -> Cluster {
    let mut cluster = Cluster::of_today();
    let mut tell = |command| {
        let entry = Entry { at: Timestamp::from_secs(1_000), by: Caller::SYSTEM, command };
        apply(&mut cluster, &entry).reply.expect("an ordinary beginning")
    };
    tell(Command::Reconfigure { config: Box::new(config()) });
    for node in ["n1", "n2", "n3"] {
        tell(Command::RegisterNode { node: node.into(), machine: Default::default(), runs: Vec::new() });
    }
    cluster
}

/// What a user may send, or what the controller makes of what a node's root may say.
fn may_come(command: &Command) -> bool {
    let is_of_nodes = matches!(
        command,
        Command::DropBuffer { .. }
            | Command::UpdateNodes { .. }
            | Command::Exited(_)
            | Command::BufferMeasured { .. }
            | Command::RegisterNode { .. }
            | Command::NodeLost { .. }
            | Command::PoolsSeen { .. }
            | Command::NoteStopped { .. }
            | Command::Tick
    );
    is_of_nodes || command.is_from_users()
}

pub fn seeds() -> Vec<Vec<u8>> {
    (0..32u8).map(|turn| (0..600u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ turn).collect()).collect()
}

pub fn run(bytes: &[u8]) {
    let mut cluster = start();
    live_through(bytes, &mut cluster);
}

/// A cluster where this and that has happened.
pub fn busy_cluster() -> Cluster {
    let mut cluster = start();
    seeds().iter().take(4).for_each(|seed| live_through(seed, &mut cluster));
    cluster
}

fn live_through(mut entropy: &[u8], cluster: &mut Cluster) {
    let mut now = 1_000;
    for _ in 0..COMMANDS_MAX {
        let Some((first, rest)) = entropy.split_first() else { return };
        entropy = rest;
        let by = [ALICE, BOB, Caller::SYSTEM][usize::from(*first) % 3];
        now += u64::from(*first) / 3;
        let Some(command) = draw::<Command>(&mut entropy).filter(may_come) else { continue };
        // As the door does.
        let is_judged = state::judge_content(cluster, by, &command).is_ok()
            && state::judge_machines(&command).is_ok()
            && model::text_bounds::judge(&command).is_ok()
            && state::judge_work(cluster, &command).is_ok();
        if !is_judged {
            continue;
        }
        let before = cluster.clone();
        let entry = Entry { at: Timestamp::from_secs(now), by, command };
        let reply = apply(cluster, &entry).reply;
        if let Err(Reject::Internal(why)) = &reply {
            panic!("{why}: {:?}", entry.command);
        }
        check::check(cluster).unwrap_or_else(|violation| panic!("{violation}: {:?}", entry.command));
        if reply.is_err() {
            check::left_no_trace(&before, cluster).unwrap_or_else(|trace| panic!("{trace}: {:?}", entry.command));
        }
    }
}
