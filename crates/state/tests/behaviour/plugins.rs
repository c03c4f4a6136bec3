//! The life of buffers whose work a plugin's hooks do: where it differs from that of native ones, row by row.
use model::command::PlaceResult;
use model::job_state::JobState;
use model::plan::StageStart;
use model::pool::{BurstBufferConfig, Pool};
use model::staging::{Access, Moved, StageFailure, StageResult};
use model::{
    BufferPhase, Command, ExitStatus, HeldBy, JobId, JobSpec, NodeName, Owner, Plan, Plugin, Reason, Reject, Task,
};
use state::buffers::capacity::Usage;

use super::lab::*;

fn pools() -> Vec<Pool> {
    let pool = |name: &str, total: u64| Pool {
        name: name.into(),
        granularity_bytes: 10,
        total_bytes: Some(total),
        ..Default::default()
    };
    vec![pool("p1", 1000), pool("p2", 100)]
}

fn lab_of(plugin: Plugin, change: impl Fn(&mut BurstBufferConfig)) -> Lab {
    let mut lab = Lab::new();
    let mut burst = BurstBufferConfig { plugin, enables_persistent: true, ..Default::default() };
    change(&mut burst);
    let config = model::Config { burst_buffer: Some(burst), ..config() };
    lab.ok(ROOT, Command::Begin { config: Box::new(config) });
    lab.ok(ROOT, Command::PoolsReported { plugin, pools: pools() });
    lab
}

fn restart(lab: &mut Lab) {
    let mut config = (**lab.cluster.config()).clone();
    let burst = config.burst_buffer.as_mut().expect("configured");
    // As the file has it: what the plugin told is not in it.
    burst.pools.clear();
    burst.is_loaded = false;
    lab.ok(ROOT, Command::Begin { config: Box::new(config) });
}

fn request(plugin: Plugin) -> JobSpec {
    let text = match plugin {
        Plugin::Lua => "#BB_LUA pool=p1 capacity=95",
        _ => "#DW jobdw capacity=95 pool=p1",
    };
    JobSpec { burst_buffer: text.into(), ..batch() }
}

trait Hooks {
    fn stage(&mut self, job: JobId);
    fn answer(&mut self, job: JobId, task: Task, result: StageResult);
    fn done(&mut self, job: JobId, task: Task);
    fn fails(&mut self, job: JobId, task: Task, hook: &str);
    fn task(&self, job: JobId) -> Option<Task>;
    fn word(&self, job: JobId) -> &'static str;
    fn used(&self) -> u64;
    fn in_state(&mut self, plugin: Plugin, state: &str) -> JobId;
    fn cancel(&mut self, job: JobId, hurry: bool) -> Result<(), Reject>;
    fn hurries(&self, job: JobId) -> bool;
}

impl Hooks for Lab {
    fn stage(&mut self, job: JobId) {
        let stage_ins = vec![StageStart { job, ..Default::default() }];
        self.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
    }

    fn answer(&mut self, job: JobId, task: Task, result: StageResult) {
        let duty = self.cluster.duty(&Owner::Buffer(job)).expect("a duty").clone();
        assert_eq!(duty.task, task);
        let results = vec![PlaceResult { access: Access::Shared, node: NodeName::default(), result }];
        self.ok(ROOT, Command::Staged { duty, results });
    }

    fn done(&mut self, job: JobId, task: Task) {
        self.answer(job, task, StageResult::Done(Moved::default()));
    }

    fn fails(&mut self, job: JobId, task: Task, hook: &str) {
        let failure = StageFailure { why: "no such set".into(), operation: hook.into(), ..Default::default() };
        self.answer(job, task, StageResult::Failed(failure));
    }

    fn task(&self, job: JobId) -> Option<Task> {
        self.cluster.duty(&Owner::Buffer(job)).map(|duty| duty.task)
    }

