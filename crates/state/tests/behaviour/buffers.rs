//! The life of burst buffers: every row of the cancel, failure, requeue and restart tables.
use model::buffer::PersistentPhase;
use model::command::PlaceResult;
use model::job_state::JobState;
use model::plan::StageStart;
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::staging::{Access, Moved, StageFailure, StageResult};
use model::{
    BufferPhase, Command, ExitStatus, HeldBy, JobId, JobSpec, NodeName, Owner, Phase, Plan, Reason, Reject, Reply,
    Task, codec,
};
use state::Cluster;
use state::buffers::capacity::{self, Usage};

use super::lab::*;

pub const GIB: u64 = 1 << 30;

fn burst_config() -> BurstBufferConfig {
    let pool = |name: &str, kind, total: u64| Pool {
        name: name.into(),
        kind,
        root: format!("/{name}/%n"),
        granularity_bytes: GIB,
        total_bytes: Some(total * GIB),
        ..Default::default()
    };
    let pools = vec![pool("flash", PoolKind::Shared, 10), pool("nvme", PoolKind::Node, 4)];
    BurstBufferConfig { pools, enables_persistent: true, ..Default::default() }
}

pub fn lab_with(change: impl Fn(&mut BurstBufferConfig)) -> Lab {
    let mut lab = Lab::new();
    let mut burst = burst_config();
    change(&mut burst);
    let config = model::Config { burst_buffer: Some(burst), ..config() };
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

pub fn lab() -> Lab {
    lab_with(|_| ())
}

pub fn with_bb(text: &str) -> JobSpec {
    JobSpec { burst_buffer: text.into(), ..batch() }
}

pub const FULL: &str = "capacity=4;stage_in=file:/data/a:a;stage_out=file:b:/data/b";

pub trait Burst {
    fn stage(&mut self, job: JobId) -> bool;
    fn answer(&mut self, job: JobId, task: Task, result: impl Fn(&NodeName) -> StageResult);
    fn phase(&self, job: JobId) -> Option<BufferPhase>;
    fn used(&self, pool: &str) -> u64;
    fn staged(&mut self, text: &str) -> JobId;
    fn running_with(&mut self, text: &str) -> JobId;
    fn ended(&mut self, text: &str) -> JobId;
    fn buffer_duty(&self, job: JobId) -> Option<Task>;
    fn done_all(&mut self, job: JobId, task: Task);
    fn fails(&mut self, job: JobId, task: Task);
    fn cancel(&mut self, job: JobId, hurry: bool) -> Result<(), Reject>;
    fn word(&self, job: JobId) -> &'static str;
}

impl Burst for Lab {
    fn stage(&mut self, job: JobId) -> bool {
        let task = self.job(job).waiting_tasks.as_ref().and_then(|tasks| tasks.first());
        let stage_ins = vec![StageStart { job, task, ..Default::default() }];
        let n_buffers = self.cluster.buffers().count();
        self.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
        self.cluster.buffers().count() > n_buffers
    }

    fn answer(&mut self, job: JobId, task: Task, result: impl Fn(&NodeName) -> StageResult) {
        let duty = self.cluster.duty(&Owner::Buffer(job)).expect("the buffer has a duty").clone();
        assert_eq!(duty.task, task);
        let buffer = self.cluster.buffer(job).expect("it has a duty");
        let open = buffer.places.iter().filter(|place| !place.is_done);
        let results =
            open.map(|it| PlaceResult { access: it.access, node: it.node.clone(), result: result(&it.node) }).collect();
        self.ok(ROOT, Command::Staged { duty, results });
    }

    fn phase(&self, job: JobId) -> Option<BufferPhase> {
        self.cluster.buffer(job).map(|buffer| buffer.phase)
    }

    fn used(&self, pool: &str) -> u64 {
        let config = self.cluster.config().burst_buffer.clone().expect("configured");
        Usage::of(&self.cluster).of_pool(config.pool(pool).expect("a pool")) / GIB
    }

    fn staged(&mut self, text: &str) -> JobId {
        let job = self.submit(with_bb(text));
        assert!(self.stage(job));
        self.done_all(job, Task::StageIn);
        job
    }

    fn running_with(&mut self, text: &str) -> JobId {
        let job = self.staged(text);
        assert!(self.place(job, None, "n1"));
        self.done(job, Task::Launch);
        job
    }

    fn ended(&mut self, text: &str) -> JobId {
        let job = self.running_with(text);
        self.exit(job, ExitStatus::default()).unwrap();
        job
    }

    fn buffer_duty(&self, job: JobId) -> Option<Task> {
        self.cluster.duty(&Owner::Buffer(job)).map(|duty| duty.task)
    }

    fn done_all(&mut self, job: JobId, task: Task) {
        self.answer(job, task, |_| StageResult::Done(Moved { n_files: 2, n_bytes: 3 << 20, ..Default::default() }));
    }

    fn fails(&mut self, job: JobId, task: Task) {
        let failure = StageFailure { why: "no such\nfile".into(), n_more: 2, ..Default::default() };
        self.answer(job, task, |_| StageResult::Failed(failure.clone()));
    }

    fn cancel(&mut self, job: JobId, hurry: bool) -> Result<(), Reject> {
        self.each(ALICE, Command::Cancel { jobs: vec![job.into()], hurry })
    }

    fn word(&self, job: JobId) -> &'static str {
        self.job(job).buffer_state().expect("it asked for a buffer").word()
    }
}

