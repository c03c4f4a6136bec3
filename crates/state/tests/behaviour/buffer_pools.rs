//! Pools that change under their buffers, refusals that say what is wrong, and restarts and lost nodes at every stage.
use model::buffer::PersistentPhase;
use model::job_state::JobState;
use model::plan::StageStart;
use model::pool::{BurstBufferConfig, PoolReport};
use model::staging::{Moved, StageResult};
use model::{BufferPhase, Command, ExitStatus, JobId, JobSpec, Owner, Plan, Reason, Reject, Task, codec};
use state::Cluster;
use state::buffers::capacity;

use super::buffers::{Burst, FULL, GIB, file, lab, lab_with, persistent_answer, with_bb};
use super::lab::*;

fn reconfigure(lab: &mut Lab, change: impl Fn(&mut BurstBufferConfig)) {
    let mut config = (**lab.cluster.config()).clone();
    change(config.burst_buffer.as_mut().expect("configured"));
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
}

/// What is charged goes on being charged, and nothing new is given out before it fits again.
#[test]
fn a_pool_may_become_smaller_than_what_is_in_it() {
    let mut lab = lab();
    let job = lab.running_with("capacity=6;stage_out=file:b:/data/b");
    let small = lab.submit(with_bb("capacity=1"));
    let large = lab.submit(with_bb("capacity=5"));
    reconfigure(&mut lab, |burst| burst.pools[0].total_bytes = Some(4 * GIB));
    assert_eq!((lab.used("flash"), lab.word(job)), (6, "running"));
    assert!(!lab.stage(small) && !lab.stage(large));
    assert_eq!(lab.job(large).reason, Some(Reason::BurstBufferResources));
    lab.exit(job, ExitStatus::default()).unwrap();
    lab.done_all(job, Task::StageOut);
    lab.done_all(job, Task::TearDown);
    assert!(lab.stage(small));
    assert!(!lab.stage(large), "more than there is now");
    reconfigure(&mut lab, |burst| burst.pools[0].total_bytes = Some(8 * GIB));
    assert!(lab.stage(large));
}

/// Buffers in it live on where they are; who asked for space in it waits, and is given none elsewhere.
#[test]
fn a_pool_may_leave_the_configuration_with_buffers_in_it() {
    let mut lab = lab_with(|burst| {
        let other = model::pool::Pool { name: "other".into(), root: "/other".into(), ..burst.pools[0].clone() };
        burst.pools.push(other);
    });
    let pools = lab.cluster.config().burst_buffer.clone().unwrap().pools;
    let job = lab.running_with("capacity=4 pool=other;stage_out=file:b:/data/b");
    let waits = lab.submit(with_bb("capacity=1 pool=other"));
    let maker = lab.submit(file("#BB create_persistent name=x capacity=1 pool=other"));
    let private = lab.submit(with_bb("capacity=1 pool=nvme"));
    reconfigure(&mut lab, |burst| burst.pools.truncate(1));
    for job in [waits, maker] {
        assert!(!lab.stage(job));
        assert_eq!((lab.job(job).reason, lab.word(job)), (Some(Reason::BurstBufferResources), "pending"));
    }
    assert!(!lab.place(private, None, "n1"));
    assert_eq!(lab.used("flash"), 0);
    lab.exit(job, ExitStatus::default()).unwrap();
    let mover = lab.cluster.buffer(job).unwrap().places[0].node.clone();
    lab.ok(ROOT, Command::NodeLost { node: mover.clone() });
    assert_ne!(lab.cluster.buffer(job).unwrap().places[0].node, mover, "another agent brings the data back");
    lab.done_all(job, Task::StageOut);
    let place = &lab.cluster.buffer(job).unwrap().places[0];
    assert_eq!((place.pool.as_str(), place.root.as_str()), ("other", "/other"), "it is removed where it is");
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.word(job), "complete");
    reconfigure(&mut lab, |burst| burst.pools = pools.clone());
    assert!(lab.stage(waits) && lab.stage(maker));
    let free = ["n1", "n2"].into_iter().find(|node| *node != mover.as_str()).unwrap();
    assert!(lab.place(private, None, free));
}

