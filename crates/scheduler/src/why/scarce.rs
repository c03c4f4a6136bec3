//! What the whole cluster has so much of, and who has it: licences, and the space of burst buffers.
use model::license::LicenseCount;
use model::{Job, size};
use state::Cluster;
use state::buffers::capacity::{self, Usage};

use super::N_SHOWN;

/// "wants a:2: 1 of 3 is free, 2 are held by job 7"
pub(super) fn licenses(cluster: &Cluster, job: &Job) -> String {
    let views = cluster.licenses();
    let line = |wanted: &LicenseCount| {
        let Some(view) = views.iter().find(|view| view.name == wanted.name) else {
            return format!("wants {wanted}, which there is none of");
        };
        let held = |holder: &Job| holder.licenses.iter().find(|one| one.name == wanted.name).map(|one| one.count);
        let holders =
            cluster.license_holders().filter_map(|holder| Some(format!("{} by job {}", held(holder)?, holder.id)));
        let holders: Vec<String> = holders.take(N_SHOWN).collect();
        let reserved = if view.reserved > 0 { format!(", {} reserved", view.reserved) } else { String::new() };
        let free = view.total.saturating_sub(view.used + view.reserved);
        let held = if holders.is_empty() { String::new() } else { format!(", held: {}", holders.join(", ")) };
        format!("wants {wanted}: {free} of {} free{reserved}{held}", view.total)
    };
    let request = &job.spec.licenses;
    request.list.iter().map(line).collect::<Vec<_>>().join(if request.any_is_enough { ", or " } else { "; " })
}

/// "wants 3GiB of pool flash: 1GiB of 4GiB free"
pub(super) fn space(cluster: &Cluster, job: &Job) -> String {
    let usage = Usage::of(cluster);
    let line = |(pool, bytes): (&model::pool::Pool, u64)| {
        let (free, total) = (capacity::free(cluster, &usage, pool), capacity::total(cluster, pool));
        let [wanted, free, of] = [bytes, free, total].map(size::show_bytes);
        let never = if bytes > total { ", so it never fits" } else { "" };
        format!("wants {wanted} of pool {}: {free} of {of} free{never}", pool.name)
    };
    capacity::wanted(cluster, &job.spec).into_iter().map(line).collect::<Vec<_>>().join("; ")
}