#[test]
fn the_normal_path() {
    let mut lab = lab();
    let job = lab.submit(with_bb(FULL));
    assert_eq!((lab.job(job).reason, lab.word(job)), (Some(Reason::BurstBufferResources), "pending"));
    assert_eq!(lab.used("flash"), 0);
    assert!(!lab.place(job, None, "n1"));
    assert!(lab.stage(job));
    assert_eq!((lab.job(job).reason, lab.word(job)), (Some(Reason::BurstBufferStageIn), "staging-in"));
    assert_eq!(lab.used("flash"), 4);
    assert!(!lab.stage(job), "once is enough");
    lab.done_all(job, Task::StageIn);
    assert_eq!((lab.job(job).reason, lab.word(job)), (Some(Reason::Priority), "staged-in"));
    assert!(lab.place(job, None, "n1"));
    assert_eq!(lab.word(job), "running");
    lab.done(job, Task::Launch);
    lab.exit(job, ExitStatus::default()).unwrap();
    assert_eq!((lab.job(job).phase, lab.job(job).state()), (Phase::Finishing, JobState::StageOut));
    assert!(lab.node("n1").jobs.is_empty(), "nodes are free while data is staged out");
    assert_eq!(lab.word(job), "staging-out");
    lab.done_all(job, Task::StageOut);
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Completed, "teardown"));
    assert_eq!(lab.used("flash"), 4, "charged until teardown has ended");
    let much_later = lab.secs + 100_000;
    lab.at(much_later);
    assert_eq!(lab.job(job).phase, Phase::Done, "remembered while its buffer is there");
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.used("flash"), 0);
    assert!(lab.cluster.job(job).is_none(), "and forgotten with it, so long after");
}

#[test]
fn a_summary_is_left() {
    let mut lab = lab();
    let job = lab.ended(FULL);
    lab.done_all(job, Task::StageOut);
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.word(job), "complete");
    let texts: Vec<_> = lab.job(job).remarks.iter().map(|remark| remark.text.clone()).collect();
    assert_eq!(texts, ["bb stage-in 3MiB 2 files 0s; stage-out 3MiB 2 files 0s"]);
}

#[test]
fn what_was_not_copied_is_told_when_the_buffer_is_gone() {
    let mut lab = lab();
    let job = lab.running_with("capacity=4 pool=flash;stage_out=directory:b:/data/b");
    lab.exit(job, ExitStatus::default()).unwrap();
    let moved = Moved { n_files: 2, n_bytes: 3 << 20, n_skipped: 3, ..Default::default() };
    lab.answer(job, Task::StageOut, |_| StageResult::Done(moved.clone()));
    lab.done_all(job, Task::TearDown);
    let texts: Vec<_> = lab.job(job).remarks.iter().map(|remark| remark.text.clone()).collect();
    assert!(texts[0].ends_with("stage-out 3MiB 2 files 0s, 3 skipped"), "{texts:?}");
}

#[test]
fn cancel_while_pending_leaves_nothing() {
    for hurry in [false, true] {
        let mut lab = lab();
        let job = lab.submit(with_bb(FULL));
        lab.cancel(job, hurry).unwrap();
        assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Cancelled, "complete"));
        assert_eq!(lab.phase(job), None);
    }
}

#[test]
fn cancel_before_the_run_gives_the_data_up() {
    for hurry in [false, true] {
        let mut lab = lab();
        let staging = lab.submit(with_bb(FULL));
        assert!(lab.stage(staging));
        let staged = lab.staged(FULL);
        for job in [staging, staged] {
            lab.cancel(job, hurry).unwrap();
            assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Cancelled, "teardown"));
            assert!(lab.cluster.buffer(job).unwrap().hurry);
            lab.done_all(job, Task::TearDown);
            assert_eq!(lab.word(job), "complete");
        }
        assert_eq!(lab.used("flash"), 0);
    }
}

#[test]
fn cancel_in_pre_run_gives_the_data_up() {
    let mut lab = lab();
    let job = lab.submit(with_bb("capacity=1 pool=nvme"));
    assert!(lab.place(job, None, "n2"));
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Configuring, "pre-run"));
    assert_eq!(lab.used("nvme"), 1);
    lab.cancel(job, false).unwrap();
    assert_eq!(lab.word(job), "teardown");
    lab.done(job, Task::Kill);
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.job(job).state(), lab.used("nvme")), (JobState::Cancelled, 0));
}