    fn word(&self, job: JobId) -> &'static str {
        self.job(job).buffer_state().expect("it asked for a buffer").word()
    }

    fn used(&self) -> u64 {
        let config = self.cluster.config().burst_buffer.clone().expect("configured");
        Usage::of(&self.cluster).of_pool(config.pool("p1").expect("a pool"))
    }

    /// A job whose buffer has come as far as `state`.
    fn in_state(&mut self, plugin: Plugin, state: &str) -> JobId {
        let job = self.submit(request(plugin));
        for step in 0..9 {
            if self.word(job) == state {
                return job;
            }
            match step {
                0 => self.stage(job),
                1 => Hooks::done(self, job, Task::StageIn),
                2 => assert!(self.place(job, None, "n1")),
                3 => Hooks::done(self, job, Task::PreRun),
                4 => Lab::done(self, job, Task::Launch),
                5 => drop(self.exit(job, ExitStatus::default()).unwrap()),
                6 => Hooks::done(self, job, Task::PostRun),
                7 => Hooks::done(self, job, Task::StageOut),
                _ => Hooks::done(self, job, Task::TearDown),
            }
        }
        assert_eq!(self.word(job), state);
        job
    }

    fn cancel(&mut self, job: JobId, hurry: bool) -> Result<(), Reject> {
        self.each(ALICE, Command::Cancel { jobs: vec![job.into()], hurry })
    }

    fn hurries(&self, job: JobId) -> bool {
        self.cluster.buffer(job).expect("a buffer").hurry
    }
}

const BOTH: [Plugin; 2] = [Plugin::Lua, Plugin::DataWarp];

#[test]
fn the_path_of_a_plugins_buffer() {
    for plugin in BOTH {
        let mut lab = lab_of(plugin, |_| ());
        let job = lab.in_state(plugin, "pending");
        assert_eq!((lab.used(), lab.job(job).reason), (0, Some(Reason::BurstBufferResources)));
        lab.stage(job);
        assert_eq!((lab.word(job), lab.used()), ("staging-in", 100));
        assert_eq!(lab.job(job).reason, Some(Reason::BurstBufferStageIn));
        lab.answer(job, Task::StageIn, StageResult::Done(Moved { real_bytes: 130, ..Default::default() }));
        assert_eq!((lab.word(job), lab.used()), ("staged-in", 130));
        assert!(lab.place(job, None, "n2"));
        assert_eq!((lab.word(job), lab.job(job).state()), ("pre-run", JobState::Configuring));
        let environment = vec!["A=1".to_owned()];
        lab.answer(job, Task::PreRun, StageResult::Done(Moved { environment, ..Default::default() }));
        assert_eq!(lab.word(job), "running");
        assert_eq!(state::buffers::environment(&lab.cluster, lab.job(job), &"n2".into()), ["A=1"]);
        Lab::done(&mut lab, job, Task::Launch);
        lab.exit(job, ExitStatus::default()).unwrap();
        assert_eq!((lab.word(job), lab.job(job).state()), ("post-run", JobState::StageOut));
        assert!(lab.node("n2").jobs.is_empty(), "nodes are free meanwhile");
        Hooks::done(&mut lab, job, Task::PostRun);
        assert_eq!(lab.word(job), "staging-out");
        Hooks::done(&mut lab, job, Task::StageOut);
        assert_eq!((lab.word(job), lab.job(job).state(), lab.used()), ("teardown", JobState::Completed, 130));
        assert!(!lab.hurries(job));
        Hooks::done(&mut lab, job, Task::TearDown);
        assert_eq!((lab.word(job), lab.used()), ("complete", 0));
    }
}

