//! A site's topology.yaml. Every message names the element it is about: `#/0/tree/switches/`.
use model::topology::TopologyKind;
use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

use super::{Raw, Unit};

/// Line and column, from 1.
pub(crate) type Spot = (usize, usize);

type Node<'a> = MarkedYaml<'a>;

struct Reader {
    problems: Vec<(Spot, String)>,
}

/// The topologies of the file, and what is wrong with its form.
pub(crate) fn read(text: &str) -> (Vec<Raw<Spot>>, Vec<(Spot, String)>) {
    let mut reader = Reader { problems: Vec::new() };
    if let Some(line) = too_deep(text) {
        let why = "Failed to load topology.yaml: lists in lists too deep";
        return (Vec::new(), vec![((line, 1), why.into())]);
    }
    let documents = match Node::load_from_str(text) {
        Ok(documents) => documents,
        Err(error) => {
            let mark = error.marker();
            reader.problems.push(((mark.line(), mark.col() + 1), format!("Failed to load topology.yaml: {error}")));
            return (Vec::new(), reader.problems);
        }
    };
    let mut found = Vec::new();
    match documents.first() {
        Some(root) if root.data.is_sequence() => {
            let entries = root.data.as_sequence().expect("it is one");
            for (at, entry) in entries.iter().enumerate() {
                found.extend(reader.entry(entry, &format!("#/{at}/")));
            }
        }
        Some(root) if root.data.is_mapping() => found.extend(reader.entry(root, "#/")),
        Some(root) => reader.wrong(root, "#/", "must be a list of topologies"),
        None => reader.problems.push(((1, 1), "Failed to load topology.yaml: the file is empty".into())),
    }
    (found, reader.problems)
}

/// The line where brackets or indentation go deeper than anybody writes: the parser would follow with its stack.
fn too_deep(text: &str) -> Option<usize> {
    let mut n_open = 0u32;
    let is_deep = |line: &str| {
        let indented = line.bytes().take_while(|byte| b" -?".contains(byte)).count();
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => n_open += 1,
                b']' | b'}' => n_open = n_open.saturating_sub(1),
                _ => {}
            }
            if n_open > DEPTH_MAX {
                return true;
            }
        }
        indented > INDENTED_MAX
    };
    text.lines().map(is_deep).position(|is_deep| is_deep).map(|at| at + 1)
}

const DEPTH_MAX: u32 = 64;
const INDENTED_MAX: usize = 256;

fn spot(node: &Node) -> Spot {
    (node.span.start.line(), node.span.start.col() + 1)
}

fn text(node: &Node) -> Option<String> {
    match &node.data {
        YamlData::Value(Scalar::String(text)) => Some(text.to_string()),
        YamlData::Value(Scalar::Integer(number)) => Some(number.to_string()),
        _ => None,
    }
}

impl Reader {
    fn wrong(&mut self, node: &Node, path: &str, problem: &str) {
        self.problems.push((spot(node), format!("Failed to load topology.yaml: {path} {problem}")));
    }

    /// The members of a mapping; keys that are not expected are wrong.
    fn members<'n, 'a>(&mut self, node: &'n Node<'a>, path: &str, keys: &[&str]) -> Vec<(String, &'n Node<'a>)> {
        let Some(mapping) = node.data.as_mapping() else {
            self.wrong(node, path, "must be a mapping");
            return Vec::new();
        };
        let mut members = Vec::new();
        for (key, value) in mapping {
            match text(key) {
                Some(name) if keys.contains(&name.as_str()) => members.push((name, value)),
                Some(name) => self.wrong(key, &format!("{path}{name}/"), "is not known"),
                None => self.wrong(key, path, "has a key that is not a word"),
            }
        }
        members
    }

    fn list<'n, 'a>(&mut self, node: &'n Node<'a>, path: &str) -> Vec<&'n Node<'a>> {
        match node.data.as_sequence() {
            Some(list) => list.iter().collect(),
            None => {
                self.wrong(node, path, "must be a list");
                Vec::new()
            }
        }
    }

    fn word(&mut self, node: &Node, path: &str) -> String {
        text(node).unwrap_or_else(|| {
            self.wrong(node, path, "must be a text");
            String::new()
        })
    }

    fn flag(&mut self, node: &Node, path: &str) -> bool {
        node.data.as_bool().unwrap_or_else(|| {
            self.wrong(node, path, "must be true or false");
            false
        })
    }