#[test]
fn cancel_of_a_running_job_stages_out_unless_in_a_hurry() {
    for hurry in [false, true] {
        let mut lab = lab();
        let job = lab.running_with(FULL);
        lab.cancel(job, hurry).unwrap();
        assert_eq!(lab.word(job), "post-run", "its processes may still write");
        assert_eq!(lab.buffer_duty(job), None);
        lab.done(job, Task::Kill);
        assert_eq!(lab.word(job), if hurry { "teardown" } else { "staging-out" });
        if !hurry {
            lab.done_all(job, Task::StageOut);
        }
        lab.done_all(job, Task::TearDown);
        assert_eq!((lab.job(job).state(), lab.used("flash")), (JobState::Cancelled, 0));
    }
}

#[test]
fn cancel_while_staging_out_is_refused_unless_in_a_hurry() {
    let mut lab = lab();
    let job = lab.ended(FULL);
    assert_eq!(lab.cancel(job, false), Err(Reject::AlreadyOver));
    lab.cancel(job, true).unwrap();
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Completed, "teardown"));
    assert_eq!(lab.cancel(job, true), Err(Reject::AlreadyOver), "there is nothing more to give up");
}

#[test]
fn a_failed_stage_out_keeps_the_data_until_it_is_retried_or_given_up() {
    let mut lab = lab();
    let job = lab.ended(FULL);
    lab.fails(job, Task::StageOut);
    let text = "burst_buffer/native: stage_out failed: no such file (2 more)";
    assert_eq!((lab.job(job).state(), lab.job(job).buffer_failure.as_str()), (JobState::StageOut, text));
    assert_eq!((lab.word(job), lab.buffer_duty(job), lab.used("flash")), ("staging-out", None, 4));
    assert_eq!(lab.cancel(job, false), Err(Reject::AlreadyOver));
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert_eq!((lab.job(job).buffer_failure.as_str(), lab.buffer_duty(job)), ("", Some(Task::StageOut)));
    lab.fails(job, Task::StageOut);
    lab.cancel(job, true).unwrap();
    assert_eq!(lab.buffer_duty(job), Some(Task::TearDown));
}

/// Agents wait for a full destination by themselves; whoever has made room has them look at once.
#[test]
fn a_release_while_staging_out_orders_it_again() {
    let mut lab = lab();
    let job = lab.ended(FULL);
    let since = lab.cluster.buffer(job).unwrap().since;
    let before = lab.cluster.duty(&Owner::Buffer(job)).unwrap().clone();
    lab.at(lab.secs + 100);
    assert_eq!(
        lab.each(BOB, Command::Release { jobs: vec![job.into()] }),
        Err(Reject::NotPermitted),
        "it is not theirs"
    );
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    let after = lab.cluster.duty(&Owner::Buffer(job)).unwrap().clone();
    assert!(after.task == Task::StageOut && after.attempt > before.attempt, "{after:?}");
    assert_eq!(lab.cluster.buffer(job).unwrap().since, since, "the time that it has is not made longer");
    lab.done_all(job, Task::StageOut);
    assert_eq!(lab.each(ALICE, Command::Release { jobs: vec![job.into()] }), Err(Reject::AlreadyOver));
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.job(job).state(), JobState::Completed);
}

#[test]
fn a_failed_stage_in_holds_the_job_and_release_tries_again() {
    let mut lab = lab();
    let job = lab.submit(with_bb(FULL));
    lab.stage(job);
    lab.fails(job, Task::StageIn);
    let text = "burst_buffer/native: stage_in failed: no such file (2 more)";
    let seen = lab.job(job);
    assert_eq!((seen.held, seen.reason), (Some(HeldBy::BurstBuffer), Some(Reason::BurstBufferOperation)));
    assert_eq!((seen.reason_text.as_str(), seen.remarks[0].text.as_str()), (text, text));
    assert_eq!((lab.word(job), lab.buffer_duty(job), lab.used("flash")), ("staging-in", None, 4));
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert_eq!((lab.job(job).reason, lab.buffer_duty(job)), (Some(Reason::BurstBufferStageIn), Some(Task::StageIn)));
    lab.done_all(job, Task::StageIn);
    assert!(lab.place(job, None, "n1"));
}