/// A root that no agent will use gives nobody space, until it is as it should be.
#[test]
fn a_pool_that_every_agent_refuses_has_nothing_to_give() {
    let mut lab = lab();
    let seen = |lab: &mut Lab, node: &str, problem: &str| {
        let total_bytes = 100 * GIB;
        let report = PoolReport { pool: "flash".into(), total_bytes, problem: problem.into(), ..Default::default() };
        lab.ok(ROOT, Command::PoolsSeen { node: node.into(), pools: vec![report] });
        capacity::total(&lab.cluster, &lab.cluster.config().burst_buffer.as_ref().unwrap().pools[0]) / GIB
    };
    let job = lab.submit(with_bb("capacity=1"));
    assert_eq!(seen(&mut lab, "n1", "can be written by others"), 10);
    assert_eq!(seen(&mut lab, "n2", "can be written by others"), 10);
    assert_eq!(seen(&mut lab, "n3", "is not a directory"), 0);
    assert!(!lab.stage(job));
    assert_eq!(lab.job(job).reason, Some(Reason::BurstBufferResources));
    assert_eq!(seen(&mut lab, "n2", ""), 10);
    assert!(lab.stage(job));
    assert_eq!(lab.cluster.buffer(job).unwrap().places[0].node.as_str(), "n2", "the others would refuse it");
}

/// Another root is for those who come; what there is stays where it is.
#[test]
fn another_root_moves_nobody() {
    let mut lab = lab();
    let job = lab.staged(FULL);
    let root = lab.cluster.buffer(job).unwrap().places[0].root.clone();
    reconfigure(&mut lab, |burst| burst.pools[0].root = "/elsewhere".into());
    let later = lab.staged(FULL);
    assert!(lab.place(job, None, "n1"));
    assert_eq!(lab.cluster.buffer(job).unwrap().places[0].root, root);
    assert_eq!(lab.cluster.buffer(later).unwrap().places[0].root, "/elsewhere");
}

fn refusal(lab: &mut Lab, spec: JobSpec) -> String {
    let by = model::Caller { uid: spec.uid, ..ALICE };
    let refused = lab.apply(by, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    refused.expect_err("it is refused").details().to_owned()
}

/// What no word says by itself is marked as well.
#[test]
fn every_refusal_marks_a_word() {
    let without_nodes = |text: &str| {
        let mut spec = file(text);
        spec.size.max_nodes = Some(0);
        spec
    };
    let nothing = "a job without nodes only creates and destroys persistent buffers";
    let mut lab = lab();
    let asked = without_nodes("#BB create_persistent name=x capacity=1\n#DW jobdw capacity=1GiB");
    let marked = format!("burst_buffer/native: {nothing}\n  #DW jobdw capacity=1GiB\n      ^^^^^");
    assert_eq!(refusal(&mut lab, asked), marked);
    let marked = format!("burst_buffer/native: {nothing}\n  #DW persistentdw name=x\n      ^^^^^^^^^^^^");
    assert_eq!(refusal(&mut lab, without_nodes("#DW persistentdw name=x")), marked);
    let asked = JobSpec { size: without_nodes("").size, ..with_bb("capacity=1 pool=nvme") };
    assert!(refusal(&mut lab, asked).ends_with("#DW jobdw capacity=1GiB pool=nvme\n      ^^^^^"));

    let line = format!("#DW stage_in type=file source=/{} destination=x", "a".repeat(3000));
    let long = refusal(&mut lab, file(&format!("#DW jobdw capacity=1\n{line}1\n{line}2\n{line}3")));
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines[0].ends_with("longer than 8192 characters") && lines[1].len() < 300 && lines[2].contains("^^^^"));

    let mut lab = lab_with(|burst| {
        burst.enables_persistent = false;
        burst.max_directives = 2;
        burst.pools.remove(0);
    });
    let text = "User 1000 disabled from creating persistent burst buffer\n  #BB create_persistent name=x capacity=1\n";
    let many = refusal(&mut lab, file("#DW jobdw capacity=1\n#DW jobdw capacity=2\n#DW jobdw capacity=3"));
    assert_eq!(many, "burst_buffer/native: more than 2 directives\n  #DW jobdw capacity=3\n  ^^^^^^^^^^^^^^^^^^^^");
    let shared = refusal(&mut lab, file("#DW persistentdw name=x"));
    assert!(
        shared.starts_with("burst_buffer/native: no pool has striped space\n") && shared.ends_with("    ^^^^^^^^^^^^")
    );
    let mut lab = lab_with(|burst| burst.enables_persistent = false);
    let denied = refusal(&mut lab, file("#BB create_persistent name=x capacity=1"));
    assert!(denied.starts_with(text) && denied.ends_with("      ^^^^^^^^^^^^^^^^^"), "{denied}");
    let denied = refusal(&mut lab, file("#BB destroy_persistent name=x"));
    assert!(denied.contains("disabled from destroying") && denied.ends_with("      ^^^^^^^^^^^^^^^^^^"), "{denied}");

    let mut without = Lab::new();
    let none = refusal(&mut without, with_bb("capacity=1"));
    assert_eq!(none, "burst_buffer: this cluster has no burst buffers\n  capacity=1\n  ^^^^^^^^^^");
}

