//! A cluster of two racks: where jobs land, what they are told of the network, and a network that changes under them.
use std::fs;

use crate::cluster::{Cluster, kill_9};

const RACKS: &str = "cluster_name = \"racks\"\n[[nodes]]\nnames = \"n[1-4]\"\ncpus = 2\nmemory_mb = 100\n";

const TREE: &str = "[topology]\nplugin = \"tree\"\n\
    [[topology.switches]]\nname = \"rack1\"\nnodes = \"n[1-2]\"\n[[topology.switches]]\nname = \"rack2\"\nnodes = \"n[3-4]\"\n\
    [[topology.switches]]\nname = \"fabric\"\nswitches = \"rack[1-2]\"\n";

#[test]
fn jobs_stay_in_a_rack_and_know_where_they_are() {
    let cluster = Cluster::configured(&format!("{RACKS}{TREE}"));
    assert_eq!(
        cluster.ok("scontrol show topology"),
        "SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n\
         SwitchName=rack2 Level=0 LinkSpeed=1 Nodes=n[3-4]\n\
         SwitchName=fabric Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=rack[1-2]"
    );
    let said = cluster.run("scontrol show topology zz");
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(said.err.contains("Topology information contains no switch or node named zz"), "{said:?}");
    assert!(cluster.ok("scontrol show node n3").contains("Topology=default:fabric:rack2"));
    let first = cluster.sbatch("--exclusive -N1 --wrap 'sleep 600'");
    cluster.wait_state(&first, "RUNNING");
    let pair = cluster.sbatch("--exclusive -N2 --wrap 'srun -l printenv SLURM_TOPOLOGY_ADDR; sleep 600'");
    cluster.wait_state(&pair, "RUNNING");
    assert_eq!(cluster.ok(&format!("squeue -h -j {first},{pair} -o %N -S i")), "n1\nn[3-4]");
    cluster.wait_file(&format!("slurm-{pair}.out"), |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines == ["0: fabric.rack2.n3", "1: fabric.rack2.n4"]
    });
    let picky = cluster.sbatch("--exclusive -N2 --switches=1@5:00 -t1 --wrap true");
    let shown = cluster.ok(&format!("scontrol show job {picky}"));
    assert!(shown.contains("Switches=1@00:05:00"), "{shown}");
    assert_eq!(cluster.ok(&format!("squeue -h -j {picky} -O reqswitch:2,wait4switch:5")).trim(), "1 5:00");
    let picture = cluster.ok(&format!("spur topo --dir {}", cluster.dir.display()));
    assert!(picture.contains("rack1  A·  1 of 2 free") && picture.contains("rack2  BB  0 of 2 free"), "{picture}");
    cluster.ok(&format!("spur topo --dir {} --svg topo.svg", cluster.dir.display()));
    assert!(cluster.file("topo.svg").starts_with("<svg"));
    let told = cluster.ok(&format!("spur topo --dir {} --json", cluster.dir.display()));
    assert!(told.contains("\"fragmentation\":1.0"), "{told}");
    cluster.ok("scancel -u root");
    for (line, why) in [
        ("sbatch --segment=2 -N3 --wrap true", "--segment=2 does not fit the job size (3): node count must be evenly"),
        ("sbatch --topology=ring --wrap true", "is not one of tree, block, none"),
        ("sbatch --topology=block --wrap true", "Requested topology configuration is not available"),
        ("sbatch -w 'switch{zz}' --wrap true", "Invalid node name specified"),
    ] {
        let said = cluster.run(line);
        assert!(said.code != 0 && said.err.contains(why) && said.out.is_empty(), "{line}: {said:?}");
    }
}

#[test]
fn a_new_network_holds_for_the_next_job_and_a_wrong_one_changes_nothing() {
    let cluster = Cluster::configured(&format!("{RACKS}{TREE}"));
    let file = cluster.dir.join("spur.conf");
    let text = fs::read_to_string(&file).unwrap();
    let running = cluster.sbatch("--exclusive -N3 --wrap 'sleep 600'");
    cluster.wait_state(&running, "RUNNING");
    fs::write(&file, text.replace("children", "").replace("\"rack[1-2]\"", "\"rack[1-3]\"")).unwrap();
    let said = cluster.run("scontrol reconfigure");
    assert!(said.code != 0 && said.err.contains("has invalid child (rack3)"), "{said:?}");
    assert!(cluster.ok("scontrol show topology fabric").contains("Switches=rack[1-2]"));
    let nodes_and_more = text.split("\n[topology]").next().unwrap();
    let blocks = "\n[topology]\nplugin = \"block\"\nblock_size = 2\n";
    fs::write(&file, format!("{nodes_and_more}{blocks}")).unwrap();
    cluster.ok("scontrol reconfigure");
    assert_eq!(
        cluster.ok("scontrol show topology"),
        "BlockName=block000 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=block001 BlockIndex=1 Nodes=n[3-4] BlockSize=2"
    );
    assert_eq!(cluster.ok(&format!("squeue -h -j {running} -o '%T %D'")), "RUNNING 3");
    cluster.ok(&format!("scancel {running}"));
    cluster.wait_for("sinfo -h -t idle -o %D", "4");
    let owner = cluster.sbatch("--exclusive=topo -N1 --wrap 'sleep 600'");
    cluster.wait_state(&owner, "RUNNING");
    let blocked = cluster.ok("sinfo -h -t blocked -o '%n %t' || sinfo -h -N -o '%n %t'");
    let shown = cluster.ok("scontrol show node");
    assert!(shown.contains("State=IDLE+BLOCKED"), "{blocked}\n{shown}");
}

