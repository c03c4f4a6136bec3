//! One usable node: what is free of it now, as this plan will have left it, and who has what of it in the future.
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::gres::GresUnits;
use model::node::Tenancy;
use model::plan::Grant;
use model::spec::{Sharing, Size};
use model::{CpuSet, Job, JobId, Node, Timestamp};
use state::Cluster;

use crate::room::PoolId;
use crate::timeline::{Free, Held, Interval, Running, Slot, Stairs, Use, Uses};

#[derive(Clone)]
pub(crate) struct Spot<'a> {
    pub node: &'a Node,
    /// Free at this moment; it may be promised to somebody later.
    pub now: Free,
    pub stairs: Stairs,
    /// What is promised from later marks on.
    pub promised: Vec<Use>,
    /// Who has what, and until when; looked up when somebody asks.
    held: OnceCell<Held>,
    /// Jobs that this plan has started here, as long as nobody has asked.
    started: Vec<Use>,
    /// This plan has changed who has what.
    pub is_changed: bool,
    running: Rc<Running<'a>>,
    pub is_empty: bool,
    /// Jobs that this plan starts here.
    pub n_started: u32,
    /// This plan has started one here that shares CPUs.
    pub is_shared: bool,
    pub whole: Free,
    pub weight: u32,
    /// As with `gres`: more than the node's own record says.
    users: Option<BTreeMap<u32, Tenancy>>,
    /// In use, where the plan has given out more than the node's own record says.
    gres: Option<Vec<GresUnits>>,
    pub pools: Vec<PoolId>,
}

impl<'a> Spot<'a> {
    pub fn new(node: &'a Node, running: &Rc<Running<'a>>) -> Self {
        let room = node.free_room();
        let cpus = if node.exclusive_job.is_some() || node.blocked_by.is_some() { 0 } else { room.cpus };
        Spot {
            node,
            now: Free { cpus, memory_mb: room.memory_mb },
            stairs: Stairs { steps: Vec::new(), for_ever: cpus },
            promised: Vec::new(),
            held: OnceCell::new(),
            started: Vec::new(),
            is_changed: false,
            running: running.clone(),
            is_empty: node.is_for_the_taking(),
            n_started: 0,
            is_shared: false,
            whole: Free { cpus: node.config.cpus, memory_mb: node.config.memory_mb },
            weight: node.config.weight,
            users: None,
            gres: None,
            pools: Vec::new(),
        }
    }

