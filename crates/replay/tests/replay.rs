//! Workloads run through the real scheduler come out as they must.
use replay::{Machine, Request, Workload, easy, made, parse, picture, run};

fn request(name: &str, submitted: u64, n_cpus: u32, run_time: u64, limit: u64) -> Request {
    let user = "ann".to_string();
    Request { name: name.into(), submitted, n_cpus, run_time, limit, user, ..Default::default() }
}

fn machine(n_nodes: u32, cpus_per_node: u32) -> model::Config {
    Machine { n_nodes, cpus_per_node }.config()
}

#[test]
fn jobs_wait_run_and_pass_each_other() {
    let requests = vec![
        request("1", 0, 6, 600, 600),
        request("wide", 10, 8, 300, 300),
        // Short enough to end before the wide one can begin.
        request("short", 20, 2, 60, 120),
        request("long", 30, 2, 3_000, 3_000),
    ];
    let workload = Workload { requests, ..Default::default() };
    let outcome = run(&machine(2, 4), &workload, &mut |_| ());
    let spans: Vec<(u64, u64)> = outcome.runs.iter().map(|run| (run.started, run.ended)).collect();
    assert_eq!(spans, [(0, 600), (600, 900), (20, 80), (900, 3_900)]);
    let summary = outcome.summary(&workload);
    assert_eq!((summary.n_runs, summary.max_wait, summary.makespan), (4, 870, 3_900));
    assert_eq!(outcome.users(&workload).len(), 1);
}

#[test]
fn what_can_never_run_is_told() {
    let requests = vec![request("1", 0, 1, 5, 60), request("huge", 0, 100, 5, 60)];
    let outcome = run(&machine(2, 4), &Workload { requests, ..Default::default() }, &mut |_| ());
    assert_eq!((outcome.runs.len(), outcome.refused.len()), (1, 1));
    assert_eq!(outcome.refused[0].name, "huge");
}

/// Every request is answered, nothing is used twice, and nobody starts before he came.
#[test]
fn a_made_workload_runs_to_its_end() {
    let recipe = made::Recipe { seed: 7, n_requests: 400, n_cpus: 64, load: 0.9 };
    let workload = made::workload(&recipe);
    assert_eq!(parse(&made::swf(&workload)).unwrap().requests.len(), 400);
    let mut n_heard = 0;
    let outcome = run(&machine(16, 4), &workload, &mut |n_over| n_heard = n_over);
    assert_eq!((outcome.runs.len(), outcome.n_never_started, n_heard), (400, 0, 400));
    for run in &outcome.runs {
        let request = &workload.requests[run.request];
        assert_eq!(run.ended - run.started, request.run_time, "{request:?}");
        assert!(run.started >= request.submitted);
        let n_used: u32 = outcome
            .runs
            .iter()
            .filter(|other| other.started <= run.started && run.started < other.ended)
            .map(|other| workload.requests[other.request].n_cpus)
            .sum();
        assert!(n_used <= 64, "{n_used} CPUs of 64 are used at {}", run.started);
    }
    let yardstick = easy::run(64, &workload);
    assert_eq!(yardstick.runs.len(), 400);
    let shown =
        [picture::Shown { name: "spur", outcome: &outcome }, picture::Shown { name: "EASY", outcome: &yardstick }];
    let svg = picture::draw("a test", &workload, &shown);
    assert_eq!(svg.matches("<polyline").count(), 6);
    assert!(svg.trim_end().ends_with("</svg>"));
}
