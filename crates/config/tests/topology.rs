//! Descriptions of the network in all three files, with every problem at its line.
use std::path::PathBuf;

use model::Config;
use model::topology::TopologyKind;

const NODES: &str = "[[nodes]]\nnames = \"n[1-8]\"\ncpus = 1\nmemory_mb = 1\n";

fn problems(text: &str) -> Vec<String> {
    match config::parse(&format!("{NODES}{text}"), "c") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.to_string().lines().map(str::to_string).collect(),
    }
}

/// A folder with these files, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("spur-topology-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        files.iter().for_each(|(name, text)| std::fs::write(path.join(name), text).expect("a file"));
        Folder(path)
    }

    fn load(&self, file: &str) -> (Result<Config, String>, Vec<String>) {
        let shown = |problems: &config::Problems| problems.to_string().replace(&format!("{}/", self.0.display()), "");
        match config::read_with_warnings(&self.0.join(file)) {
            Ok((config, warnings)) => (Ok(config), shown(&warnings).lines().map(str::to_string).collect()),
            Err(problems) => (Err(shown(&problems)), Vec::new()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SLURM: &str = "NodeName=tux[0-15] CPUs=1\nPartitionName=p Nodes=ALL\nTopologyPlugin=topology/tree\n";

fn slurm(name: &str, conf: &str) -> (Result<Config, String>, Vec<String>) {
    Folder::new(name, &[("slurm.conf", SLURM), ("topology.conf", conf)]).load("slurm.conf")
}

#[test]
fn the_table_of_a_spur_conf() {
    let text = format!(
        "{NODES}[topology]\nplugin = \"tree\"\nparams = \"SwitchAsNodeRank,TopoOptional\"\nmax_switch_wait = 60\n\
         [[topology.switches]]\nname = \"r1\"\nnodes = \"n[1-4]\"\n[[topology.switches]]\nname = \"r2\"\nnodes = \"n[5-8]\"\n\
         [[topology.switches]]\nname = \"top\"\nswitches = \"r[1-2]\"\n"
    );
    let config = config::parse(&text, "c").unwrap();
    let [topology] = &config.topologies[..] else { panic!("one topology") };
    assert_eq!((topology.name.as_str(), topology.kind, topology.is_default), ("default", TopologyKind::Tree, true));
    assert_eq!(topology.switches[2].switches, ["r1", "r2"]);
    assert!(config.topology.is_optional && config.topology.ranks_by_unit && !config.topology.only_on_request);
    assert_eq!(config.topology.max_switch_wait().secs(), 60);
    assert_eq!(config::parse(&config::render(&config), "again").unwrap(), config);
}

#[test]
fn blocks_are_cut_of_all_nodes() {
    let config = config::parse(&format!("{NODES}[topology]\nplugin = \"block\"\nblock_size = 3\n"), "c").unwrap();
    assert_eq!((config.topologies[0].cut, &config.topologies[0].block_sizes[..]), (3, &[3][..]));
    assert_eq!(config::parse(&config::render(&config), "again").unwrap(), config);
    let config = config::parse(&format!("{NODES}[topology]\nplugin = \"block\"\n"), "c").unwrap();
    assert_eq!(config.topologies[0].cut, 18);
}

#[test]
fn several_topologies_and_a_partition_for_each() {
    let text = format!(
        "{NODES}[[partitions]]\nname = \"a\"\nnodes = \"ALL\"\ndefault = true\n\
         [[partitions]]\nname = \"b\"\nnodes = \"ALL\"\ntopology = \"two\"\n\
         [[topologies]]\nname = \"one\"\nplugin = \"none\"\n\
         [[topologies]]\nname = \"two\"\ncluster_default = true\nplugin = \"block\"\nblock_sizes = [4, 8]\n\
         [[topologies.blocks]]\nname = \"b1\"\nnodes = \"n[1-4]\"\n[[topologies.blocks]]\nname = \"b2\"\nnodes = \"n[5-8]\"\n"
    );
    let config = config::parse(&text, "c").unwrap();
    assert!(!config.topologies[0].is_default && config.topologies[1].is_default);
    assert_eq!(config.partitions[1].topology, "two");
    assert_eq!(config::parse(&config::render(&config), "again").unwrap(), config);
    assert_eq!(
        problems(&text[NODES.len()..].replace("\"two\"\n[[top", "\"three\"\n[[top")),
        ["c:12:12: there is no topology three"]
    );
}

#[test]
fn problems_of_the_table_have_their_lines() {
    let table = "[topology]\nplugin = \"tree\"\n";
    let switch = |name: &str, rest: &str| format!("[[topology.switches]]\nname = \"{name}\"\n{rest}\n");
    for (text, expected) in [
        (
            "[topology]\nplugin = \"ring\"\n".into(),
            "c:6:10: `plugin` must be \"tree\", \"block\" or \"none\", not \"ring\"",
        ),
        ("[topology]\nplugim = \"tree\"\n".into(), "c:6:1: unknown key `plugim` in [topology]; did you mean `plugin`?"),
        (table.into(), "c:5:2: No switches configured"),
        (
            format!("{table}{}", switch("a", "switches = \"zz\"")),
            "c:7:1: Switch configuration a has invalid child (zz)",
        ),
        (format!("{table}{}", switch("a", "switches = \"a\"")), "c:7:1: Switch configuration a has invalid child (a)"),
        (
            format!("{table}{}{}", switch("a", "switches = \"b\""), switch("b", "switches = \"a\"")),
            "c:7:1: Switch configuration is not a tree: a,b",
        ),
        (
            format!("{table}{}{}", switch("a", "nodes = \"n1\""), switch("a", "nodes = \"n2\"")),
            "c:10:1: Switch (a) has already been defined",
        ),
        (
            format!("{table}{}{}", switch("a", "nodes = \"n1\"\nswitches = \"b\""), switch("b", "nodes = \"n2\"")),
            "c:7:1: switch a has both child switches and nodes",
        ),
        (
            format!("{table}{}", switch("a", "nodes = \"n[1\"")),
            "c:7:1: switch a: hostlist \"n[1\": bracket without its partner",
        ),
        (
            format!("{table}{}", switch(&"x".repeat(64), "nodes = \"n1\"")),
            "c:7:1: Switch name xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx must be shorter than 64 chars",
        ),
        ("[topology]\nplugin = \"block\"\nblock_sizes = [4, 12]\n".into(), "c:7:15: Invalid BlockSizes value: 12"),
    ] {
        assert_eq!(problems(&text), [expected], "{text}");
    }
    let twice = "[topology]\nplugin = \"block\"\n[[topology.blocks]]\nname = \"b1\"\nnodes = \"n[1-4]\"\n\
                 [[topology.blocks]]\nname = \"b2\"\nnodes = \"n[4-8]\"\n";
    assert_eq!(problems(twice), ["c:10:1: node n4 is in the blocks b1 and b2"]);
}

#[test]
fn a_sites_topology_conf() {
    let conf = "# racks\nSwitchName=s0 Nodes=tux[0-3]\nSwitchName=s1 Nodes=tux[4-15] LinkSpeed=10\n\
                switchname=s2 \\\n  Switches=s[0-1]\nBlockName=b1 Nodes=tux[0-3]\n";
    let (config, warnings) = slurm("good", conf);
    let config = config.unwrap();
    assert_eq!(config.topologies[0].switches[1].link_speed, 10);
    assert_eq!(warnings, ["topology.conf:6:1: 1 records are not for topology/tree: ignored"]);
}

#[test]
fn what_a_topology_conf_says_in_vain_is_told() {
    let (config, warnings) = slurm("vain", "SwitchName=s0 Nodes=tux[0-3,nope],nope[1-2]\n");
    assert!(config.unwrap_err().contains("topology.conf:1:1: switch s0: hostlist"), "a bad list is refused");
    let (config, mut warnings2) =
        slurm("vain2", "SwitchName=s0 Nodes=tux[0-3],nope[1-2]\nSwitchName=s1 Nodes=tux[3-4]\n");
    assert!(config.is_ok() && warnings.is_empty());
    warnings2.sort();
    assert_eq!(
        warnings2,
        [
            "topology.conf:1:1: Invalid hostnames in switch configuration: nope[1-2]",
            "topology.conf:1:1: Multiple leaf switches contain nodes: tux3",
            "topology.conf:1:1: no switch can reach all nodes: jobs cannot span its trees",
            "topology.conf:1:1: switches lack access to 11 nodes: tux[5-15]",
        ]
    );
    for (name, conf, expected) in [
        ("v5", "SwitchName=a Switches=zz", "topology.conf:1:1: Switch configuration a has invalid child (zz)"),
        ("ring", "RingName=r Nodes=tux[0-3]", "topology.conf:1:1: topology/ring is not supported"),
        ("key", "Foo=1", "topology.conf:1:1: Parsing error at unrecognized key: Foo"),
        ("none", "# nothing", "topology.conf:1:1: No switches configured"),
    ] {
        let (config, _) = slurm(name, conf);
        assert!(config.as_ref().unwrap_err().lines().any(|line| line == expected), "{config:?}");
    }
}

#[test]
fn a_sites_topology_yaml() {
    let yaml = "- topology: topo1\n  tree: { switches: [ {switch: root, children: \"s[1-2]\"}, {switch: s1, nodes: \"tux[0-7]\"},\n    \
                {switch: s2, nodes: \"tux[8-15]\"}, {switch: spare} ] }\n\
                - topology: topo2\n  cluster_default: true\n  block:\n    block_sizes:\n    - 4\n    - 16\n    blocks:\n    \
                - block: b1\n      nodes: tux[0-3]\n    - block: b2\n      nodes: \"tux[4-15]\"\n\
                - topology: topo3\n  flat: true\n";
    let folder = Folder::new("yaml", &[("slurm.conf", SLURM), ("topology.yaml", yaml)]);
    let (config, warnings) = folder.load("slurm.conf");
    let config = config.unwrap();
    assert_eq!(warnings, ["topology.yaml:1:3: no switch can reach all nodes: jobs cannot span its trees"]);
    let kinds: Vec<TopologyKind> = config.topologies.iter().map(|topology| topology.kind).collect();
    assert_eq!(kinds, [TopologyKind::Tree, TopologyKind::Block, TopologyKind::Flat]);
    assert!(config.topologies[1].is_default);
    assert_eq!(config.topologies[1].block_sizes, [4, 16]);
    assert_eq!(config::parse(&config::render(&config), "again").unwrap().topologies, config.topologies);
}

#[test]
fn problems_of_a_topology_yaml_name_the_element() {
    for (name, yaml, expected) in [
        ("root", "just text", "topology.yaml:1:1: Failed to load topology.yaml: #/ must be a list of topologies"),
        (
            "tree",
            "- topology: a\n  tree: 5",
            "topology.yaml:2:9: Failed to load topology.yaml: #/0/tree/ must be a mapping",
        ),
        (
            "switches",
            "- topology: a\n  tree:\n    switches: 7",
            "topology.yaml:3:15: Failed to load topology.yaml: #/0/tree/switches/ must be a list",
        ),
        (
            "two",
            "- topology: a\n  flat: true\n  block: {}",
            "topology.yaml:1:3: Failed to load topology.yaml: #/0/ needs exactly one of tree, block and flat",
        ),
        (
            "ring",
            "- topology: a\n  ring: {}",
            "topology.yaml:2:9: Failed to load topology.yaml: #/0/ring/ topology/ring is not supported",
        ),
        (
            "same",
            "- topology: a\n  flat: true\n- topology: a\n  flat: true",
            "topology.yaml:3:3: topology a is given twice",
        ),
    ] {
        let folder = Folder::new(&format!("y{name}"), &[("slurm.conf", SLURM), ("topology.yaml", yaml)]);
        let (config, _) = folder.load("slurm.conf");
        assert_eq!(config.unwrap_err(), expected);
    }
    let folder = Folder::new("broken", &[("slurm.conf", SLURM), ("topology.yaml", "- a: [1\n")]);
    let found = folder.load("slurm.conf").0.unwrap_err();
    assert!(found.contains("Failed to load topology.yaml"), "{found}");
}

const RACKS: &str = "[topology]\nplugin = \"tree\"\n[[topology.switches]]\nname = \"r1\"\nnodes = \"n[5-8]\"\n\
    [[topology.switches]]\nname = \"r2\"\nnodes = \"n[1-2,4]\"\n[[topology.switches]]\nname = \"top\"\nswitches = \"r[1-2]\"\n";

fn nodes_of(config: &Config, partition: &str) -> String {
    model::hostlist::compress(&config.partition(partition).expect("it is there").nodes)
}

#[test]
fn partitions_may_name_switches_and_blocks() {
    let partition = |list: &str| format!("{RACKS}[[partitions]]\nname = \"p\"\nnodes = \"{list}\"\n");
    for (list, nodes) in [
        ("switch{r1}", "n[5-8]"),
        ("n3,switchwith{n2}", "n[1-4]"),
        ("switch{top}", "n[1-2,4-8]"),
        ("switch{r[1-2]},n3", "n[1-8]"),
    ] {
        let config = config::parse(&format!("{NODES}{}", partition(list)), "c").unwrap();
        assert_eq!(nodes_of(&config, "p"), nodes, "{list}");
        assert_eq!(config::parse(&config::render(&config), "again").unwrap(), config);
    }
    for list in ["switch{zz}", "block{r1}", "switchwith{n99}", "nosuch{r1}"] {
        let problems = problems(&partition(list));
        assert!(problems.len() == 1 && problems[0].contains("partition p: "), "{list}: {problems:?}");
    }
    let slurm_conf = "NodeName=tux[0-3] CPUs=1\nPartitionName=p Nodes=switch{s1},tux0\nTopologyPlugin=topology/tree\n";
    let conf = "SwitchName=s0 Nodes=tux[0-1]\nSwitchName=s1 Nodes=tux[2-3]\nSwitchName=s2 Switches=s[0-1]\n";
    let folder = Folder::new("units", &[("slurm.conf", slurm_conf), ("topology.conf", conf)]);
    assert_eq!(nodes_of(&folder.load("slurm.conf").0.unwrap(), "p"), "tux[0,2-3]");
    // A topology.yaml beside the file counts for this too.
    let yaml = "- topology: t\n  block: {block_sizes: [2], blocks: [{block: b1, nodes: \"n[1-2]\"}, {block: b2, nodes: \"n[3-8]\"}]}\n";
    let own = format!("{NODES}[[partitions]]\nname = \"p\"\nnodes = \"block{{b1}}\"\n");
    let folder = Folder::new("units-yaml", &[("spur.conf", &own), ("topology.yaml", yaml)]);
    assert_eq!(nodes_of(&folder.load("spur.conf").0.unwrap(), "p"), "n[1-2]");
}

#[test]
fn nodes_may_be_in_the_order_of_their_switches() {
    let names = |params: &str| {
        let racks = RACKS.replacen("\n", &format!("\nparams = \"{params}\"\n"), 1);
        let config = config::parse(&format!("{NODES}{racks}"), "c").unwrap();
        config.nodes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(""), "n1 n2 n3 n4 n5 n6 n7 n8");
    assert_eq!(names("SwitchAsNodeRank"), "n5 n6 n7 n8 n1 n2 n4 n3", "those in no rack come last");
}

#[test]
fn a_partition_may_keep_the_racks_of_its_jobs_for_itself() {
    let conf = |rest: &str| format!("NodeName=n[1-2] CPUs=1\nPartitionName=p Nodes=ALL {rest}\n");
    let read = |rest: &str| config::parse_slurm(&conf(rest), "slurm.conf").map(|(config, _)| config);
    let partition = |rest: &str| read(rest).unwrap().partition("p").cloned().unwrap();
    assert!(partition("Exclusive=TOPO").exclusive_topology && partition("ExclusiveTopo=YES").exclusive_topology);
    assert!(partition("Exclusive=USER").exclusive_user && !partition("Exclusive=NO").exclusive_topology);
    let both = partition("Exclusive=TOPO ExclusiveUser=YES");
    assert!(both.exclusive_topology && !both.exclusive_user);
    assert!(read("Exclusive=MAYBE").is_err());
}

#[test]
fn odd_trees_and_blocks_are_told() {
    let conf = "SwitchName=s0 Nodes=tux[0-7]\nSwitchName=s1 Nodes=tux[8-15]\nSwitchName=a Switches=s[0-1]\n\
                SwitchName=b Switches=s[0-1]\nSwitchName=top Switches=a,b\n";
    let (config, warnings) = slurm("twice", conf);
    assert!(config.is_ok());
    assert!(
        warnings.iter().any(|line| line.contains("s0") && line.contains('a') && line.contains('b')),
        "{warnings:?}"
    );
    let network = topology::Network::new(&config.unwrap(), &[]);
    let topology::Form::Tree(tree) = &network.shapes[0].form else { panic!("a tree") };
    let parent = tree.switches[0].parent.map(|at| tree.switches[at as usize].name.as_str());
    assert_eq!(parent, Some("b"), "the last parent counts");
    let blocks = |name: &str, conf: &str| {
        let slurm_conf = SLURM.replace("topology/tree", "topology/block");
        Folder::new(name, &[("slurm.conf", &slurm_conf), ("topology.conf", conf)]).load("slurm.conf")
    };
    let (config, _) = blocks("empty", "BlockName=b1\nBlockName=b2\n");
    assert!(config.unwrap_err().contains("Blocks do not contain any nodes and the BlockSizes are not set"));
    let (config, warnings) =
        blocks("small", "BlockName=b1 Nodes=tux[0-2]\nBlockName=b2 Nodes=tux[3-15]\nBlockSizes=4,8\n");
    assert!(config.is_ok());
    assert!(
        warnings.iter().any(|line| line.contains("block b1 has 3 nodes, less than the base size 4")),
        "{warnings:?}"
    );
}

#[test]
fn a_partition_may_wait_for_near_nodes() {
    let text = format!("{NODES}[[partitions]]\nname = \"p\"\nnodes = \"ALL\"\ntopology_wait = 120\n");
    let config = config::parse(&text, "c").unwrap();
    assert_eq!(config.partitions[0].topology_wait.map(|wait| wait.secs()), Some(120));
    assert_eq!(config::parse(&config::render(&config), "again").unwrap(), config);
}

#[test]
fn nodes_are_described_in_one_line() {
    let (nodes, idle) =
        config::parse_node_line("NodeName=d[1-2] CPUs=4 RealMemory=100 State=FUTURE Topology=t:r1").unwrap();
    assert_eq!((nodes.len(), nodes[1].name.as_str(), nodes[1].config.cpus), (2, "d2", 4));
    assert_eq!((nodes[0].config.topology.as_deref(), idle), (Some("t:r1"), None));
    assert_eq!(config::parse_node_line("NodeName=d1 Port=7").unwrap().1.unwrap(), "without effect here: Port");
    for line in ["NodeName=d[1 CPUs=4", "NodeName=d1 CPUs=x", "NodeName=d1 Foo=1", "CPUs"] {
        assert!(config::parse_node_line(line).is_err(), "{line}");
    }
}