#[test]
fn with_teardown_failure_nothing_is_kept() {
    let mut lab = lab_with(|burst| burst.tears_down_after_failure = true);
    let job = lab.submit(with_bb(FULL));
    lab.stage(job);
    lab.fails(job, Task::StageIn);
    assert_eq!(lab.job(job).held, Some(HeldBy::BurstBuffer));
    assert!(lab.cluster.buffer(job).unwrap().hurry);
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.used("flash"), lab.word(job)), (0, "pending"));
    assert_eq!(lab.job(job).reason_text, "burst_buffer/native: stage_in failed: no such file (2 more)");
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert!(lab.stage(job), "staged anew");
    let other = lab.ended(FULL);
    lab.fails(other, Task::StageOut);
    assert!(!lab.cluster.buffer(other).unwrap().hurry);
    lab.done_all(other, Task::TearDown);
    assert_eq!(lab.job(other).state(), JobState::Completed);
}

#[test]
fn a_failed_pre_run_gives_the_nodes_back_and_holds_the_job() {
    let mut lab = lab();
    let job = lab.submit(with_bb("capacity=1 pool=nvme"));
    assert!(lab.place(job, None, "n2"));
    lab.fails(job, Task::PreRun);
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).phase, lab.job(job).held), (Phase::Pending, Some(HeldBy::BurstBuffer)));
    assert!(lab.node("n2").jobs.is_empty());
    let text = "burst_buffer/native: pre_run failed: no such file (2 more)";
    assert_eq!(lab.job(job).reason_text, text);
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.job(job).reason_text, text, "told until it is released");
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert!(lab.place(job, None, "n3"));
}

#[test]
fn a_failed_teardown_is_tried_for_ever_and_seen() {
    let mut lab = lab();
    let job = lab.ended("capacity=4");
    assert_eq!(lab.word(job), "teardown", "nothing to stage out");
    for _ in 0..3 {
        lab.fails(job, Task::TearDown);
        assert_eq!((lab.word(job), lab.used("flash")), ("teardown-fail", 4));
    }
    assert_eq!(lab.job(job).remarks.len(), 1, "the same complaint is noted once");
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.word(job), lab.used("flash")), ("complete", 0));
}

#[test]
fn a_requeued_job_stages_out_and_then_in_again() {
    let mut lab = lab();
    let job = lab.running_with(FULL);
    let first = lab.cluster.buffer(job).unwrap().epoch;
    lab.each(ALICE, Command::Requeue { jobs: vec![job.into()], hold: false }).unwrap();
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).phase, lab.word(job)), (Phase::Pending, "staging-out"));
    assert_eq!(lab.job(job).reason, Some(Reason::BurstBufferResources));
    assert!(!lab.stage(job));
    lab.done_all(job, Task::StageOut);
    lab.done_all(job, Task::TearDown);
    assert_eq!(lab.word(job), "pending");
    assert!(lab.stage(job));
    assert!(lab.cluster.buffer(job).unwrap().epoch > first, "its directory is another");
    lab.done_all(job, Task::StageIn);
    assert!(lab.place(job, None, "n1"));
}

#[test]
fn a_time_limit_and_a_lost_node_stage_out() {
    let mut lab = lab();
    let job = lab.staged("capacity=4;stage_out=file:b:/data/b");
    assert!(lab.place(job, None, "n1"));
    lab.done(job, Task::Launch);
    let mover = lab.cluster.buffer(job).unwrap().places[0].node.clone();
    lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
    assert_eq!(lab.job(job).phase, Phase::Ending);
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).phase, lab.word(job)), (Phase::Pending, "staging-out"));
    let now = &lab.cluster.buffer(job).unwrap().places[0].node;
    assert!(mover.as_str() != "n1" || now.as_str() != "n1", "another agent has taken over");
}

#[test]
fn work_of_a_lost_agent_goes_to_another_and_its_late_answer_counts_no_more() {
    let mut lab = lab();
    let job = lab.submit(with_bb(FULL));
    lab.stage(job);
    let stale = lab.cluster.duty(&Owner::Buffer(job)).unwrap().clone();
    let first = lab.cluster.buffer(job).unwrap().places[0].node.clone();
    lab.ok(ROOT, Command::NodeLost { node: first.clone() });
    let buffer = lab.cluster.buffer(job).unwrap().clone();
    assert_ne!(buffer.places[0].node, first);
    let result = PlaceResult { access: Access::Shared, node: first, result: StageResult::Done(Moved::default()) };
    let late = Command::Staged { duty: stale, results: vec![result] };
    assert_eq!(lab.apply(ROOT, late), Err(Reject::Stale));
    lab.done_all(job, Task::StageIn);
    assert_eq!(lab.word(job), "staged-in");
}

#[test]
fn a_silent_agent_is_not_waited_for_for_ever() {
    let mut lab = lab_with(|burst| burst.stage_out_timeout = model::time::Span::from_secs(100));
    let job = lab.ended(FULL);
    let late = lab.secs + 200;
    lab.at(late);
    assert_eq!((lab.word(job), lab.buffer_duty(job)), ("staging-out", None));
    assert!(lab.job(job).buffer_failure.contains("stage_out failed: timed out"), "{}", lab.job(job).buffer_failure);
}

