//! A node in Slurm's JSON.
use model::Timestamp;
use model::config::Config;
use model::node::NextState;
use model::node_state::Base;
use model::request::NodeView;
use topology::Network;

use crate::node_view::{self, Memberships};
use crate::users::Names;
use crate::version;

use super::Json;

/// What is known besides the node's own record.
pub struct Context<'a> {
    pub config: &'a Config,
    pub memberships: Memberships<'a>,
    pub network: &'a Network,
    pub names: &'a Names,
}

/// Writes the fields of one node.
pub fn write(view: &NodeView, context: &Context, json: &mut Json) {
    let Context { config, memberships, network, names } = context;
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
    json.field("cpu_load", view.load.as_ref().map(|load| load.cpu_hundredths));
    json.field("extra", &node.extra);
    json.field(
        if json.shape().is_newer() { "free_mem" } else { "free_memory" },
        view.load.as_ref().map(|load| load.free_mb),
    );
    json.field("cpus", node.config.all_cpus());
    json.field("last_busy", secs(node.last_busy));
    json.field("features", &features);
    json.field("active_features", &node.features().join(","));
    json.field("gres", &node_view::gres(view));
    json.field("gres_drained", "N/A");
    json.field("gres_used", &node_view::gres_used(view));
    json.field("mcs_label", "");
    json.field("name", node.name.as_str());
    let next = node.reboot.as_ref().and_then(|reboot| reboot.next);
    let next = next.map(|next| if next == NextState::Down { "down" } else { "resume" });
    if json.shape().is_newer() {
        json.list_field("next_state_after_reboot", |json| {
            next.into_iter().for_each(|next| json.item(&next.to_uppercase()));
        });
    } else {
        json.field("next_state_after_reboot", next.unwrap_or("invalid"));
    }
    json.field("address", node_view::address(view));
    json.field("hostname", node_view::host(view));
    let flags = [
        (state.completing, "COMPLETING"),
        (state.drain, "DRAIN"),
        (state.reboot_requested, "REBOOT_REQUESTED"),
        (state.reboot_issued, "REBOOT_ISSUED"),
        (state.silent, "NOT_RESPONDING"),
    ];
    let flags = || flags.iter().filter(|(is, _)| *is).map(|(_, flag)| *flag);
    let base = match state.base {
        Base::Unknown => "unknown",
        Base::Down => "down",
        Base::Idle => "idle",
        Base::Allocated => "allocated",
        Base::Mixed => "mixed",
    };
    if json.shape().is_newer() {
        json.list_field("state", |json| {
            json.item(&base.to_uppercase());
            flags().for_each(|flag| json.item(flag));
        });
        newer(view, config, json);
    } else {
        json.field("state", base);
        json.list_field("state_flags", |json| flags().for_each(|flag| json.item(flag)));
        json.list_field("next_state_after_reboot_flags", |_| {});
    }
    json.field("operating_system", &node.machine.system);
    json.field("owner", None::<&str>);
    json.list_field("partitions", |json| memberships.partitions(&node.name).iter().for_each(|name| json.item(*name)));
    json.field("port", node_view::port(view));
    json.field("real_memory", node.config.all_memory_mb());
    json.field("reason", node.reason.as_ref().map_or("", |reason| &reason.text));
    json.field("reason_changed_at", secs(node.reason.as_ref().map(|reason| reason.at)));
    json.field("reason_set_by_user", node.reason.as_ref().map(|reason| names.user(reason.by_uid)).as_ref());
    json.field("slurmd_start_time", secs(node.machine.agent_started));
    json.field("sockets", sockets);
    json.field("threads", threads);
    json.field("temporary_disk", node.config.tmp_disk_mb);
    json.field("weight", node.config.weight);
    json.field("tres", &node_view::configured_tres(view, memberships));
    json.field(
        if json.shape().is_newer() { "version" } else { "slurmd_version" },
        if node.machine.version.is_empty() { "" } else { version::SLURM },
    );
    json.field("alloc_memory", node.used.memory_mb);
    json.field("alloc_cpus", used);
    json.field(
        if json.shape().is_newer() { "alloc_idle_cpus" } else { "idle_cpus" },
        node.config.cpus.saturating_sub(used),
    );
    json.field("tres_used", Some(tres_used.as_str()).filter(|text| !text.is_empty()));
    json.field("tres_weighted", f64::from(used));
    json.field("topology", network.place(node.name.as_str()).as_str());
    json.field("switch_name", network.leaf(node.name.as_str()));
}

/// What parsers after 22.05's have besides.
fn newer(view: &NodeView, config: &Config, json: &mut Json) {
    json.field("cluster_name", &config.cluster_name);
    let kept = &view.node.config;
    json.field("specialized_cores", kept.kept_cores);
    json.field("specialized_cpus", kept.kept_cpus.to_string().as_str());
    json.field("specialized_memory", kept.kept_memory_mb);
    json.field("effective_cpus", view.node.config.cpus);
    // Nothing measures energy here.
    json.object_field("energy", |json| {
        json.field("average_watts", 0_u32);
        json.field("base_consumed_energy", 0_u32);
        json.field("consumed_energy", 0_u32);
        json.number("current_watts", Some(0));
        json.field("previous_consumed_energy", 0_u32);
        json.field("last_collected", 0_u32);
    });
    json.object_field("external_sensors", |_| {});
    json.object_field("power", |_| {});
    json.field("gpu_spec", "");
    json.field("instance_id", &view.node.instance_id);
    json.field("instance_type", &view.node.instance_type);
    json.number("resume_after", None);
    json.field("reservation", &view.reservation);
}
