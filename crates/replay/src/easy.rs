//! The textbook's rule, as a yardstick: first come, first served; the first that waits has a reservation, and whoever does not
//! delay it may pass (EASY). Processors are all alike and anywhere.
use std::collections::BTreeMap;

use crate::outcome::{Outcome, Run};
use crate::workload::Workload;

struct Running {
    request: usize,
    started: u64,
}

/// Runs the workload on `n_cpus` processors.
pub fn run(n_cpus: u64, workload: &Workload) -> Outcome {
    let requests = &workload.requests;
    let mut outcome = Outcome { n_cpus, ..Default::default() };
    let (mut n_free, mut next_request, mut now) = (n_cpus, 0, 0);
    let mut waiting: Vec<usize> = Vec::new();
    let mut running: Vec<Running> = Vec::new();
    let end = |one: &Running| one.started + requests[one.request].run_time;
    loop {
        let arrival = requests.get(next_request).map(|request| request.submitted);
        let Some(at) = running.iter().map(end).chain(arrival).min() else { break };
        now = at.max(now);
        let (over, rest): (Vec<_>, Vec<_>) = running.into_iter().partition(|one| end(one) <= now);
        running = rest;
        for one in over {
            n_free += u64::from(requests[one.request].n_cpus);
            outcome.runs.push(Run { request: one.request, started: one.started, ended: end(&one) });
        }
        while requests.get(next_request).is_some_and(|request| request.submitted <= now) {
            // What never fits would stop the queue for ever.
            if u64::from(requests[next_request].n_cpus) <= n_cpus {
                waiting.push(next_request);
            } else {
                outcome.n_never_started += 1;
            }
            next_request += 1;
        }
        let mut promise: Option<(u64, u64)> = None;
        waiting.retain(|&index| {
            let request = &requests[index];
            let n_needed = u64::from(request.n_cpus);
            let may_start = match &mut promise {
                None => n_needed <= n_free,
                // It ends before the first needs its processors, or takes none of them.
                Some((begin, n_spare)) => {
                    let ends_before = now + request.limit <= *begin;
                    let fits = n_needed <= n_free && (ends_before || n_needed <= *n_spare);
                    if fits && !ends_before {
                        *n_spare -= n_needed;
                    }
                    fits
                }
            };
            if may_start {
                n_free -= n_needed;
                running.push(Running { request: index, started: now });
            } else if promise.is_none() {
                promise = Some(reserve(workload, &running, n_free, n_needed));
            }
            !may_start
        });
    }
    outcome.runs.sort_by_key(|run| run.request);
    outcome
}

/// When so many processors will be free at the latest, and how many of them are then left over.
fn reserve(workload: &Workload, running: &[Running], n_free: u64, n_needed: u64) -> (u64, u64) {
    let mut releases: BTreeMap<u64, u64> = BTreeMap::new();
    for one in running {
        let request = &workload.requests[one.request];
        *releases.entry(one.started + request.limit).or_default() += u64::from(request.n_cpus);
    }
    let mut n_then = n_free;
    for (at, n_released) in releases {
        n_then += n_released;
        if n_then >= n_needed {
            return (at, n_then - n_needed);
        }
    }
    unreachable!("what never fits does not wait")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Request;

    fn request(submitted: u64, n_cpus: u32, run_time: u64) -> Request {
        Request { submitted, n_cpus, run_time, limit: run_time, ..Default::default() }
    }

    #[test]
    fn only_those_pass_that_do_not_delay_the_first() {
        let requests = vec![
            request(0, 3, 100),
            request(1, 4, 50),
            // Ends before the wide one can start.
            request(2, 1, 98),
            // Would not.
            request(3, 1, 500),
        ];
        let outcome = run(4, &Workload { requests, ..Default::default() });
        let starts: Vec<u64> = outcome.runs.iter().map(|run| run.started).collect();
        assert_eq!(starts, [0, 100, 2, 150]);
    }
}
