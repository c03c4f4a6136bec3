//! A node in Slurm's JSON.
use model::Timestamp;
use model::config::Config;
use model::node::NextState;
use model::node_state::Base;
use model::request::NodeView;

use crate::node_view;
use crate::users::Names;
use crate::version;

use super::Json;

/// Writes the fields of one node.
pub fn write(view: &NodeView, config: &Config, names: &Names, json: &mut Json) {
    let (node, state) = (&view.node, view.state());
    let (sockets, cores, threads) = node_view::sockets(view);
    let secs = |moment: Option<Timestamp>| moment.map_or(0, Timestamp::secs);
    let used = node.used.cpus.len();
    let features = node.config.features.join(",");
    let tres_used = node_view::used_tres(view);
    json.field("architecture", &node.machine.architecture);
    json.field("burstbuffer_network_address", "");
    json.field("boards", 1_u32);
    json.field("boot_time", secs(node.machine.booted));
    json.field("comment", &node.comment);
    json.field("cores", cores);
    json.field("cpu_binding", 0_u32);
    json.field("cpu_load", None::<u32>);
    json.field("extra", &node.extra);
    json.field("free_memory", None::<u32>);
    json.field("cpus", node.config.cpus);
    json.field("last_busy", secs(node.last_busy));
    json.field("features", &features);
    json.field("active_features", &node.features().join(","));
    json.field("gres", &node_view::gres(view));
    json.field("gres_drained", "N/A");
    json.field("gres_used", &node_view::gres_used(view));
    json.field("mcs_label", "");
    json.field("name", node.name.as_str());
    let next = node.reboot.as_ref().and_then(|reboot| reboot.next);
    json.field(
        "next_state_after_reboot",
        next.map_or("invalid", |next| if next == NextState::Down { "down" } else { "resume" }),
    );
    json.field("address", node_view::address(view));
    json.field("hostname", node_view::host(view));
    json.field(
        "state",
        match state.base {
            Base::Unknown => "unknown",
            Base::Down => "down",
            Base::Idle => "idle",
            Base::Allocated => "allocated",
            Base::Mixed => "mixed",
        },
    );
    json.list_field("state_flags", |json| {
        for (is, flag) in [
            (state.completing, "COMPLETING"),
            (state.drain, "DRAIN"),
            (state.reboot_requested, "REBOOT_REQUESTED"),
            (state.reboot_issued, "REBOOT_ISSUED"),
            (state.silent, "NOT_RESPONDING"),
        ] {
            if is {
                json.item(flag);
            }
        }
    });
    json.list_field("next_state_after_reboot_flags", |_| {});
    json.field("operating_system", &node.machine.system);
    json.field("owner", None::<&str>);
    json.list_field("partitions", |json| {
        node_view::partitions_of(config, &node.name).for_each(|name| json.item(name));
    });
    json.field("port", 0_u32);
    json.field("real_memory", node.config.memory_mb);
    json.field("reason", node.reason.as_ref().map_or("", |reason| &reason.text));
    json.field("reason_changed_at", secs(node.reason.as_ref().map(|reason| reason.at)));
    json.field("reason_set_by_user", node.reason.as_ref().map(|reason| names.user(reason.by_uid)).as_ref());
    json.field("slurmd_start_time", secs(node.machine.agent_started));
    json.field("sockets", sockets);
    json.field("threads", threads);
    json.field("temporary_disk", node.config.tmp_disk_mb);
    json.field("weight", node.config.weight);
    json.field("tres", &node_view::configured_tres(view));
    json.field("slurmd_version", if node.machine.version.is_empty() { "" } else { version::SLURM });
    json.field("alloc_memory", node.used.memory_mb);
    json.field("alloc_cpus", used);
    json.field("idle_cpus", node.config.cpus.saturating_sub(used));
    json.field("tres_used", Some(tres_used.as_str()).filter(|text| !text.is_empty()));
    json.field("tres_weighted", f64::from(used));
}
