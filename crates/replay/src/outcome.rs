//! What became of a workload, and what that means for those who waited.
use std::collections::BTreeMap;

use crate::run::Refusal;
use crate::workload::Workload;

/// Shorter runs do not make a wait look worse than this (seconds), as is the custom for bounded slowdowns.
const SHORTEST_RUN: u64 = 10;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub n_cpus: u64,
    /// In the order of the requests.
    pub runs: Vec<Run>,
    pub refused: Vec<Refusal>,
    /// Waited until the end of everything.
    pub n_never_started: usize,
    pub n_plans: u64,
}

/// One request's last run, in seconds from the first submission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub request: usize,
    pub started: u64,
    pub ended: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub n_runs: usize,
    pub mean_wait: f64,
    pub median_wait: u64,
    /// Of a hundred, 95 waited no longer.
    pub p95_wait: u64,
    pub max_wait: u64,
    pub bounded_slowdown: f64,
    /// Of the processors' time from the first submission to the last end.
    pub utilisation: f64,
    pub makespan: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserSummary {
    pub user: String,
    pub n_runs: usize,
    pub cpu_seconds: f64,
    pub mean_wait: f64,
    pub bounded_slowdown: f64,
}

impl Outcome {
    pub fn wait(&self, workload: &Workload, run: &Run) -> u64 {
        run.started.saturating_sub(workload.requests[run.request].submitted)
    }

    pub fn summary(&self, workload: &Workload) -> Summary {
        let n_runs = self.runs.len();
        if n_runs == 0 {
            return Summary::default();
        }
        let mut waits: Vec<u64> = self.runs.iter().map(|run| self.wait(workload, run)).collect();
        waits.sort_unstable();
        let makespan = self.runs.iter().map(|run| run.ended).max().unwrap_or(0).max(1);
        let work: f64 = self.runs.iter().map(|run| cpu_seconds(workload, run)).sum();
        Summary {
            n_runs,
            mean_wait: mean(waits.iter().map(|wait| *wait as f64)),
            median_wait: waits[n_runs / 2],
            p95_wait: waits[(n_runs * 95 / 100).min(n_runs - 1)],
            max_wait: waits[n_runs - 1],
            bounded_slowdown: mean(self.runs.iter().map(|run| self.slowdown(workload, run))),
            utilisation: work / (makespan as f64 * self.n_cpus.max(1) as f64),
            makespan,
        }
    }

    /// Those who used most come first.
    pub fn users(&self, workload: &Workload) -> Vec<UserSummary> {
        let mut of_user: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
        for run in &self.runs {
            of_user.entry(&workload.requests[run.request].user).or_default().push(run);
        }
        let mut users: Vec<UserSummary> = of_user
            .into_iter()
            .map(|(user, runs)| UserSummary {
                user: user.into(),
                n_runs: runs.len(),
                cpu_seconds: runs.iter().map(|run| cpu_seconds(workload, run)).sum(),
                mean_wait: mean(runs.iter().map(|run| self.wait(workload, run) as f64)),
                bounded_slowdown: mean(runs.iter().map(|run| self.slowdown(workload, run))),
            })
            .collect();
        users.sort_by(|one, other| other.cpu_seconds.total_cmp(&one.cpu_seconds));
        users
    }

    fn slowdown(&self, workload: &Workload, run: &Run) -> f64 {
        let (wait, length) = (self.wait(workload, run), run.ended - run.started);
        ((wait + length) as f64 / length.max(SHORTEST_RUN) as f64).max(1.0)
    }
}

fn cpu_seconds(workload: &Workload, run: &Run) -> f64 {
    f64::from(workload.requests[run.request].n_cpus) * (run.ended - run.started) as f64
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n_values = values.len().max(1);
    values.sum::<f64>() / n_values as f64
}