    fn entry(&mut self, entry: &Node, path: &str) -> Option<Raw<Spot>> {
        let keys = ["topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"];
        let members = self.members(entry, path, &keys);
        let get = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, node)| *node);
        let name = match get("topology") {
            Some(node) => self.word(node, &format!("{path}topology/")),
            None => {
                self.wrong(entry, &format!("{path}topology/"), "is missing");
                return None;
            }
        };
        let mut raw = Raw::new(&name, spot(entry), TopologyKind::Flat);
        if let Some(node) = get("cluster_default") {
            raw.is_default = self.flag(node, &format!("{path}cluster_default/"));
        }
        let is_off = |node: &Node| node.data.as_bool() == Some(false);
        let plugins: Vec<&(String, &Node)> =
            members.iter().filter(|(key, node)| keys[2..].contains(&key.as_str()) && !is_off(node)).collect();
        let [(plugin, node)] = plugins[..] else {
            self.wrong(entry, path, "needs exactly one of tree, block and flat");
            return None;
        };
        let path = format!("{path}{plugin}/");
        match plugin.as_str() {
            "tree" => self.tree(node, &path, &mut raw),
            "block" => self.block(node, &path, &mut raw),
            "flat" => self.flat(node, &path, &mut raw),
            other => self.wrong(node, &path, &format!("topology/{other} is not supported")),
        }
        Some(raw)
    }

    fn tree(&mut self, node: &Node, path: &str, raw: &mut Raw<Spot>) {
        raw.kind = TopologyKind::Tree;
        for (_, list) in self.members(node, path, &["switches"]) {
            let path = format!("{path}switches/");
            for (at, unit) in self.list(list, &path).into_iter().enumerate() {
                let keys = ["switch", "nodes", "children", "link_speed"];
                raw.units.extend(self.unit(unit, &format!("{path}{at}/"), &keys));
            }
        }
    }

    fn block(&mut self, node: &Node, path: &str, raw: &mut Raw<Spot>) {
        raw.kind = TopologyKind::Block;
        for (key, value) in self.members(node, path, &["block_sizes", "blocks"]) {
            let path = format!("{path}{key}/");
            for (at, one) in self.list(value, &path).into_iter().enumerate() {
                let path = format!("{path}{at}/");
                if key == "blocks" {
                    raw.units.extend(self.unit(one, &path, &["block", "nodes"]));
                    continue;
                }
                raw.sizes_at = spot(value);
                match one.data.as_integer() {
                    Some(size) => raw.sizes.push(size),
                    None => self.wrong(one, &path, "must be a whole number"),
                }
            }
        }
    }

    fn flat(&mut self, node: &Node, path: &str, raw: &mut Raw<Spot>) {
        if node.data.is_boolean() {
            return;
        }
        for (key, value) in self.members(node, path, &["alpha_step_rank"]) {
            raw.alpha_step_rank = self.flag(value, &format!("{path}{key}/"));
        }
    }

    fn unit(&mut self, node: &Node, path: &str, keys: &[&str]) -> Option<Unit<Spot>> {
        let members = self.members(node, path, keys);
        let mut unit = Unit { name: String::new(), at: spot(node), nodes: None, switches: None, link_speed: 0 };
        for (key, value) in members {
            let path = format!("{path}{key}/");
            match key.as_str() {
                "nodes" => unit.nodes = Some(self.word(value, &path)),
                "children" => unit.switches = Some(self.word(value, &path)),
                "link_speed" => match value.data.as_integer().and_then(|speed| u32::try_from(speed).ok()) {
                    Some(speed) => unit.link_speed = speed,
                    None => self.wrong(value, &path, "must be a whole number"),
                },
                _ => unit.name = self.word(value, &path),
            }
        }
        if unit.name.is_empty() {
            self.wrong(node, &format!("{path}{}/", keys[0]), "is missing");
            return None;
        }
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_too_deep_is_refused_with_its_line() {
        for deep in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "? ".repeat(100_000)] {
            let (found, problems) = read(&format!("# comment\n{deep}\n"));
            assert!(found.is_empty());
            let wrong = ((2, 1), "Failed to load topology.yaml: lists in lists too deep".to_owned());
            assert_eq!(problems, [wrong]);
        }
    }
}