#[test]
fn cancel_and_hurry_in_every_state() {
    for plugin in BOTH {
        for hurry in [false, true] {
            for state in ["pending", "staging-in", "staged-in", "pre-run"] {
                let mut lab = lab_of(plugin, |_| ());
                let job = lab.in_state(plugin, state);
                lab.cancel(job, hurry).unwrap();
                if state == "pre-run" {
                    Lab::done(&mut lab, job, Task::Kill);
                }
                assert_eq!(lab.job(job).state(), JobState::Cancelled, "{state}");
                if state == "pending" {
                    assert_eq!((lab.word(job), lab.task(job)), ("complete", None));
                    continue;
                }
                assert!(lab.word(job) == "teardown" && lab.hurries(job), "{state}");
                Hooks::done(&mut lab, job, Task::TearDown);
                assert_eq!((lab.word(job), lab.used()), ("complete", 0));
            }
            let mut lab = lab_of(plugin, |_| ());
            let job = lab.in_state(plugin, "running");
            Lab::done(&mut lab, job, Task::Launch);
            lab.cancel(job, hurry).unwrap();
            assert_eq!((lab.word(job), lab.task(job)), ("post-run", None), "its processes are still there");
            Lab::done(&mut lab, job, Task::Kill);
            assert_eq!(lab.word(job), if hurry { "teardown" } else { "post-run" });
            assert_eq!(lab.hurries(job), hurry);
            for state in ["post-run", "staging-out"] {
                let mut lab = lab_of(plugin, |_| ());
                let job = lab.in_state(plugin, state);
                let said = lab.cancel(job, hurry);
                assert_eq!(said, if hurry { Ok(()) } else { Err(Reject::AlreadyOver) }, "{state}");
                assert_eq!(lab.word(job), if hurry { "teardown" } else { state });
            }
            let mut lab = lab_of(plugin, |_| ());
            let job = lab.in_state(plugin, "teardown");
            assert_eq!(lab.cancel(job, hurry), Err(Reject::AlreadyOver));
        }
    }
}

#[test]
fn failures_before_the_run_hold_the_job_and_keep_the_buffer() {
    let rows = [
        (Plugin::Lua, "slurm_bb_setup", "burst_buffer/lua: JobHeldAdmin: slurm_bb_setup failed: no such set", 100),
        (Plugin::Lua, "slurm_bb_data_in", "burst_buffer/lua: JobHeldAdmin: slurm_bb_data_in failed: no such set", 100),
        (Plugin::DataWarp, "setup", "burst_buffer/datawarp: setup: no such set", 0),
        (Plugin::DataWarp, "dws_data_in", "burst_buffer/datawarp: dws_data_in: no such set", 100),
    ];
    for (plugin, hook, text, charged) in rows {
        for gives_up in [false, true] {
            let mut lab = lab_of(plugin, |burst| burst.tears_down_after_failure = gives_up);
            let job = lab.in_state(plugin, "staging-in");
            lab.fails(job, Task::StageIn, hook);
            let seen = lab.job(job);
            assert_eq!((seen.held, seen.reason), (Some(HeldBy::BurstBuffer), Some(Reason::BurstBufferOperation)));
            assert_eq!(seen.reason_text, text);
            let noted = format!("burst_buffer/{}: {}: no such set", plugin.word(), hook.trim_start_matches("dws_"));
            assert_eq!(seen.remarks[0].text, noted);
            if gives_up {
                assert!(lab.task(job) == Some(Task::TearDown) && lab.hurries(job));
                Hooks::done(&mut lab, job, Task::TearDown);
                assert_eq!((lab.word(job), lab.used()), ("pending", 0));
                assert_eq!(lab.job(job).reason_text, text, "still told");
            } else {
                assert_eq!((lab.word(job), lab.task(job), lab.used()), ("staging-in", None, charged));
            }
            lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
            if !gives_up {
                assert!(lab.task(job) == Some(Task::TearDown) && lab.hurries(job), "released: torn down first");
                Hooks::done(&mut lab, job, Task::TearDown);
            }
            lab.stage(job);
            assert_eq!((lab.word(job), lab.used()), ("staging-in", 100));
        }
    }
}

