//! What an agent is told of its own node on the command line: `-Z` for one that no file names, `--conf` for what and where it is.
use model::NodeName;
use model::node::NodeConfig;

use super::given::Given;

#[derive(Debug, Default, PartialEq)]
pub struct Told {
    pub topology: Option<String>,
    pub node: Option<Box<NodeConfig>>,
}

/// The name that was given, or this machine's own.
pub fn own_name(named: Option<&NodeName>) -> NodeName {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    named.cloned().unwrap_or_else(|| host.split('.').next().unwrap_or(&host).into())
}

pub fn told(given: &Given, name: &NodeName) -> Result<Told, String> {
    let conf = given.conf.as_deref().unwrap_or_default();
    let keys: Vec<String> =
        conf.split_whitespace().filter_map(|word| Some(word.split_once('=')?.0.to_lowercase())).collect();
    if !given.is_dynamic && keys.iter().any(|key| key != "topology") {
        return Err(
            "--conf knows only Topology= for a node of the configuration; -Z is for one that is not in it".into()
        );
    }
    let (nodes, idle) = config::parse_node_line(&format!("NodeName={name} {conf}"))
        .map_err(|wrong| format!("--conf: {}", wrong.join("; ")))?;
    if let Some(idle) = idle {
        return Err(format!("--conf: {idle}"));
    }
    let Some(node) = nodes.into_iter().next() else { return Err(format!("--conf: {name} is no name of a node")) };
    let topology = node.config.topology.clone();
    if !given.is_dynamic {
        return Ok(Told { topology, node: None });
    }
    let mut config = node.config;
    let says = |names: &[&str]| keys.iter().any(|key| names.contains(&key.as_str()));
    if !says(&["cpus", "sockets", "boards", "socketsperboard", "corespersocket", "threadspercore"]) {
        config.cpus = config::machine::n_cpus();
    }
    if !says(&["realmemory"]) {
        config.memory_mb = config::machine::memory_mb();
    }
    Ok(Told { topology, node: Some(Box::new(config)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(is_dynamic: bool, conf: Option<&str>) -> Result<Told, String> {
        let given = Given { is_dynamic, conf: conf.map(String::from), ..Given::default() };
        told(&given, &"d1".into())
    }

    #[test]
    fn an_agent_may_be_told_where_and_what_its_node_is() {
        assert_eq!(read(false, None), Ok(Told::default()));
        assert_eq!(read(false, Some("Topology=default:r1")).unwrap().topology.as_deref(), Some("default:r1"));
        assert!(read(false, Some("CPUs=4")).unwrap_err().contains("-Z"));
        assert!(read(true, Some("CPUs=many")).unwrap_err().contains("CPUs"));
        assert!(read(true, Some("Colour=red")).unwrap_err().contains("Colour"));
        let told = read(true, Some("CPUs=4 RealMemory=100 Features=a,b Topology=t:b1")).unwrap();
        let node = told.node.unwrap();
        assert_eq!((node.cpus, node.memory_mb, node.features.len()), (4, 100, 2));
        let found = read(true, None).unwrap().node.unwrap();
        assert_eq!((found.cpus, found.memory_mb), (config::machine::n_cpus(), config::machine::memory_mb()));
    }
}