#[test]
fn capacity_is_given_in_full_and_never_twice() {
    let mut lab = lab();
    let all = lab.submit(with_bb("capacity=10"));
    assert!(lab.stage(all), "a request for all of the pool fits");
    let more = lab.submit(with_bb("capacity=1"));
    assert!(!lab.stage(more));
    let never = lab.submit(with_bb("capacity=11"));
    assert!(!lab.stage(never));
    assert_eq!(lab.job(never).reason, Some(Reason::BurstBufferResources));
    lab.cancel(all, false).unwrap();
    assert!(!lab.stage(more), "teardown has not ended");
    lab.done_all(all, Task::TearDown);
    assert!(lab.stage(more));
}

#[test]
fn private_space_is_charged_on_each_node() {
    let mut lab = lab();
    let first = lab.submit(with_bb("capacity=3 pool=nvme"));
    assert!(lab.place(first, None, "n1"));
    let second = lab.submit(with_bb("capacity=2 pool=nvme"));
    assert!(!lab.place(second, None, "n1"), "4 GiB a node");
    assert!(lab.place(second, None, "n2"));
    lab.done_all(second, Task::PreRun);
    assert_eq!(lab.duty(second), Some(Task::Launch));
    assert_eq!(lab.duty(first), None, "not before its data is there");
}

#[test]
fn what_was_staged_on_other_nodes_is_trimmed() {
    let mut lab = lab();
    let job = lab.submit(with_bb("capacity=1 pool=nvme"));
    let stage_ins = vec![StageStart { job, task: None, nodes: vec!["n1".into(), "n2".into()] }];
    lab.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
    lab.done_all(job, Task::StageIn);
    assert_eq!(lab.used("nvme"), 2);
    assert!(lab.place(job, None, "n2"));
    assert_eq!((lab.word(job), lab.buffer_duty(job)), ("running", Some(Task::Trim)));
    let duty = lab.cluster.duty(&Owner::Buffer(job)).unwrap().clone();
    let result = |node: &str| PlaceResult {
        access: Access::Private,
        node: node.into(),
        result: StageResult::Done(Moved::default()),
    };
    lab.ok(ROOT, Command::Staged { duty, results: vec![result("n1")] });
    assert_eq!((lab.used("nvme"), lab.buffer_duty(job)), (1, None));
}

#[test]
fn teardown_frees_exactly_what_is_confirmed() {
    let mut lab = lab();
    let job = lab.submit(with_bb("capacity=1 pool=nvme"));
    let stage_ins = vec![StageStart { job, task: None, nodes: vec!["n1".into(), "n2".into()] }];
    lab.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
    lab.cancel(job, false).unwrap();
    lab.ok(ROOT, Command::NodeLost { node: "n2".into() });
    let duty = lab.cluster.duty(&Owner::Buffer(job)).unwrap().clone();
    let result =
        PlaceResult { access: Access::Private, node: "n1".into(), result: StageResult::Done(Moved::default()) };
    lab.ok(ROOT, Command::Staged { duty, results: vec![result] });
    assert_eq!((lab.used("nvme"), lab.word(job)), (1, "teardown"));
    let drop = Command::DropBuffer { buffer: Owner::Buffer(job) };
    assert_eq!(lab.apply(ALICE, drop.clone()), Err(Reject::NotPermitted));
    lab.ok(ROOT, drop);
    assert_eq!((lab.used("nvme"), lab.word(job)), (0, "complete"));
}

pub fn file(text: &str) -> JobSpec {
    JobSpec { burst_buffer_file: text.into(), ..batch() }
}

pub fn persistent_answer(lab: &mut Lab, name: &str, result: StageResult) {
    let duty = lab.cluster.duty(&Owner::Persistent(name.into())).expect("a duty").clone();
    let node = lab.cluster.persistent(name).unwrap().node.clone();
    lab.ok(ROOT, Command::Staged { duty, results: vec![PlaceResult { access: Access::Shared, node, result }] });
}