#[test]
fn failures_at_the_start_and_after_the_run() {
    for (plugin, hook, text) in [
        (Plugin::Lua, "slurm_bb_paths", "burst_buffer/lua: JobHeldAdmin: slurm_bb_paths failed: no such set"),
        (Plugin::Lua, "slurm_bb_pre_run", "burst_buffer/lua: JobHeldAdmin: slurm_bb_pre_run failed: no such set"),
        (Plugin::DataWarp, "paths", "burst_buffer/datawarp: paths failed: no such set"),
        (Plugin::DataWarp, "pre_run", "Burst buffer pre_run error"),
    ] {
        let mut lab = lab_of(plugin, |_| ());
        let job = lab.in_state(plugin, "pre-run");
        lab.fails(job, Task::PreRun, hook);
        Lab::done(&mut lab, job, Task::Kill);
        assert_eq!((lab.job(job).state(), lab.job(job).reason_text.as_str()), (JobState::Pending, text));
        assert!(lab.word(job) == "teardown" && lab.hurries(job));
        Hooks::done(&mut lab, job, Task::TearDown);
        assert_eq!((lab.word(job), lab.job(job).reason_text.as_str()), ("pending", text));
    }
    for (plugin, state, task, hook, text) in [
        (
            Plugin::Lua,
            "post-run",
            Task::PostRun,
            "slurm_bb_post_run",
            "burst_buffer/lua: JobHeldAdmin: slurm_bb_post_run failed: no such set",
        ),
        (
            Plugin::Lua,
            "staging-out",
            Task::StageOut,
            "slurm_bb_data_out",
            "burst_buffer/lua: JobHeldAdmin: slurm_bb_data_out failed: no such set",
        ),
        (
            Plugin::DataWarp,
            "post-run",
            Task::PostRun,
            "dws_post_run",
            "burst_buffer/datawarp: dws_post_run: no such set",
        ),
        (
            Plugin::DataWarp,
            "staging-out",
            Task::StageOut,
            "dws_data_out",
            "burst_buffer/datawarp: dws_data_out: no such set",
        ),
    ] {
        for gives_up in [false, true] {
            let mut lab = lab_of(plugin, |burst| burst.tears_down_after_failure = gives_up);
            let job = lab.in_state(plugin, state);
            lab.fails(job, task, hook);
            if gives_up {
                assert!(lab.task(job) == Some(Task::TearDown) && !lab.hurries(job), "{hook}");
                continue;
            }
            assert_eq!(lab.job(job).buffer_failure, text);
            assert_eq!((lab.job(job).state(), lab.word(job), lab.used()), (JobState::StageOut, state, 100));
            lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
            assert_eq!(lab.task(job), Some(task), "released: tried again");
            lab.fails(job, task, hook);
            lab.cancel(job, true).unwrap();
            assert!(lab.task(job) == Some(Task::TearDown) && lab.hurries(job));
        }
    }
}

#[test]
fn a_script_is_asked_three_times_to_tear_down_a_program_for_ever() {
    let mut lab = lab_of(Plugin::Lua, |_| ());
    let job = lab.in_state(Plugin::Lua, "teardown");
    for _ in 0..2 {
        lab.fails(job, Task::TearDown, "teardown");
        assert_eq!((lab.word(job), lab.used()), ("teardown-fail", 100));
        assert_eq!(lab.job(job).buffer_failure, "burst_buffer/lua: teardown failed: no such set");
    }
    lab.fails(job, Task::TearDown, "teardown");
    assert_eq!((lab.word(job), lab.used()), ("complete", 0));
    let mut lab = lab_of(Plugin::DataWarp, |_| ());
    let job = lab.in_state(Plugin::DataWarp, "teardown");
    for _ in 0..5 {
        lab.fails(job, Task::TearDown, "teardown");
        assert_eq!((lab.word(job), lab.used()), ("teardown-fail", 100));
        assert_eq!(lab.job(job).buffer_failure, "burst_buffer/datawarp: teardown: no such set");
    }
    Hooks::done(&mut lab, job, Task::TearDown);
    assert_eq!(lab.word(job), "complete");
}