/// A job in each state of its buffer, and what agents still have to do for it then.
fn in_every_state(lab: &mut Lab) -> Vec<(JobId, &'static str, Option<Task>)> {
    let text = "capacity=1;stage_in=file:/data/a:a;stage_out=file:b:/data/b";
    let pending = lab.submit(with_bb(text));
    let staging = lab.submit(with_bb(text));
    assert!(lab.stage(staging));
    let staged = lab.staged(text);
    let running = lab.running_with(text);
    let private = lab.submit(with_bb("capacity=1 pool=nvme"));
    assert!(lab.place(private, None, "n2"));
    let cancelled = lab.running_with(text);
    lab.cancel(cancelled, false).unwrap();
    let out = lab.ended(text);
    let failed_out = lab.ended(text);
    lab.fails(failed_out, Task::StageOut);
    let teardown = lab.ended(text);
    lab.done_all(teardown, Task::StageOut);
    let stuck = lab.ended(text);
    lab.done_all(stuck, Task::StageOut);
    lab.fails(stuck, Task::TearDown);
    let complete = lab.ended(text);
    lab.done_all(complete, Task::StageOut);
    lab.done_all(complete, Task::TearDown);
    vec![
        (pending, "pending", None),
        (staging, "staging-in", Some(Task::StageIn)),
        (staged, "staged-in", None),
        (running, "running", None),
        (private, "pre-run", Some(Task::PreRun)),
        (cancelled, "post-run", None),
        (out, "staging-out", Some(Task::StageOut)),
        (failed_out, "staging-out", None),
        (teardown, "teardown", Some(Task::TearDown)),
        (stuck, "teardown-fail", Some(Task::TearDown)),
        (complete, "complete", None),
    ]
}

/// Agents go on by themselves, so nothing is torn down or begun anew because a controller was.
#[test]
fn a_restart_at_any_stage_leaves_everything_as_it_was() {
    let mut lab = lab();
    let maker = lab.submit(file("#BB create_persistent name=x capacity=1"));
    lab.stage(maker);
    persistent_answer(&mut lab, "x", StageResult::Done(Moved::default()));
    let jobs = in_every_state(&mut lab);
    let (used, on_nodes) = (lab.used("flash"), lab.used("nvme"));
    let restarted: Cluster = codec::decode(&codec::encode(&lab.cluster)).unwrap();
    lab.cluster = restarted;
    let config = (**lab.cluster.config()).clone();
    lab.ok(ROOT, Command::Begin { config: Box::new(config) });
    assert_eq!((lab.used("flash"), lab.used("nvme")), (used, on_nodes));
    assert_eq!((used, on_nodes), (9, 1), "eight buffers of jobs and a named one");
    assert_eq!(lab.cluster.persistent("x").unwrap().phase, PersistentPhase::Ready);
    for (job, word, task) in &jobs {
        assert_eq!((lab.word(*job), lab.buffer_duty(*job)), (*word, *task));
    }
    let [(pending, ..), (staging, ..), _, _, (private, ..), _, (out, ..), _, (teardown, ..), (stuck, ..), _] = jobs[..]
    else {
        panic!("{jobs:?}")
    };
    lab.done_all(staging, Task::StageIn);
    lab.done_all(private, Task::PreRun);
    lab.done_all(out, Task::StageOut);
    lab.done_all(teardown, Task::TearDown);
    lab.done_all(stuck, Task::TearDown);
    let words = [staging, private, out, teardown, stuck].map(|job| lab.word(job));
    assert_eq!(words, ["staged-in", "running", "teardown", "complete", "complete"]);
    assert!(lab.stage(pending));
}

