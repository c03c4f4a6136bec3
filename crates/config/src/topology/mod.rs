//! Descriptions of the network: the `[topology]` table, and a site's topology.conf and topology.yaml. What the three say is
//! gathered as `Raw` and checked by one set of rules.
mod check;
pub(crate) mod conf;
mod params;
mod table;
pub(crate) mod yaml;

pub(crate) use check::check;
pub(crate) use params::apply as apply_params;
pub(crate) use table::read as read_table;

use model::topology::TopologyKind;

/// A topology as written; `P` is a place in its file.
pub(crate) struct Raw<P> {
    pub name: String,
    pub at: P,
    pub is_default: bool,
    pub kind: TopologyKind,
    /// Switches, or blocks.
    pub units: Vec<Unit<P>>,
    pub sizes: Vec<i64>,
    pub sizes_at: P,
    /// Blocks of so many nodes are cut from all.
    pub cut: u32,
    pub alpha_step_rank: bool,
}

pub(crate) struct Unit<P> {
    pub name: String,
    pub at: P,
    pub nodes: Option<String>,
    pub switches: Option<String>,
    pub link_speed: u32,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The file is refused.
    Fatal,
    Warning,
}

impl<P: Clone> Raw<P> {
    pub fn new(name: &str, at: P, kind: TopologyKind) -> Self {
        Raw {
            name: name.into(),
            sizes_at: at.clone(),
            at,
            is_default: false,
            kind,
            units: Vec::new(),
            sizes: Vec::new(),
            cut: 0,
            alpha_step_rank: false,
        }
    }
}
