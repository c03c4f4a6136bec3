//! Names of things.
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::TaskSet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

impl fmt::Display for JobId {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl FromStr for JobId {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(JobId)
    }
}

/// One part of a job: the batch script, or one `srun`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StepId {
    Number(u32),
    /// The batch script itself, `123.batch`.
    #[default]
    Batch,
}

impl fmt::Display for StepId {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StepId::Number(number) => number.fmt(out),
            StepId::Batch => out.write_str("batch"),
        }
    }
}

/// What a user names: a job or a whole array (`tasks` is none), or some tasks of an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRef {
    pub job: JobId,
    pub tasks: Option<TaskSet>,
    /// One component of a heterogeneous job: `12+1`. None is all of it.
    pub component: Option<u32>,
}

impl JobRef {
    /// One task of an array.
    pub fn task(array: JobId, task: u32) -> Self {
        JobRef { job: array, tasks: Some([task].into_iter().collect()), component: None }
    }

    pub fn tasks(array: JobId, tasks: TaskSet) -> Self {
        JobRef { job: array, tasks: Some(tasks), component: None }
    }
}

impl From<JobId> for JobRef {
    fn from(job: JobId) -> Self {
        JobRef { job, ..JobRef::default() }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match (&self.tasks, self.component) {
            (None, None) => self.job.fmt(out),
            (None, Some(component)) => write!(out, "{}+{component}", self.job),
            (Some(tasks), _) => write!(out, "{}_{tasks}", self.job),
        }
    }
}

/// A node's name; shared, so that cheap copies can stand in every allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeName(Arc<str>);

impl NodeName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for NodeName {
    fn default() -> Self {
        NodeName(Arc::from(""))
    }
}

impl From<&str> for NodeName {
    fn from(name: &str) -> Self {
        NodeName(Arc::from(name))
    }
}

impl From<String> for NodeName {
    fn from(name: String) -> Self {
        NodeName(Arc::from(name))
    }
}

impl Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for NodeName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The hash of a script or an environment; the content is stored once and shared by all jobs that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct BlobId(pub [u64; 4]);

/// Who asks, as the kernel or a certificate says; never taken from a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// Root, or the user the cluster runs as: may do everything.
    pub is_admin: bool,
}

impl Caller {
    /// The controller itself: its plans, reports and ticks.
    pub const SYSTEM: Caller = Caller { uid: 0, gid: 0, is_admin: true };

    pub fn may_act_for(self, owner_uid: u32) -> bool {
        self.is_admin || self.uid == owner_uid
    }
}