#[test]
fn a_requeued_job_goes_through_all_of_it_again() {
    for plugin in BOTH {
        let mut lab = lab_of(plugin, |_| ());
        let job = lab.in_state(plugin, "running");
        Lab::done(&mut lab, job, Task::Launch);
        lab.each(ALICE, Command::Requeue { jobs: vec![job.into()], hold: false }).unwrap();
        Lab::done(&mut lab, job, Task::Kill);
        assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "post-run"));
        assert_eq!(lab.job(job).reason, Some(Reason::BurstBufferResources));
        for task in [Task::PostRun, Task::StageOut, Task::TearDown] {
            Hooks::done(&mut lab, job, task);
        }
        assert_eq!(lab.word(job), "pending");
        lab.stage(job);
        assert_eq!(lab.word(job), "staging-in");
    }
}

#[test]
fn a_restart_of_the_controller_follows_the_table() {
    for plugin in BOTH {
        for state in ["staging-in", "staged-in"] {
            let mut lab = lab_of(plugin, |_| ());
            let job = lab.in_state(plugin, state);
            let before = lab.cluster.duty(&Owner::Buffer(job)).cloned();
            restart(&mut lab);
            assert!(lab.word(job) == "teardown" && lab.hurries(job), "{state}");
            assert_ne!(lab.cluster.duty(&Owner::Buffer(job)).cloned(), before);
            Hooks::done(&mut lab, job, Task::TearDown);
            assert_eq!((lab.word(job), lab.job(job).reason), ("pending", Some(Reason::BeginTime)));
            let later = lab.secs + 61;
            lab.at(later);
            lab.stage(job);
            assert_eq!(lab.word(job), "staging-in");
        }
        for (state, after, task) in [
            ("pending", "pending", None),
            ("pre-run", "pre-run", Some(Task::PreRun)),
            ("running", "running", None),
            ("post-run", "post-run", Some(Task::PostRun)),
            ("staging-out", "post-run", Some(Task::PostRun)),
            ("teardown", "teardown", Some(Task::TearDown)),
            ("complete", "complete", None),
        ] {
            let mut lab = lab_of(plugin, |_| ());
            let job = lab.in_state(plugin, state);
            let used = lab.used();
            restart(&mut lab);
            assert_eq!((lab.word(job), lab.task(job), lab.used()), (after, task, used), "{state}");
            if state == "staging-out" {
                assert_eq!(lab.job(job).state(), JobState::StageOut);
            }
        }
    }
}

#[test]
fn until_the_plugin_has_spoken_jobs_wait() {
    let mut lab = Lab::new();
    let burst = BurstBufferConfig { plugin: Plugin::Lua, ..Default::default() };
    let config = model::Config { burst_buffer: Some(burst), ..config() };
    lab.ok(ROOT, Command::Begin { config: Box::new(config.clone()) });
    let job = lab.submit(request(Plugin::Lua));
    lab.stage(job);
    assert_eq!((lab.word(job), lab.job(job).reason), ("pending", Some(Reason::BurstBufferResources)));
    lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::Lua, pools: pools() });
    lab.stage(job);
    assert_eq!((lab.word(job), lab.used()), ("staging-in", 100), "rounded, though nobody knew the pool then");
    // What the plugin has told outlives a reconfiguration; another type does not come without a restart.
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    assert_eq!(lab.cluster.config().burst_buffer.as_ref().unwrap().pools.len(), 2);
    let none = model::Config { burst_buffer: None, ..super::lab::config() };
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(none.clone()) });
    assert!(lab.cluster.config().burst_buffer.is_some());
    lab.ok(ROOT, Command::Begin { config: Box::new(none) });
    assert!(lab.cluster.config().burst_buffer.is_none());
}

