//! What is certainly left of the limits of all associations, with what this pass has started taken off.
use model::accounts::AssociationId;
use model::{Job, Partition};
use state::Cluster;
use state::limits::{self, Each, Headroom, Want};

pub(super) struct Headrooms<'a> {
    cluster: &'a Cluster,
    /// Where each association's is in the list, counted from one; 0: it has not been looked up.
    places: Vec<u32>,
    list: Vec<Headroom>,
    /// By the same places: how many jobs it has, and where in `eachs` it is what is said of each.
    n_jobs: Vec<u64>,
    each_of: Vec<u32>,
    /// All that is said of each job, in some words or others; the first says nothing.
    eachs: Vec<Each>,
    /// Every quality of service leaves it to associations.
    qos_is_plain: bool,
    /// Qualities of service, with those of partitions, and whether they leave it to associations.
    qos: Vec<(&'a str, &'a str, bool)>,
    /// What was left before what is only supposed.
    before: Option<Vec<(usize, Headroom)>>,
}

impl<'a> Headrooms<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Headrooms {
            cluster,
            places: Vec::new(),
            list: Vec::new(),
            n_jobs: Vec::new(),
            each_of: Vec::new(),
            eachs: vec![Each::default()],
            qos_is_plain: cluster.accounts().qos.values().all(limits::leaves_it_to_associations),
            qos: Vec::new(),
            before: None,
        }
    }

    /// Certainly no limit keeps the job from having that; otherwise nothing is said.
    pub fn let_pass(&mut self, job: &'a Job, partition: &'a Partition, want: &Want) -> bool {
        if !self.suffice_for(job, partition) {
            return false;
        }
        if job.association == 0 {
            return true;
        }
        let Some(own) = self.find(job.association) else { return false };
        if !self.list[own].lets_own() && self.list[own].may_be_more() {
            self.look_closer(job.association, own);
        }
        let each = &self.eachs[self.each_of[own] as usize];
        self.list[own].lets_own() && (each.lets_any() || each.lets(want)) && self.lineage(own).all(|one| one.lets(want))
    }

    /// The priority below which no place is kept for the job; None: others have a word in it.
    pub fn min_priority(&mut self, job: &'a Job, partition: &'a Partition) -> Option<u32> {
        if !self.suffice_for(job, partition) {
            return None;
        }
        match job.association {
            0 => Some(0),
            association => self.find(association).map(|own| self.eachs[self.each_of[own] as usize].min_priority()),
        }
    }

    /// The job starts and has that.
    pub fn take(&mut self, job: &'a Job, partition: &'a Partition, want: Want) {
        let want = if self.suffice_for(job, partition) { want } else { want.weighed_otherwise() };
        let mut next = self.find(job.association);
        while let Some(at) = next {
            if let Some(before) = &mut self.before {
                before.push((at, self.list[at]));
            }
            self.list[at].take(&want);
            next = self.known(self.list[at].parent());
        }
    }

    /// What is taken from here on is only supposed to be.
    pub fn suppose(&mut self) {
        self.before = Some(Vec::new());
    }

    pub fn forget_what_was_supposed(&mut self) {
        for (at, before) in self.before.take().into_iter().flatten().rev() {
            self.list[at] = before;
        }
    }

    fn suffice_for(&mut self, job: &'a Job, partition: &'a Partition) -> bool {
        if self.qos_is_plain {
            return true;
        }
        let (own, of_partition) = (job.spec.qos.as_str(), partition.qos.as_str());
        let is_same = |known: &&(&str, &str, bool)| known.0 == own && known.1 == of_partition;
        if let Some((.., suffices)) = self.qos.iter().find(is_same) {
            return *suffices;
        }
        let named = [own, of_partition].into_iter().filter_map(|name| self.cluster.accounts().qos.get(name));
        let suffices = named.into_iter().all(limits::leaves_it_to_associations);
        self.qos.push((own, of_partition, suffices));
        suffices
    }

    fn lineage(&self, own: usize) -> impl Iterator<Item = &Headroom> {
        std::iter::successors(Some(&self.list[own]), |one| Some(&self.list[self.known(one.parent())?]))
    }

    fn known(&self, id: AssociationId) -> Option<usize> {
        self.places.get(id as usize).and_then(|place| (*place as usize).checked_sub(1))
    }

    fn find(&mut self, id: AssociationId) -> Option<usize> {
        if let Some(known) = self.known(id) {
            return Some(known);
        }
        let terse = self.cluster.accounts().terse(id)?;
        let above = if terse.parent == 0 { None } else { self.find(terse.parent) };
        let each_above = above.map_or(0, |at| self.each_of[at]);
        let (headroom, each, n_jobs) = match above.filter(|_| terse.is_users && !terse.says_more) {
            Some(above) => {
                let n_jobs = self.n_jobs[above];
                (Headroom::roughly(terse, &self.eachs[each_above as usize], n_jobs), each_above, n_jobs)
            }
            None => {
                let (headroom, each, n_jobs) = Headroom::of(self.cluster, id, &self.eachs[each_above as usize])?;
                (headroom, self.place_of(each, each_above), n_jobs)
            }
        };
        if self.places.is_empty() {
            self.places.resize(self.cluster.accounts().last_association as usize + 1, 0);
        }
        self.list.push(headroom);
        self.each_of.push(each);
        self.n_jobs.push(n_jobs);
        *self.places.get_mut(id as usize)? = self.list.len() as u32;
        Some(self.list.len() - 1)
    }

    /// Most say what the one above said, or the last one.
    fn place_of(&mut self, each: Each, above: u32) -> u32 {
        let last = self.eachs.len() as u32 - 1;
        let known = [above, last].into_iter().find(|at| self.eachs[*at as usize] == each);
        known.unwrap_or_else(|| {
            self.eachs.push(each);
            last + 1
        })
    }

    fn look_closer(&mut self, id: AssociationId, own: usize) {
        let above = self.known(self.list[own].parent()).map_or(0, |at| self.each_of[at]);
        if let Some((headroom, ..)) = Headroom::of(self.cluster, id, &self.eachs[above as usize]) {
            self.list[own] = headroom;
        }
    }
}
