//! Nodes that some jobs may not use at some times: "node n is not available to job j in [a, b)".
use std::collections::BTreeSet;

use model::Job;

use crate::request::Request;
use crate::room::SpotId;
use crate::timeline::Interval;

/// Keeps jobs off nodes for a time.
#[allow(dead_code, reason = "nothing closes nodes yet")]
pub(crate) struct Closure<'a> {
    pub spots: BTreeSet<SpotId>,
    pub interval: Interval,
    /// Jobs that may use the nodes all the same.
    pub admits: Box<dyn Fn(&Job) -> bool + 'a>,
}

#[derive(Default)]
pub(crate) struct Closures<'a> {
    all: Vec<Closure<'a>>,
}

impl<'a> Closures<'a> {
    /// Those that hold for the job, by number; jobs with the same list are treated alike.
    pub fn of(&self, job: &Job) -> Vec<u32> {
        (0..).zip(&self.all).filter(|(_, closure)| !(closure.admits)(job)).map(|(number, _)| number).collect()
    }

    pub fn bars(&self, spot: SpotId, request: &Request, interval: Interval) -> bool {
        self.intervals(spot, request).any(|closed| closed.overlaps(interval))
    }

    pub fn bars_ever(&self, spot: SpotId, request: &Request) -> bool {
        self.intervals(spot, request).next().is_some()
    }

    /// When the node is closed to the request's job.
    pub fn intervals(&self, spot: SpotId, request: &Request) -> impl Iterator<Item = Interval> {
        let closed = request.closed.iter().map(|number| &self.all[*number as usize]);
        closed.filter(move |closure| closure.spots.contains(&spot)).map(|closure| closure.interval)
    }
}
