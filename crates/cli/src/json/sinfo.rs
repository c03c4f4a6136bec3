//! `sinfo --json` as Slurm's newer data parsers have it: groups of nodes, not nodes.
use model::config::Config;
use model::node_state::Base;
use model::request::NodeView;

use crate::node_view;
use crate::sinfo::Group;

use super::{Json, Shape, document, partition};

/// One item a group; `nodes` are all the cluster's.
pub fn groups(shape: Shape, config: &Config, groups: &[Group], nodes: &[NodeView]) -> String {
    document(shape, "sinfo", &config.cluster_name, "sinfo", |json| {
        groups.iter().for_each(|group| json.object(|json| write(group, nodes, config, json)));
    })
}

fn write(group: &Group, nodes: &[NodeView], config: &Config, json: &mut Json) {
    json.object_field("port", |json| bounds(group, |node| u64::from(node_view::port(node)), json));
    json.object_field("node", |json| {
        json.list_field("state", |json| group.first().into_iter().for_each(|node| states(node, json)));
    });
    let count = |is: &dyn Fn(&NodeView) -> bool| group.nodes.iter().filter(|node| is(node)).count() as u32;
    let is_used = |node: &NodeView| matches!(node.state().base, Base::Allocated | Base::Mixed);
    let is_out = |node: &NodeView| node.state().drain || matches!(node.state().base, Base::Down | Base::Unknown);
    json.object_field("nodes", |json| {
        json.field("allocated", count(&|node| is_used(node) && !is_out(node)));
        json.field("idle", count(&|node| !is_used(node) && !is_out(node)));
        json.field("other", count(&is_out));
        json.field("total", group.nodes.len() as u32);
        for name in ["hostnames", "addresses", "nodes"] {
            json.list_field(name, |json| group.nodes.iter().for_each(|node| json.item(node.node.name.as_str())));
        }
    });
    json.object_field("cpus", |json| {
        let sum = |number: &dyn Fn(&NodeView) -> u32| group.nodes.iter().map(|node| number(node)).sum::<u32>();
        let used = sum(&|node| node.node.used.cpus.len());
        let total = sum(&|node| node.node.config.cpus);
        let other = sum(&|node| if is_out(node) { node.node.config.cpus - node.node.used.cpus.len() } else { 0 });
        json.field("allocated", used);
        json.field("idle", total.saturating_sub(used + other));
        json.field("other", other);
        json.field("total", total);
        let load = |node: &NodeView| node.load.as_ref().map_or(0, |load| u64::from(load.cpu_hundredths));
        json.object_field("load", |json| bounds(group, load, json));
        bounds(group, |node| u64::from(node.node.config.cpus), json);
    });
    let shape_of = |part: fn((u32, u32, u32)) -> u32| move |node: &NodeView| u64::from(part(node_view::sockets(node)));
    json.object_field("sockets", |json| bounds(group, shape_of(|(sockets, ..)| sockets), json));
    json.object_field("cores", |json| bounds(group, shape_of(|(_, cores, _)| cores), json));
    json.object_field("threads", |json| bounds(group, shape_of(|(.., threads)| threads), json));
    json.object_field("disk", |json| bounds(group, |node| node.node.config.tmp_disk_mb, json));
    json.object_field("memory", |json| {
        bounds(group, |node| node.node.config.memory_mb, json);
        let free = || group.nodes.iter().filter_map(|node| node.load.as_ref()).map(|load| load.free_mb as i64);
        json.object_field("free", |json| {
            json.number("minimum", free().min());
            json.number("maximum", free().max());
        });
        json.field("allocated", group.nodes.iter().map(|node| node.node.used.memory_mb).sum::<u64>());
    });
    json.object_field("weight", |json| bounds(group, |node| u64::from(node.node.config.weight), json));
    let first = |text: &dyn Fn(&NodeView) -> String| group.first().map(text).unwrap_or_default();
    json.object_field("features", |json| {
        json.field("total", &first(&|node| node.node.config.features.join(",")));
        json.field("active", &first(&|node| node.node.features().join(",")));
    });
    json.object_field("gres", |json| {
        json.field("total", &first(&node_view::gres));
        json.field("used", &first(&node_view::gres_used));
    });
    json.field("cluster", &config.cluster_name);
    json.field("comment", &first(&|node| node.node.comment.clone()));
    json.field("extra", &first(&|node| node.node.extra.clone()));
    let reason = group.first().and_then(|node| node.node.reason.as_ref());
    json.object_field("reason", |json| {
        json.field("description", reason.map_or("", |reason| &reason.text));
        json.number("time", Some(reason.map_or(0, |reason| reason.at.secs() as i64)));
        json.field("user", &reason.map_or(String::new(), |reason| group.scene.names.user(reason.by_uid)));
    });
    json.field("reservation", "");
    json.object_field("partition", |json| partition::write_newer(group.partition, nodes, config, json));
}

fn bounds(group: &Group, number: impl Fn(&NodeView) -> u64, json: &mut Json) {
    let (least, most) = group.range(number);
    json.field("minimum", least);
    json.field("maximum", most);
}

fn states(node: &NodeView, json: &mut Json) {
    let state = node.state();
    json.item(match state.base {
        Base::Unknown => "UNKNOWN",
        Base::Down => "DOWN",
        Base::Idle => "IDLE",
        Base::Allocated => "ALLOCATED",
        Base::Mixed => "MIXED",
    });
    let flags = [(state.completing, "COMPLETING"), (state.drain, "DRAIN"), (state.silent, "NOT_RESPONDING")];
    flags.iter().filter(|(is, _)| *is).for_each(|(_, flag)| json.item(*flag));
}