#[test]
fn persistent_buffers_are_made_used_and_destroyed_by_jobs() {
    let mut lab = lab();
    let mut spec = file("#BB create_persistent name=library capacity=2");
    spec.size.max_nodes = Some(0);
    let maker = lab.submit(spec);
    let user = lab.submit(file("#DW persistentdw name=library"));
    assert!(lab.stage(maker));
    assert_eq!((lab.word(maker), lab.used("flash")), ("allocating", 2));
    assert!(lab.stage(user));
    assert_eq!(lab.word(user), "allocating", "it waits for the buffer to be there");
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    assert_eq!((lab.job(maker).state(), lab.word(maker)), (JobState::Completed, "complete"));
    assert!(lab.job(maker).started.is_some());
    lab.done_all(user, Task::StageIn);
    assert!(lab.place(user, None, "n1"));
    lab.done(user, Task::Launch);
    let mut spec = file("#BB destroy_persistent name=library");
    spec.size.max_nodes = Some(0);
    let destroyer = lab.submit(spec);
    assert!(lab.stage(destroyer));
    assert_eq!(lab.cluster.persistent("library").unwrap().phase, PersistentPhase::Condemned, "still in use");
    assert_eq!(lab.word(destroyer), "deleting");
    lab.exit(user, ExitStatus::default()).unwrap();
    assert_eq!(lab.cluster.persistent("library").unwrap().phase, PersistentPhase::Destroying);
    let failure = StageFailure { why: "busy".into(), ..Default::default() };
    persistent_answer(&mut lab, "library", StageResult::Failed(failure));
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    assert_eq!((lab.job(destroyer).state(), lab.cluster.persistent_buffers().count()), (JobState::Completed, 0));
    let told = lab.cluster.chronicle().buffers;
    assert_eq!((told.len(), told[0].name.as_str(), told[0].bytes), (1, "library", 2 * GIB));
    assert!(told[0].until.is_some_and(|until| until >= told[0].from), "it is remembered");
    lab.done_all(user, Task::TearDown);
    assert_eq!(lab.used("flash"), 0);
}

fn without_nodes(text: &str) -> JobSpec {
    let mut spec = file(text);
    spec.size.max_nodes = Some(0);
    spec
}

/// A persistent buffer `library` that a job on n1 uses.
fn library_in_use(lab: &mut Lab) -> JobId {
    let maker = lab.submit(without_nodes("#BB create_persistent name=library capacity=2"));
    assert!(lab.stage(maker));
    persistent_answer(lab, "library", StageResult::Done(Moved::default()));
    let user = lab.submit(file("#DW persistentdw name=library"));
    assert!(lab.stage(user));
    lab.done_all(user, Task::StageIn);
    assert!(lab.place(user, None, "n1"));
    lab.done(user, Task::Launch);
    user
}

#[test]
fn a_persistent_buffer_goes_though_a_later_job_waits_for_it() {
    let mut lab = lab();
    let user = library_in_use(&mut lab);
    let destroyer = lab.submit(without_nodes("#BB destroy_persistent name=library"));
    assert!(lab.stage(destroyer));
    let late = lab.submit(file("#DW persistentdw name=library"));
    assert!(lab.stage(late));
    assert_eq!((lab.word(destroyer), lab.word(late)), ("deleting", "allocating"));
    lab.exit(user, ExitStatus::default()).unwrap();
    assert_eq!(lab.cluster.persistent("library").unwrap().phase, PersistentPhase::Destroying);
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    assert_eq!((lab.job(destroyer).state(), lab.word(late)), (JobState::Completed, "allocating"));
}

#[test]
fn a_job_that_waits_for_a_persistent_buffer_holds_no_space() {
    let mut lab = lab();
    let waits = lab.submit(file("#DW jobdw capacity=4GiB\n#DW persistentdw name=ghost"));
    assert!(!lab.stage(waits));
    assert_eq!((lab.used("flash"), lab.job(waits).reason), (0, Some(Reason::BurstBufferResources)));
    let maker = lab.submit(without_nodes("#BB create_persistent name=ghost capacity=2"));
    assert!(lab.stage(maker));
    assert!(!lab.stage(waits), "it is not there yet");
    persistent_answer(&mut lab, "ghost", StageResult::Done(Moved::default()));
    assert!(lab.stage(waits));
    assert_eq!(lab.used("flash"), 6);
}

#[test]
fn a_job_that_destroys_what_others_use_waits_without_nodes() {
    let mut lab = lab();
    let user = library_in_use(&mut lab);
    let destroyer = lab.submit(file("#BB destroy_persistent name=library"));
    assert!(lab.stage(destroyer));
    let seen = lab.job(destroyer);
    assert_eq!((seen.phase, seen.reason), (Phase::Pending, Some(Reason::BurstBufferResources)));
    assert!(!lab.place(destroyer, None, "n2"), "its nodes would be idle");
    assert_eq!(lab.cluster.persistent("library").unwrap().phase, PersistentPhase::Ready);
    lab.exit(user, ExitStatus::default()).unwrap();
    assert!(lab.place(destroyer, None, "n2"));
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    assert_eq!((lab.duty(destroyer), lab.cluster.persistent_buffers().count()), (Some(Task::Launch), 0));
}

#[test]
fn nobody_destroys_what_it_uses_itself() {
    let mut lab = lab();
    let spec = Box::new(file("#DW persistentdw name=x\n#BB destroy_persistent name=x"));
    let said = lab.apply(ALICE, Command::Submit { spec, blobs: Vec::new() });
    assert!(
        matches!(&said, Err(Reject::BadBuffer(why)) if why.contains("uses persistent buffer x itself")),
        "{said:?}"
    );
}

