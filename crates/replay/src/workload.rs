//! What was asked for, and how long each piece really took.
use std::fmt;

/// Requests in the order of their submission, with times in seconds from the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    pub requests: Vec<Request>,
    /// Of the machine the workload is from, as far as it is told.
    pub n_cpus: Option<u32>,
    pub n_nodes: Option<u32>,
    /// Records that say nothing about a run: cancelled before their start, or without a size.
    pub n_left_out: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// As the workload names it.
    pub name: String,
    pub submitted: u64,
    pub n_cpus: u32,
    /// None: anywhere.
    pub n_nodes: Option<u32>,
    pub memory_mb_per_cpu: Option<u64>,
    /// What it took; never more than the limit.
    pub run_time: u64,
    pub limit: u64,
    pub user: String,
    pub account: String,
    /// As the workload names it; used where the cluster has one of that name.
    pub partition: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub line: usize,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// Reads the Standard Workload Format, or what `sacct --parsable2` prints with a header.
pub fn parse(text: &str) -> Result<Workload, Problem> {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let is_table = first.is_some_and(|line| line.contains('|'));
    let mut workload = if is_table { crate::rows::parse(text)? } else { crate::swf::parse(text)? };
    if workload.requests.is_empty() {
        return Err(Problem { line: 1, text: "there is no job in it that has run".into() });
    }
    workload.requests.sort_by_key(|request| request.submitted);
    let begin = workload.requests[0].submitted;
    for request in &mut workload.requests {
        request.submitted -= begin;
        request.run_time = request.run_time.min(request.limit);
    }
    Ok(workload)
}

impl Workload {
    /// The first `n_requests` of them.
    pub fn shorten(&mut self, n_requests: usize) {
        self.requests.truncate(n_requests);
    }

    /// The same requests in `1 / factor` of the time.
    pub fn compress(&mut self, factor: f64) {
        for request in &mut self.requests {
            request.submitted = (request.submitted as f64 / factor) as u64;
        }
    }

    /// Work asked for in CPU seconds, over what the machine could do until the last submission.
    pub fn load(&self, n_cpus: u64) -> f64 {
        let work: f64 = self.requests.iter().map(|one| one.run_time as f64 * f64::from(one.n_cpus)).sum();
        let span = self.requests.last().map_or(0, |last| last.submitted).max(1);
        work / (span as f64 * n_cpus as f64)
    }
}
