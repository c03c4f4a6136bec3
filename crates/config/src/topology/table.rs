//! `[topology]` and `[[topologies]]` of a spur.conf.
use model::topology::{self, TopologyKind, TopologyRules};
use toml_edit::Item;

use super::{Raw, Unit, apply_params};
use crate::section::Section;

/// Nodes of a block when nothing is said.
const BLOCK_SIZE: u32 = 18;

/// What the tables say; `rules` are those of the first.
pub(crate) fn read(one: Option<Section>, several: Vec<Section>, rules: &mut TopologyRules) -> Vec<Raw<usize>> {
    let mut found = Vec::new();
    if let Some(mut section) = one {
        read_rules(&mut section, rules);
        let has_plugin = section.has("plugin");
        let topology = read_one(&mut section, topology::DEFAULT_NAME);
        if has_plugin {
            found.push(Raw { is_default: several.is_empty(), ..topology });
        }
        section.finish();
    }
    for mut section in several {
        let mut name = String::new();
        if !section.has("name") {
            section.notes.add(section.at, "[[topologies]] needs `name`");
        }
        section.word("name", &mut name);
        let mut is_default = false;
        section.flag("cluster_default", &mut is_default);
        let topology = read_one(&mut section, &name);
        section.finish();
        found.push(Raw { is_default, ..topology });
    }
    found
}

fn read_rules(section: &mut Section, rules: &mut TopologyRules) {
    let apply = section.read("apply", "\"all\" or \"requested\"", |item| match item.as_str()? {
        "all" => Some(false),
        "requested" => Some(true),
        _ => None,
    });
    rules.only_on_request = apply.unwrap_or(false);
    let (mut params, notes) = (String::new(), section.notes);
    section.text("params", &mut params);
    let at = section.take("params").map_or(section.at, |found| found.at);
    apply_params(&params, rules, |problem| notes.warn(at, problem));
    let mut weight_first = true;
    section.flag("weight_first", &mut weight_first);
    rules.network_before_weight = !weight_first;
    section.flag("exclusive_topo", &mut rules.exclusive_leaves);
    let mut has_reasons = true;
    section.flag("topology_reasons", &mut has_reasons);
    rules.plain_reasons = !has_reasons;
    if section.has("max_switch_wait") {
        let mut wait = topology::DEFAULT_SWITCH_WAIT;
        section.seconds("max_switch_wait", &mut wait);
        rules.max_switch_wait = Some(wait);
    }
    section.take("max_switch_wait");
}

fn read_one(section: &mut Section, name: &str) -> Raw<usize> {
    let expected = "\"tree\", \"block\" or \"none\"";
    let kind = section.read("plugin", expected, |item| TopologyKind::parse(item.as_str()?)).unwrap_or_default();
    let mut raw = Raw::new(name, section.at, kind);
    section.flag("alpha_step_rank", &mut raw.alpha_step_rank);
    let mut block_size = 0;
    section.number("block_size", 1..=65_536, &mut block_size);
    let sizes = section.read("block_sizes", "a list of whole numbers", |item: &Item| {
        item.as_array()?.iter().map(|value| value.as_integer()).collect::<Option<Vec<i64>>>()
    });
    raw.sizes_at = section.take("block_sizes").map_or(section.at, |found| found.at);
    let switches = units(section, "switches", true);
    let blocks = units(section, "blocks", false);
    if block_size > 0 && sizes.is_some() {
        section.notes.add(raw.sizes_at, "give `block_size` or `block_sizes`, not both");
    }
    raw.sizes = sizes.unwrap_or_else(|| (block_size > 0).then_some(i64::from(block_size)).into_iter().collect());
    match kind {
        TopologyKind::Flat => {}
        TopologyKind::Tree => raw.units = switches,
        TopologyKind::Block if blocks.is_empty() && switches.is_empty() => {
            raw.cut = raw.sizes.first().map_or(BLOCK_SIZE, |size| u32::try_from(*size).unwrap_or(BLOCK_SIZE));
        }
        // Each leaf switch is a base block.
        TopologyKind::Block if blocks.is_empty() => {
            raw.units = switches.into_iter().filter(|unit| unit.switches.is_none()).collect();
        }
        TopologyKind::Block => raw.units = blocks,
    }
    raw
}

fn units(section: &mut Section, key: &'static str, are_switches: bool) -> Vec<Unit<usize>> {
    let mut units = Vec::new();
    for mut table in section.sections(key) {
        let mut unit = Unit { name: String::new(), at: table.at, nodes: None, switches: None, link_speed: 0 };
        if !table.has("name") {
            table.notes.add(table.at, format!("[[topology.{key}]] needs `name`"));
        }
        table.word("name", &mut unit.name);
        unit.nodes = table.read("nodes", "a hostlist in quotes", |item| item.as_str().map(str::to_string));
        if are_switches {
            unit.switches = table.read("switches", "a hostlist in quotes", |item| item.as_str().map(str::to_string));
            table.number("link_speed", 0..=u32::MAX, &mut unit.link_speed);
            // Accepted where the first description of this table put it; it has a meaning for blocks only.
            let mut size = 0;
            table.number("block_size", 1..=65_536, &mut size);
            if size > 0 && !section_is_block(section) {
                table.notes.warn(table.at, "`block_size` has no effect on a switch");
            }
        }
        table.finish();
        units.push(unit);
    }
    units
}

fn section_is_block(section: &mut Section) -> bool {
    section.take("plugin").is_some_and(|found| found.item.as_str() == Some("block"))
}