#[test]
fn a_requeued_job_does_not_wait_for_what_it_left_on_a_lost_node() {
    let mut lab = lab();
    let job = lab.submit(with_bb("capacity=3 pool=nvme"));
    assert!(lab.place(job, None, "n1"));
    lab.done_all(job, Task::PreRun);
    lab.done(job, Task::Launch);
    lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
    if let Some(task) = lab.duty(job) {
        lab.done(job, task);
    }
    assert_eq!((lab.job(job).phase, lab.word(job), lab.used("nvme")), (Phase::Pending, "teardown", 3));
    lab.at(1200);
    assert!(lab.place(job, None, "n2"), "a directory of its own");
    assert_eq!(lab.used("nvme"), 6, "what is left on n1 is charged there");
    let done = |lab: &mut Lab, node: &str| {
        let duty = lab.cluster.duty(&Owner::Buffer(job)).expect("a duty").clone();
        let result = StageResult::Done(Moved::default());
        let results = vec![PlaceResult { access: Access::Private, node: node.into(), result }];
        lab.ok(ROOT, Command::Staged { duty, results });
    };
    done(&mut lab, "n2");
    assert_eq!(lab.duty(job), Some(Task::Launch));
    lab.done(job, Task::Launch);
    lab.register("n1", &[]);
    let left =
        lab.cluster.buffer(job).unwrap().places.iter().find(|place| place.node.as_str() == "n1").unwrap().clone();
    assert!(left.is_unwanted && left.epoch > 0 && left.epoch < lab.cluster.buffer(job).unwrap().epoch);
    assert_eq!(lab.buffer_duty(job), Some(Task::Trim));
    done(&mut lab, "n1");
    assert_eq!((lab.used("nvme"), lab.job(job).phase), (3, Phase::Running));
}

/// The old one is no answer to who wants a new one, and nobody waits for ever.
#[test]
fn what_is_being_destroyed_is_made_anew_when_it_is_gone() {
    let done = || StageResult::Done(Moved::default());
    let mut lab = lab();
    let maker = lab.submit(without_nodes("#BB create_persistent name=library capacity=2"));
    assert!(lab.stage(maker));
    persistent_answer(&mut lab, "library", done());
    let destroyer = lab.submit(without_nodes("#BB destroy_persistent name=library"));
    assert!(lab.stage(destroyer));
    let again = lab.submit(without_nodes("#BB create_persistent name=library capacity=3"));
    assert!(lab.stage(again));
    assert_eq!(lab.word(again), "allocating");
    persistent_answer(&mut lab, "library", done());
    assert_eq!((lab.job(destroyer).state(), lab.word(again)), (JobState::Completed, "pending"));
    assert!(lab.stage(again), "there is room for it, and it has its turn");
    assert_eq!(lab.used("flash"), 3);
    // One who counted on another to make it makes it when that has failed.
    let other = lab.submit(without_nodes("#BB create_persistent name=library capacity=3"));
    assert!(lab.stage(other));
    persistent_answer(&mut lab, "library", StageResult::Failed(StageFailure::default()));
    assert_eq!((lab.job(again).held, lab.word(other)), (Some(HeldBy::BurstBuffer), "pending"));
    assert!(lab.stage(other));
    persistent_answer(&mut lab, "library", done());
    assert_eq!(lab.job(other).state(), JobState::Completed);
}

#[test]
fn persistent_buffers_of_others_are_safe() {
    let mut lab = lab();
    let maker = lab.submit(file("#BB create_persistent name=x capacity=1"));
    lab.stage(maker);
    persistent_answer(&mut lab, "x", StageResult::Done(Moved::default()));
    let mut spec = file("#BB create_persistent name=x capacity=1");
    spec.uid = BOB.uid;
    let copy = lab.submit(spec);
    lab.stage(copy);
    assert!(lab.job(copy).reason_text.contains("Duplicate buffer name"), "{:?}", lab.job(copy));
    let mut spec = file("#BB destroy_persistent name=x");
    spec.uid = BOB.uid;
    spec.size.max_nodes = Some(0);
    let thief = lab.submit(spec);
    lab.stage(thief);
    assert!(lab.job(thief).reason_text.contains("Delete buffer x permission denied"), "{:?}", lab.job(thief));
    assert_eq!(lab.cluster.persistent_buffers().count(), 1);
}

#[test]
fn a_buffer_that_cannot_be_made_holds_its_maker() {
    let mut lab = lab();
    let maker = lab.submit(file("#BB create_persistent name=x capacity=1"));
    lab.stage(maker);
    persistent_answer(&mut lab, "x", StageResult::Failed(StageFailure { why: "full".into(), ..Default::default() }));
    assert_eq!((lab.job(maker).reason, lab.used("flash")), (Some(Reason::BurstBufferOperation), 0));
    lab.each(ALICE, Command::Release { jobs: vec![maker.into()] }).unwrap();
    assert!(lab.stage(maker), "it begins anew");
}

