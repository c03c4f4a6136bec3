//! Reservations and licences as Slurm's data parsers have them.
use model::request::LicenseView;
use model::{Reservation, hostlist, license};

use super::{Json, Shape, dated};
use crate::scontrol::reserved::Reserved;

/// What `--json` prints for reservations.
pub fn reservations(shape: Shape, cluster: &str, list: &[(&Reservation, Reserved)]) -> String {
    dated(shape, "scontrol", cluster, "reservations", |json| {
        list.iter().for_each(|(one, reserved)| json.object(|json| write(one, reserved, json)));
    })
}

fn write(one: &Reservation, reserved: &Reserved, json: &mut Json) {
    json.field("accounts", &one.accounts.show());
    json.field("burst_buffer", &one.burst_buffer);
    json.field("core_count", reserved.n_cores);
    json.list_field("core_specializations", |_| {});
    json.number("end_time", Some(reserved.end.secs() as i64));
    json.field("features", &one.features);
    json.list_field("flags", |json| one.flags.iter().for_each(|flag| json.item(flag.word())));
    json.field("groups", &one.groups.show());
    json.field("licenses", &license::show(&one.licenses, ","));
    json.field("max_start_delay", one.max_start_delay.map_or(0, |span| span.secs()));
    json.field("name", &one.name);
    json.field("node_count", one.nodes.len() as u64);
    json.field("node_list", &hostlist::compress(one.nodes.iter().map(|name| name.as_str())));
    json.field("partition", &one.partition);
    json.object_field("purge_completed", |json| {
        json.number("time", one.purge_after.map(|span| span.secs() as i64));
    });
    json.number("start_time", Some(reserved.start.secs() as i64));
    json.number("watts", None);
    json.field("tres", &reserved.tres);
    json.field("users", &one.users.show());
}

/// What `--json` prints for licences.
pub fn licenses(shape: Shape, cluster: &str, list: &[&LicenseView]) -> String {
    dated(shape, "scontrol", cluster, "licenses", |json| {
        for one in list {
            json.object(|json| {
                json.field("LicenseName", &one.name);
                json.field("Total", one.total);
                json.field("Used", one.used);
                json.field("Free", one.total.saturating_sub(one.used));
                json.field("Remote", one.is_remote);
                json.field("Reserved", one.reserved);
            });
        }
    })
}