#[test]
fn a_request_from_before_the_pools_are_known_is_resolved_when_staging_begins() {
    let mut lab = Lab::new();
    let burst =
        BurstBufferConfig { plugin: Plugin::DataWarp, counts: true, enables_persistent: true, ..Default::default() };
    let config = model::Config { burst_buffer: Some(burst), ..config() };
    lab.ok(ROOT, Command::Begin { config: Box::new(config) });
    let text = "#DW jobdw capacity=95 access_mode=striped type=scratch";
    let job = lab.submit(JobSpec { burst_buffer: text.into(), ..batch() });
    let maker = JobSpec { burst_buffer_file: "#BB create_persistent name=data capacity=2MiB".into(), ..batch() };
    let maker = lab.submit(maker);
    let mut told = pools();
    told[0].total_bytes = Some(3 << 20);
    lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::DataWarp, pools: told });
    lab.stage(job);
    assert_eq!((lab.word(job), lab.used()), ("staging-in", 100), "a pool, whole granules, a charge");
    let space = &lab.cluster.buffer(job).unwrap().spaces[0];
    assert_eq!((space.pool.as_str(), space.bytes), ("p1", 100));
    lab.stage(maker);
    let made = lab.cluster.persistent("data").expect("it is being made");
    assert_eq!((made.pool.as_str(), made.bytes), ("p1", 2_097_160));
    // What does not fit waits.
    let third = lab.submit(JobSpec { burst_buffer: "#DW jobdw capacity=2MiB".into(), ..batch() });
    lab.stage(third);
    assert_eq!(lab.word(third), "pending");
}

#[test]
fn space_that_others_use_is_not_given_out() {
    let mut lab = lab_of(Plugin::Lua, |_| ());
    let mut told = pools();
    told[0].unfree_bytes = 950;
    lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::Lua, pools: told.clone() });
    let job = lab.submit(request(Plugin::Lua));
    lab.stage(job);
    assert_eq!(lab.word(job), "pending", "100 of 50");
    told[0].unfree_bytes = 900;
    lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::Lua, pools: told });
    lab.stage(job);
    assert_eq!(lab.word(job), "staging-in", "exactly what is left");
}

#[test]
fn persistent_buffers_of_datawarp() {
    let mut lab = lab_of(Plugin::DataWarp, |_| ());
    let create = |name: &str| JobSpec {
        burst_buffer_file: format!(
            "#BB create_persistent name={name} capacity=40 pool=p1 access=striped type=scratch\n"
        ),
        size: model::spec::Size { max_nodes: Some(0), ..batch().size },
        ..batch()
    };
    let job = lab.submit(create("data"));
    lab.stage(job);
    assert_eq!((lab.word(job), lab.used()), ("allocating", 40));
    let owner = Owner::Persistent("data".into());
    let answer = |lab: &mut Lab, owner: &Owner, result: StageResult| {
        let duty = lab.cluster.duty(owner).expect("a duty").clone();
        let results = vec![PlaceResult { access: Access::Shared, node: NodeName::default(), result }];
        lab.ok(ROOT, Command::Staged { duty, results });
    };
    answer(&mut lab, &owner, StageResult::Done(Moved::default()));
    assert_eq!((lab.job(job).state(), lab.job(job).buffer), (JobState::Completed, None), "it runs nothing");
    assert_eq!(lab.used(), 40);
    // Creation is refused: the charge comes back, the job is held with the raw words.
    let job = lab.submit(create("more"));
    lab.stage(job);
    let failure = StageFailure { why: "quota exceeded".into(), ..Default::default() };
    answer(&mut lab, &Owner::Persistent("more".into()), StageResult::Failed(failure));
    assert_eq!((lab.job(job).reason_text.as_str(), lab.used()), ("quota exceeded", 40));
    // Somebody else's name, somebody else's buffer.
    let job = lab.submit(JobSpec { uid: 1001, ..create("data") });
    lab.stage(job);
    assert_eq!(lab.job(job).reason_text, "Burst buffer create_persistent error");
    let text = "#BB destroy_persistent name=data hurry\n";
    let destroy = JobSpec { burst_buffer_file: text.into(), ..create("x") };
    let job = lab.submit(destroy);
    lab.stage(job);
    assert_eq!((lab.word(job), lab.cluster.duty(&owner).map(|duty| duty.task)), ("deleting", Some(Task::Destroy)));
    answer(&mut lab, &owner, StageResult::Done(Moved::default()));
    assert_eq!((lab.job(job).state(), lab.used()), (JobState::Completed, 0));
    assert_eq!(lab.cluster.buffers().filter(|buffer| buffer.phase == BufferPhase::TearingDown).count(), 0);
}

