//! Licences: what the cluster has, what its jobs hold, and what reservations keep for theirs.
use std::collections::BTreeMap;

use model::license::{LicenseCount, LicenseRequest};
use model::request::LicenseView;
use model::{Job, JobId, Phase, Reject, Timestamp};

use crate::Cluster;

/// So many of a reservation's times are looked at.
const N_WINDOWS: usize = 64;

impl Cluster {
    /// Each licence with its use, in the order of their names.
    pub fn licenses(&self) -> Vec<LicenseView> {
        let view = |(name, total): (String, u32)| {
            let used = self.license_use.get(&name).copied().unwrap_or(0);
            let reserved = self.licenses_taken(&name, "", self.now).saturating_sub(used);
            let is_remote = !self.config.licenses.iter().any(|license| license.name == name);
            LicenseView { name, total, used, reserved, is_remote }
        };
        self.license_totals().into_iter().map(view).collect()
    }

    /// How many there are of each: those of the file, and this cluster's part of what is kept with the accounts.
    /// The file goes before.
    pub fn license_totals(&self) -> BTreeMap<String, u32> {
        let of_file = self.config.licenses.iter().map(|license| (license.name.clone(), license.count));
        self.accounts.licenses_here().chain(of_file).collect()
    }

    /// What is free all the time for a job that runs until then, in that reservation or in none (empty).
    pub fn free_licenses(&self, reservation: &str, until: Option<Timestamp>) -> BTreeMap<String, u32> {
        let keepers = self.reservations.values().filter(|one| !one.licenses.is_empty() && one.name != reservation);
        let windows = keepers.flat_map(|one| one.windows(self.now).take(N_WINDOWS));
        let begins = windows.map(|(start, _)| start);
        let later = begins.filter(|start| *start > self.now && until.is_none_or(|until| *start < until));
        let moments: Vec<Timestamp> = std::iter::once(self.now).chain(later).collect();
        let free = |(name, total): (String, u32)| {
            let taken = moments.iter().map(|at| self.licenses_taken(&name, reservation, *at)).max();
            (name, total.saturating_sub(taken.unwrap_or(0)))
        };
        self.license_totals().into_iter().map(free).collect()
    }

    /// What is not free at a moment for jobs of that reservation: what jobs hold then, and what other reservations keep
    /// besides what their own jobs hold.
    fn licenses_taken(&self, name: &str, own: &str, at: Timestamp) -> u32 {
        let mut taken = 0;
        let mut inside: BTreeMap<&str, u32> = BTreeMap::new();
        for job in self.license_holders() {
            if at > self.now && self.expected_end(job).is_some_and(|end| end <= at) {
                continue;
            }
            let held: u32 = job.licenses.iter().filter(|one| one.name == name).map(|one| one.count).sum();
            taken += held;
            *inside.entry(job.reservation.as_str()).or_default() += held;
        }
        for reservation in self.reservations.values().filter(|one| one.name != own && !one.licenses.is_empty()) {
            let is_its_time = reservation.window_after(at).is_some_and(|(start, _)| start <= at);
            if is_its_time {
                let kept: u32 = reservation.licenses.iter().filter(|one| one.name == name).map(|one| one.count).sum();
                taken += kept.saturating_sub(inside.get(reservation.name.as_str()).copied().unwrap_or(0));
            }
        }
        taken
    }

    /// When a job that holds nodes will have given them back at the latest, as far as is known.
    pub fn expected_end(&self, job: &Job) -> Option<Timestamp> {
        match job.phase {
            // It is being cleared away, which takes no time that could be known.
            Phase::Pending | Phase::Ending | Phase::Finishing | Phase::Done => Some(self.now),
            Phase::Starting | Phase::Running | Phase::Suspended => {
                let limit = job.spec.time_limit.and_then(|limit| limit.span());
                let by_limit = limit.map(|limit| self.now + (limit - job.run_time(self.now)));
                by_limit.into_iter().chain(job.must_end_by).chain(job.preempt_ends).min()
            }
        }
    }
}

/// The cluster could give these some day.
pub(crate) fn exist(cluster: &Cluster, wanted: &LicenseRequest) -> Result<(), Reject> {
    match wanted.pick(&cluster.license_totals()) {
        Some(_) => Ok(()),
        None => Err(Reject::BadLicenses),
    }
}

/// Gives the job its licences; the ledger's part, as `give_back` is.
pub(crate) fn take(cluster: &mut Cluster, id: JobId, licenses: Vec<LicenseCount>) {
    for license in &licenses {
        *cluster.license_use.entry(license.name.clone()).or_default() += license.count;
    }
    if !licenses.is_empty() {
        cluster.license_holders.insert(id);
        cluster.job_mut(id).licenses = licenses;
    }
}

pub(crate) fn give_back(cluster: &mut Cluster, id: JobId) {
    if cluster.license_holders.remove(&id).is_none() {
        return;
    }
    for license in &cluster.jobs[&id].licenses.clone() {
        let used = cluster.license_use.get(&license.name).copied().unwrap_or(0);
        match used.saturating_sub(license.count) {
            0 => cluster.license_use.remove(&license.name),
            left => cluster.license_use.insert(license.name.clone(), left),
        };
    }
}

/// What the jobs together hold; `check` compares it with the cluster's own record.
pub(crate) fn recount(cluster: &Cluster) -> BTreeMap<String, u32> {
    let mut used = BTreeMap::new();
    for license in cluster.jobs().filter(|job| job.holds_nodes()).flat_map(|job| &job.licenses) {
        *used.entry(license.name.clone()).or_default() += license.count;
    }
    used
}
