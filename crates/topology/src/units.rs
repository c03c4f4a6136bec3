//! Units by name: `switch{s4}`, `block{b[1-2]}`, `switchwith{n7}`, `blockwith{n7}` in lists of hosts.
use std::fmt;

use model::hostlist::{self, HostlistError};

use crate::{Form, Network, Shape};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownUnit(pub String);

impl fmt::Display for UnknownUnit {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} is not in the topology", self.0)
    }
}

impl Network {
    /// All names of a list; functions are of the default topology.
    pub fn expand(&self, list: &str) -> Result<Vec<String>, HostlistError> {
        hostlist::expand_with(list, |name, argument| {
            let refused = |why: String| HostlistError::Refused { function: format!("{name}{{{argument}}}"), why };
            let shape = self.shape("").ok_or_else(|| refused("there is no topology".into()))?;
            let nodes = self.function(shape, name, argument).map_err(|why| refused(why.to_string()))?;
            Ok(nodes.into_iter().map(|node| self.name(node).to_string()).collect())
        })
    }

    fn function(&self, shape: &Shape, name: &str, argument: &str) -> Result<Vec<u32>, UnknownUnit> {
        let unknown = |what: &str| UnknownUnit(what.to_string());
        let names = hostlist::expand(argument).map_err(|_| unknown(argument))?;
        let mut nodes = Vec::new();
        for each in &names {
            let found = match (name, &shape.form) {
                ("switch", Form::Tree(_)) | ("block", Form::Blocks(_)) => shape.nodes_of_unit(each),
                ("switchwith", Form::Tree(_)) | ("blockwith", Form::Blocks(_)) => {
                    let unit = self.find(each).and_then(|node| shape.unit_of(node));
                    unit.map(|unit| shape.unit_nodes(unit).to_vec())
                }
                _ => None,
            };
            nodes.extend(found.ok_or_else(|| unknown(each))?);
        }
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }
}

impl Shape {
    /// Every node below a switch, or of a block.
    pub fn nodes_of_unit(&self, name: &str) -> Option<Vec<u32>> {
        match &self.form {
            Form::Flat { .. } => None,
            Form::Tree(tree) => {
                let at = tree.switches.iter().position(|switch| switch.name == name)?;
                Some(tree.nodes_below(at as u32))
            }
            Form::Blocks(blocks) => {
                let block = blocks.list.iter().find(|block| block.name == name)?;
                Some(block.nodes.clone())
            }
        }
    }
}