#[test]
fn what_the_infrastructure_lists_is_taken_over_and_what_it_has_lost_goes() {
    use model::buffer::Session;
    let mut lab = lab_of(Plugin::DataWarp, |_| ());
    let session =
        |token: &str, created| Session { token: token.into(), uid: 1000, bytes: 40, created, ..Default::default() };
    let old = lab.cluster.now();
    let mut clock = 10_000;
    lab.at(clock).ok(ROOT, Command::Tick);
    let sessions = vec![session("data", old), session("77", old), session("new", lab.cluster.now())];
    assert!(state::buffers::sessions::is_news(&lab.cluster, &sessions));
    lab.ok(ROOT, Command::SessionsSeen { sessions: sessions.clone() });
    let names: Vec<String> = lab.cluster.persistent_buffers().map(|buffer| buffer.name.clone()).collect();
    assert_eq!((names, lab.used()), (vec!["data".to_owned()], 40));
    assert!(!state::buffers::sessions::is_news(&lab.cluster, &sessions), "said once");
    // Missed for a moment, then seen again, then gone.
    for (secs, listed, stays) in
        [(0, false, true), (50, false, true), (0, true, true), (0, false, true), (61, false, false)]
    {
        clock += secs;
        lab.at(clock).ok(ROOT, Command::Tick);
        let sessions = if listed { vec![session("data", old)] } else { Vec::new() };
        if state::buffers::sessions::is_news(&lab.cluster, &sessions) {
            lab.ok(ROOT, Command::SessionsSeen { sessions });
        }
        assert_eq!(lab.cluster.persistent("data").is_some(), stays, "{secs} {listed}");
    }
    let emulated = lab_of(Plugin::DataWarp, |burst| burst.emulates_cray = true);
    assert!(!state::buffers::sessions::is_news(&emulated.cluster, &sessions));
}

#[test]
fn swap_is_charged_for_every_node() {
    let mut lab = lab_of(Plugin::DataWarp, |_| ());
    let mut told = pools();
    told[0].total_bytes = Some(1 << 40);
    lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::DataWarp, pools: told });
    let spec = JobSpec { burst_buffer: "swap=2 pool=p1".into(), ..batch() };
    let job = lab.submit(JobSpec { size: model::spec::Size { min_nodes: 3, ..spec.size.clone() }, ..spec });
    lab.stage(job);
    assert_eq!(lab.used(), 3 * (2 << 30) / 10 * 10 + 10);
    assert_eq!(lab.job(job).spec.buffer.as_ref().unwrap().text, "#DW swap 2GiB pool=p1");
}

#[test]
fn space_counts_as_a_resource_where_it_is_asked_for() {
    for counts in [false, true] {
        let mut lab = lab_of(Plugin::DataWarp, |burst| burst.counts = counts);
        let mut told = pools();
        told[0].granularity_bytes = 1 << 30;
        told[0].total_bytes = Some(1 << 40);
        lab.ok(ROOT, Command::PoolsReported { plugin: Plugin::DataWarp, pools: told });
        let job = lab.submit(JobSpec { burst_buffer: "capacity=1GB pool=p1".into(), ..batch() });
        let tres = lab.job(job).asked().tres();
        assert_eq!(tres.contains(",bb/datawarp=1G"), counts, "{tres}");
    }
}