/// Whichever agent is lost, at whichever stage: work for shared space goes on elsewhere, and no data counts as there that is not.
#[test]
fn a_node_may_be_lost_at_any_stage() {
    for lost in ["n1", "n2", "n3"] {
        let mut lab = lab();
        let jobs = in_every_state(&mut lab);
        lab.ok(ROOT, Command::NodeLost { node: lost.into() });
        let is_lost = |lab: &Lab, job: JobId| {
            let shared = lab.cluster.buffer(job).into_iter().flat_map(|buffer| &buffer.places);
            shared.into_iter().any(|place| place.pool == "flash" && place.node.as_str() == lost)
        };
        for (job, word, task) in jobs {
            assert!(!is_lost(&lab, job), "{word}: the work is another's");
            let job_is_hit = lab.job(job).allocation.names().any(|node| node.as_str() == lost);
            if !job_is_hit && lab.job(job).state() != JobState::Pending {
                assert_eq!(lab.buffer_duty(job), task, "{word} without {lost}");
            }
            match word {
                "staging-in" | "staging-out" | "teardown" | "teardown-fail" => {
                    if let Some(task) = task {
                        lab.done_all(job, task);
                    }
                }
                // Nothing is on its way any more, and the next start brings it all.
                "pre-run" if lost == "n2" => assert_eq!(lab.word(job), "staged-in"),
                _ => (),
            }
        }
    }
}

/// `hold_nodes`: for sites where movers would disturb the next job.
#[test]
fn nodes_may_be_kept_until_the_data_is_back() {
    for fails in [false, true] {
        let mut lab = lab_with(|burst| burst.holds_nodes = true);
        let job = lab.ended(FULL);
        assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Completing, "staging-out"));
        assert!(!lab.node("n1").jobs.is_empty());
        if fails {
            lab.fails(job, Task::StageOut);
            assert_eq!(lab.job(job).state(), JobState::StageOut);
        } else {
            lab.done_all(job, Task::StageOut);
            assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Completed, "teardown"));
        }
        assert!(lab.node("n1").jobs.is_empty());
    }
}

/// An operator who takes buffers away from the configuration does not leave their space charged for ever.
#[test]
fn without_a_configuration_buffers_still_end() {
    let mut lab = lab();
    let job = lab.running_with(FULL);
    let config = model::Config { burst_buffer: None, ..(**lab.cluster.config()).clone() };
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let refused = lab.apply(ALICE, Command::Submit { spec: Box::new(with_bb(FULL)), blobs: Vec::new() });
    assert!(matches!(refused, Err(Reject::BadBuffer(_))));
    lab.exit(job, ExitStatus::default()).unwrap();
    lab.done_all(job, Task::StageOut);
    assert_eq!(lab.phase(job), Some(BufferPhase::TearingDown));
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.cluster.buffers().count(), lab.job(job).state()), (0, JobState::Completed));
}

#[test]
fn a_hundred_tasks_have_a_buffer_each() {
    let mut lab = lab_with(|burst| burst.pools[0].total_bytes = Some(100 * GIB));
    let mut spec = with_bb("capacity=1");
    spec.array = Some(model::spec::ArraySpec { tasks: (0..100).collect(), limit: None });
    let array = lab.submit(spec);
    let stage_ins = (0..100).map(|task| StageStart { job: array, task: Some(task), ..Default::default() }).collect();
    lab.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
    assert_eq!((lab.cluster.buffers().count(), lab.used("flash")), (100, 100));
    lab.ok(ALICE, Command::Cancel { jobs: vec![array.into()], hurry: false });
    let left: Vec<JobId> = lab.cluster.buffers().map(|buffer| buffer.job).collect();
    assert_eq!(left.len(), 100);
    for job in left {
        assert_eq!(lab.cluster.duty(&Owner::Buffer(job)).map(|duty| duty.task), Some(Task::TearDown));
        lab.done_all(job, Task::TearDown);
    }
    assert_eq!(lab.used("flash"), 0);
}