#[test]
fn partitions_name_racks_and_nodes_say_where_they_are() {
    let partitions = "[[partitions]]\nname = \"first\"\nnodes = \"switch{rack1}\"\ndefault = true\n\
        [[partitions]]\nname = \"other\"\nnodes = \"n1,switchwith{n4}\"\n";
    let cluster = Cluster::configured(&format!("{RACKS}{TREE}{partitions}"));
    assert_eq!(cluster.ok("sinfo -h -o '%R %N'"), "first n[1-2]\nother n[1,3-4]");
    cluster.ok("scontrol create partitionname=made nodes='switch{rack2}'");
    cluster.ok("scontrol update partitionname=other nodes='switch{rack[1-2]}'");
    assert_eq!(cluster.ok("sinfo -h -o '%R %N'"), "first n[1-2]\nother n[1-4]\nmade n[3-4]");
    let unknown = cluster.run("scontrol update partitionname=other nodes='switch{zz}'");
    assert_eq!((unknown.code, unknown.err.as_str()), (1, "slurm_update error: Invalid node name specified\n"));
    cluster.ok("scontrol create reservation=r starttime=now duration=10 users=root nodes='switch{rack2}'");
    assert!(cluster.ok("scontrol show reservation r").contains("Nodes=n[3-4]"));
    let json = cluster.ok("scontrol show node n3 --json");
    assert!(json.contains("\"switch_name\": \"rack2\"") || json.contains("\"switch_name\":\"rack2\""), "{json}");
}

#[test]
fn nodes_are_created_come_by_themselves_and_go() {
    let cluster = Cluster::configured(&format!("{RACKS}{TREE}"));
    for (line, why) in [
        (
            "scontrol create NodeName=n1 CPUs=2",
            "Error creating the node(s): Invalid value for NodeName: n1 exists already",
        ),
        ("scontrol create NodeName=d1 CPUs=2 State=IDLE", "Only State=FUTURE and State=CLOUD allowed"),
        ("scontrol create NodeName=d1 CPUs=2 Topology=default:zz", "Requested topology configuration is not available"),
        ("scontrol create NodeName=d1 Colour=red", "unknown key `Colour`"),
        ("scontrol delete NodeName=n1", "delete_node NodeName=n1: Invalid node state specified"),
        ("scontrol delete NodeName=zz", "delete_node NodeName=zz: Invalid node name specified"),
    ] {
        let said = cluster.run(line);
        assert!(said.code == 1 && said.err.contains(why) && said.out.is_empty(), "{line}: {said:?}");
    }
    cluster.ok("scontrol create NodeName=d[1-2] CPUs=2 RealMemory=100 State=FUTURE Topology=default:rack2");
    assert!(cluster.ok("scontrol show topology rack2").contains("Nodes=d[1-2],n[3-4]"));
    // One more comes by itself.
    let agent = |node: &str, conf: &str| {
        std::process::Command::new(env!("CARGO_BIN_EXE_spur"))
            .args(["spurd", "-Z", "--config"])
            .arg(cluster.dir.join("spur.conf"))
            .args(["--node", node, "--conf", conf])
            .spawn()
            .unwrap()
    };
    let mut agents =
        vec![agent("d1", "Topology=default:rack1"), agent("d3", "CPUs=2 RealMemory=100 Topology=default:fabric:rack3")];
    cluster.wait_for("sinfo -h -n d[1,3] -t idle -o %D", "2");
    assert!(cluster.ok("scontrol show node d3").contains("Topology=default:fabric:rack3"));
    assert!(cluster.ok("scontrol show topology rack3").contains("Nodes=d3"));
    let job =
        cluster.sbatch("-w d[1,3] -N2 --exclusive -o out --wrap 'srun -l printenv SLURM_TOPOLOGY_ADDR; sleep 600'");
    cluster.wait_file("out", |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines == ["0: fabric.rack1.d1", "1: fabric.rack3.d3"]
    });
    let busy = cluster.run("scontrol delete NodeName=d[1-3]");
    assert!(busy.code == 1 && busy.err.contains("Requested nodes are busy"), "{busy:?}");
    // The controller dies: what was created is still there.
    kill_9(cluster.controller_pid());
    cluster.start("");
    assert!(cluster.ok("scontrol show node d3").contains("Topology=default:fabric:rack3"));
    let told = cluster.ok("sdiag");
    assert!(told.contains("Placement statistics (topology/tree)"), "{told}");
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_for("sinfo -h -n d[1,3] -o '%T %D'", "idle 2");
    cluster.ok("scontrol delete NodeName=d[1-3]");
    assert_eq!(cluster.ok("sinfo -h -o %N"), "n[1-4]");
    for agent in &mut agents {
        kill_9(agent.id() as i32);
        let _ = agent.wait();
    }
}

#[test]
fn a_wait_for_few_switches_ends_on_a_quiet_cluster() {
    let cluster = Cluster::configured(&format!("{RACKS}{TREE}"));
    for node in ["n1", "n3"] {
        let job = cluster.sbatch(&format!("--exclusive -w {node} -t10 --wrap 'sleep 600'"));
        cluster.wait_state(&job, "RUNNING");
    }
    let job = cluster.sbatch("--exclusive -N2 -t10 --switches=1@0:02 --wrap 'sleep 600'");
    cluster.wait_state(&job, "RUNNING");
}