#[test]
fn reserved_space_is_kept_from_others() {
    use model::reservation::{Flag, Members};
    use model::reservation_field::{Field, MembersChange};
    let mut lab = lab_of(Plugin::Lua, |_| ());
    let start = lab.cluster.now();
    let create = |text: &str| Command::CreateReservation {
        name: "r1".into(),
        fields: vec![
            Field::Start(start),
            Field::Duration(Some(model::time::Span::from_secs(3600))),
            Field::Users(MembersChange::To(Members { names: vec!["alice".into()], are_excluded: false })),
            Field::Flags(vec![Flag::AnyNodes]),
            Field::BurstBuffer(text.into()),
        ],
        utc_offset_secs: 0,
    };
    for wrong in ["950", "datawarp:p1:950", "nope:950", "p1:many"] {
        assert!(matches!(lab.apply(ROOT, create(wrong)), Err(Reject::InvalidValue(_))), "{wrong}");
    }
    lab.ok(ROOT, create("lua:p1:950"));
    let other = lab.submit(request(Plugin::Lua));
    lab.stage(other);
    assert_eq!((lab.word(other), lab.job(other).reason), ("pending", Some(Reason::BurstBufferResources)));
    let own = lab.submit(JobSpec { reservations: vec!["r1".into()], user: "alice".into(), ..request(Plugin::Lua) });
    lab.stage(own);
    assert_eq!((lab.word(own), lab.used()), ("staging-in", 100));
    lab.stage(other);
    assert_eq!(lab.word(other), "pending", "850 are still kept, 50 are left");
    lab.ok(ROOT, Command::UpdateReservation { name: "r1".into(), fields: vec![Field::BurstBuffer("p1:100".into())] });
    lab.stage(other);
    assert_eq!(lab.word(other), "staging-in");
}

#[test]
fn a_partition_that_goes_down_is_told_before_the_buffer() {
    let mut lab = lab_of(Plugin::Lua, |_| ());
    let (waiting, staging) = (lab.in_state(Plugin::Lua, "pending"), lab.in_state(Plugin::Lua, "staging-in"));
    let mut config = (**lab.cluster.config()).clone();
    config.partitions[0].state = model::partition::PartitionState::Down;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    for job in [waiting, staging] {
        assert_eq!(lab.job(job).reason, Some(Reason::PartitionDown));
    }
}

#[test]
fn a_plugins_pre_run_goes_on_when_its_nodes_are_taken_back() {
    for plugin in BOTH {
        let mut lab = lab_of(plugin, |_| ());
        let job = lab.in_state(plugin, "pre-run");
        let duty = lab.cluster.duty(&Owner::Buffer(job)).cloned();
        lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
        Lab::done(&mut lab, job, Task::Kill);
        assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "alloc-revoke"));
        assert_eq!(lab.cluster.duty(&Owner::Buffer(job)).cloned(), duty, "the hook is not called off");
        Hooks::done(&mut lab, job, Task::PreRun);
        assert_eq!((lab.word(job), lab.used()), ("staged-in", 100));
        assert!(lab.place(job, None, "n2"));
        assert_eq!((lab.word(job), lab.task(job)), ("pre-run", Some(Task::PreRun)), "and runs for the next");
        Hooks::done(&mut lab, job, Task::PreRun);
        assert_eq!(lab.word(job), "running");
        // Nobody knows how far it came when the controller goes down.
        let mut lab = lab_of(plugin, |_| ());
        let job = lab.in_state(plugin, "pre-run");
        lab.each(ALICE, requeue(job)).unwrap();
        Lab::done(&mut lab, job, Task::Kill);
        assert_eq!(lab.word(job), "alloc-revoke");
        restart(&mut lab);
        assert!(lab.word(job) == "teardown" && lab.hurries(job));
        Hooks::done(&mut lab, job, Task::TearDown);
        assert_eq!((lab.word(job), lab.job(job).reason), ("pending", Some(Reason::BeginTime)));
    }
}