    /// The node as this plan would have left it if these jobs had gone before.
    pub fn without(&self, cluster: &Cluster, gone: &BTreeSet<JobId>) -> Spot<'a> {
        let node = self.node;
        let stays = |id: &JobId| !gone.contains(id);
        let staying = node.jobs.iter().filter(|id| stays(id)).filter_map(|id| cluster.job(*id));
        let started = self.held().uses.iter().filter(|one| !node.jobs.contains(&one.job) && stays(&one.job));
        let (mut cpus, mut gres) = (CpuSet::default(), Vec::new());
        let (mut users, mut free) = (BTreeMap::<u32, Tenancy>::new(), self.whole);
        let mut is_empty = true;
        let mut join = |uid: u32, is_alone: bool| {
            let tenancy = users.entry(uid).or_default();
            tenancy.n_jobs += 1;
            tenancy.n_alone += u32::from(is_alone);
            is_empty = false;
        };
        for (job, share) in staying.filter_map(|job| Some((job, job.allocation.share(node.name.as_str())?))) {
            if !job.lends_cpus {
                share.cpus.iter().for_each(|cpu| cpus.insert(cpu));
            }
            free.memory_mb = free.memory_mb.saturating_sub(share.memory_mb);
            gres.extend(share.gres.iter().cloned());
            join(job.spec.uid, job.spec.size.sharing == Sharing::OneUser);
        }
        let is_closed = [node.exclusive_job, node.blocked_by].iter().flatten().any(stays);
        free.cpus = if is_closed { 0 } else { free.cpus.saturating_sub(node.config.cpus_taken(&cpus)) };
        for one in started {
            free.cpus = free.cpus.saturating_sub(one.cpus);
            free.memory_mb = free.memory_mb.saturating_sub(one.memory_mb);
            gres.extend(one.gres.iter().cloned());
            join(one.uid, one.is_alone);
        }
        let held = OnceCell::from(self.held().without(gone));
        let (users, gres) = (Some(users), Some(gres));
        let mut spot = Spot { now: free, held, is_empty, users, gres, ..self.clone() };
        spot.climb();
        spot
    }

    pub fn held(&self) -> &Held {
        self.held.get_or_init(|| {
            let mut held = self.running.on(self.node);
            self.started.iter().cloned().for_each(|one| held.add(one));
            held
        })
    }

    pub fn uses(&self) -> Uses<'_> {
        Uses { held: self.held(), promised: &self.promised }
    }

    pub fn users(&self) -> &BTreeMap<u32, Tenancy> {
        self.users.as_ref().unwrap_or(&self.node.users)
    }

    pub fn gres_in_use(&self) -> &[GresUnits] {
        self.gres.as_deref().unwrap_or(&self.node.used.gres)
    }

    /// Nothing is promised to anybody before the interval, which begins now, is over.
    pub fn is_as_now(&self, interval: Interval) -> bool {
        interval.from == Slot::NOW && self.promised.iter().all(|one| one.interval.from >= interval.until)
    }

    /// A job that this plan starts.
    fn hold(&mut self, one: Use) {
        self.is_changed = true;
        match self.held.get_mut() {
            Some(held) => held.add(one),
            None => self.started.push(one),
        }
    }

    /// The job will be gone by then.
    pub fn shorten(&mut self, job: JobId, until: Slot, ends_at: Timestamp) {
        self.is_changed = true;
        self.held();
        self.held.get_mut().expect("just looked up").shorten(job, until, ends_at);
    }

    /// Gives the job its part, now.
    pub fn take(&mut self, grant: &Grant, size: &Size, job: &Job, interval: Interval) {
        let uid = job.spec.uid;
        let mut users = self.users().clone();
        let tenancy = users.entry(uid).or_default();
        tenancy.n_jobs += 1;
        tenancy.n_alone += u32::from(size.sharing == Sharing::OneUser);
        self.users = Some(users);
        let gres = self.units(&size.on_node(&grant.gres), grant.n_tasks, interval);
        if !gres.is_empty() {
            let mut in_use = self.gres_in_use().to_vec();
            in_use.extend(gres.iter().cloned());
            self.gres = Some(in_use);
        }
        self.is_shared |= grant.n_cpus > self.now.cpus && size.spared.is_none();
        self.n_started += 1;
        self.now.cpus = self.now.cpus.saturating_sub(grant.n_cpus);
        self.now.memory_mb = self.now.memory_mb.saturating_sub(grant.memory_mb);
        self.is_empty = false;
        self.hold(part(job.id, uid, grant, size, gres, interval));
        self.climb();
    }

    /// Promises the job its part, later.
    pub fn promise(&mut self, grant: &Grant, size: &Size, job: &Job, interval: Interval) {
        let gres = self.units(&size.on_node(&grant.gres), grant.n_tasks, interval);
        self.promised.push(part(job.id, job.spec.uid, grant, size, gres, interval));
        self.climb();
    }

    /// Nobody may use it while the job runs, which does not run here.
    pub fn close(&mut self, job: &Job, interval: Interval) {
        let closing = Use::whole(job, interval, None);
        match interval.from {
            Slot::NOW => {
                self.now.cpus = 0;
                self.hold(closing);
            }
            _ => self.promised.push(closing),
        }
        self.climb();
    }

    fn climb(&mut self) {
        self.stairs = Stairs::of(&self.promised, || self.uses(), self.whole, self.now.cpus);
    }

    fn units(&self, size: &Size, n_tasks: u32, interval: Interval) -> Vec<GresUnits> {
        if size.gres.is_empty() && size.gres_per_task.is_empty() {
            return Vec::new();
        }
        let wanted = size.gres_for(n_tasks);
        let picked = match self.is_as_now(interval) {
            true => self.node.config.pick_gres(self.gres_in_use(), &wanted),
            false => self.node.config.pick_gres(&self.uses().gres_over(interval), &wanted),
        };
        picked.unwrap_or_default()
    }
}

fn part(job: JobId, uid: u32, grant: &Grant, size: &Size, gres: Vec<GresUnits>, interval: Interval) -> Use {
    let (cpus, memory_mb) = (grant.n_cpus, grant.memory_mb);
    let is_alone = size.sharing == Sharing::OneUser;
    Use { job, interval, ends_at: None, cpus, memory_mb, gres, uid, is_alone }
}
