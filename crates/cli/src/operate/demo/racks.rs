//! The demo's part about the network: two racks with a switch each, and a job of four nodes that is not torn apart.
use model::NodeName;
use model::topology::{Switch, Topology, TopologyKind};

use super::scripts::NODES;
use super::stage::{Stage, wait};

/// Nodes in a rack.
const RACK: u32 = 4;

/// Racks of four below one switch.
pub fn network() -> Topology {
    let racks = NODES / RACK;
    let rack = |number: u32| Switch {
        name: format!("rack{}", number + 1),
        nodes: (1..=RACK).map(|node| NodeName::from(format!("n{}", number * RACK + node).as_str())).collect(),
        ..Default::default()
    };
    let mut switches: Vec<Switch> = (0..racks).map(rack).collect();
    let below = switches.iter().map(|switch| switch.name.clone()).collect();
    switches.push(Switch { name: "spine".into(), switches: below, ..Default::default() });
    Topology { name: "default".into(), is_default: true, kind: TopologyKind::Tree, switches, ..Default::default() }
}

pub fn tell(stage: &Stage) -> Result<(), String> {
    let small = stage.submit(&["--job-name=small", "--output=/dev/null", "--wrap=sleep 60"])?.to_string();
    let wide = ["--job-name=four", "--nodes=4", "--output=/dev/null", "--wrap=sleep 60"];
    let four = stage.submit(&wide)?.to_string();
    let state = || stage.quietly("squeue", &["-h", "-j", &four, "-o", "%t"]).unwrap_or_default();
    wait("the job of four nodes did not start", || state().trim() == "R")?;
    stage.show_verb("topo", &[])?;
    let nodes = stage.quietly("squeue", &["-h", "-j", &four, "-o", "%N"])?;
    let nodes = nodes.trim();
    if nodes != "n[5-8]" {
        return Err(format!("four nodes should have been one rack, not {nodes}"));
    }
    say!(
        "   rack1 has but three nodes left, so the four are {nodes}: one switch between them, and rack1 stays for smaller jobs"
    );
    stage.show("scancel", &[&small, &four])
}