#[test]
fn each_task_of_an_array_has_its_own_buffer() {
    let mut lab = lab();
    let mut spec = with_bb("capacity=1");
    spec.array = Some(model::spec::ArraySpec { tasks: (0..3).collect(), limit: None });
    let array = lab.submit(spec);
    assert!(lab.stage(array));
    assert!(lab.stage(array));
    assert_eq!((lab.used("flash"), lab.cluster.buffers().count()), (2, 2));
    assert_eq!(lab.job(array).waiting_tasks.as_ref().map(|tasks| tasks.len()), Some(1));
}

#[test]
fn dependents_with_buffers_wait_for_the_data() {
    let mut lab = lab();
    let first = lab.running_with(FULL);
    let after = |spec: JobSpec, text: &str| JobSpec {
        dependency: model::dependency::parse(&format!("{text}:{first}")).unwrap(),
        ..spec
    };
    let plain = lab.submit(after(batch(), "afterok"));
    let burst = lab.submit(after(batch(), "afterburstbuffer"));
    let both = lab.submit(after(with_bb(FULL), "afterany"));
    lab.exit(first, ExitStatus::default()).unwrap();
    assert_ne!(lab.job(plain).reason, Some(Reason::Dependency), "only the first has a buffer");
    assert_eq!(lab.job(burst).reason, Some(Reason::Dependency));
    assert_eq!(lab.job(both).reason, Some(Reason::Dependency));
    assert!(!lab.stage(both), "nothing is staged for a job that may not start");
    lab.done_all(first, Task::StageOut);
    assert_eq!(lab.job(burst).reason, Some(Reason::Priority));
    assert!(lab.stage(both));
}

#[test]
fn held_and_late_jobs_are_not_staged() {
    let mut lab = lab();
    let held = lab.submit(JobSpec { held: true, ..with_bb(FULL) });
    assert!(!lab.stage(held));
    let late = lab.submit(JobSpec { begin: Some(model::Timestamp::from_secs(lab.secs + 50)), ..with_bb(FULL) });
    assert!(!lab.stage(late));
    let due = lab.secs + 60;
    lab.at(due);
    assert!(lab.stage(late));
}

#[test]
fn a_restart_changes_nothing() {
    let mut lab = lab();
    let jobs =
        [lab.staged(FULL), lab.submit(with_bb(FULL)), lab.submit(file("#BB create_persistent name=x capacity=1"))];
    lab.stage(jobs[1]);
    lab.stage(jobs[2]);
    let copy: Cluster = codec::decode(&codec::encode(&lab.cluster)).unwrap();
    assert_eq!(copy, lab.cluster);
    let duties: Vec<_> = copy.duties().cloned().collect();
    assert_eq!(duties.len(), 2);
    assert_eq!(capacity::Usage::of(&copy), capacity::Usage::of(&lab.cluster));
}

#[test]
fn bad_requests_are_refused_with_the_word_marked() {
    let mut lab = lab();
    let mut refuse = |spec: JobSpec| lab.apply(ALICE, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    let details = |reply: Result<Reply, Reject>| reply.unwrap_err().details().to_owned();
    let marked = details(refuse(with_bb("capacity=1 pool=x")));
    assert!(marked.starts_with("burst_buffer/native: Invalid pool requested (x)"), "{marked}");
    assert!(marked.ends_with("^^^^^^"), "{marked}");
    let mut nothing = batch();
    nothing.size.max_nodes = Some(0);
    assert_eq!(refuse(nothing), Err(Reject::TooManyNodes));
    let mut nothing = with_bb("capacity=1");
    nothing.size.max_nodes = Some(0);
    assert!(matches!(refuse(nothing), Err(Reject::BadBuffer(_))));
    let mut component = file("#BB create_persistent name=x capacity=1");
    component.size.max_nodes = Some(0);
    component.component = Some(0);
    assert_eq!(refuse(component), Err(Reject::TooManyNodes));
    let mut lab = lab_with(|burst| {
        burst.enables_persistent = false;
        burst.deny_users = vec!["1001".into()];
    });
    let mut refuse = |by, spec: JobSpec| lab.apply(by, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    let creates = refuse(ALICE, file("#BB create_persistent name=x capacity=1"));
    assert!(matches!(creates, Err(Reject::BufferNotPermitted(_))));
    let denied = details(refuse(BOB, JobSpec { uid: BOB.uid, ..with_bb("capacity=1") }));
    assert_eq!(denied, "User found in DenyUsers");
    let mut without = Lab::new();
    let refused = without.apply(ALICE, Command::Submit { spec: Box::new(with_bb("capacity=1")), blobs: Vec::new() });
    assert!(matches!(refused, Err(Reject::BadBuffer(_))));
}
