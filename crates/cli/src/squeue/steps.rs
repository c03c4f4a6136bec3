//! The view of steps: `squeue -s`.
use model::amount::Amount;
use model::duration;
use model::spec::TimeLimit;
use model::step::{AskedWords, StepPhase};
use model::{Job, Phase, Step, StepId, hostlist};

use super::columns::write_limit;
use crate::job_view::{JobView, Scene, put};
use crate::render::{Column, Cut, Key, view};

view! {
    /// The view of steps.
    Steps of StepView
}

/// One step; the batch script is one too, though nobody asked for it as such.
#[derive(Clone, Copy)]
pub struct StepView<'a> {
    pub job: JobView<'a>,
    pub id: StepId,
    /// None for the batch script.
    pub step: Option<&'a Step>,
}

/// The live steps of the jobs, in order.
pub fn live_steps<'a>(jobs: &'a [Job], steps: &'a [Step], scene: &'a Scene<'a>) -> Vec<StepView<'a>> {
    let mut views = Vec::new();
    for job in jobs {
        let own = || steps.iter().filter(|step| step.job == job.id && step.attempt == job.attempt);
        let view = JobView::new(job, scene);
        let live = own().filter(|step| step.is_live());
        views.extend(live.map(|step| StepView { job: view, id: step.id, step: Some(step) }));
        let has_script = job.runs_script() && matches!(job.phase, Phase::Running | Phase::Suspended);
        if has_script && !own().any(|step| step.id == StepId::Batch) {
            views.push(StepView { job: view, id: StepId::Batch, step: None });
        }
    }
    views.sort_by_key(|view| (view.job.job.id, view.id));
    views
}

pub static COLUMNS: &[Column<Steps>] = &[
    column('i', "stepid", "STEPID", |view, out| out.push_str(&view.full_id()))
        .sorted_by(|view| Key::Number(i64::from(view.job.job.id.0))),
    column('j', "stepname", "NAME", |view, out| out.push_str(view.name())),
    column('P', "partition", "PARTITION", |view, out| out.push_str(&view.job.job.partition)),
    column('u', "username", "USER", |view, out| out.push_str(&view.job.spec().user)),
    column('U', "userid", "UID", |view, out| put(out, view.job.spec().uid)),
    column('M', "timeused", "TIME", |view, out| out.push_str(&duration::show_short(view.run_secs())))
        .sorted_by(|view| Key::Number(view.run_secs() as i64))
        .cutting(Cut::Titles),
    column('N', "nodes", "NODELIST", |view, out| out.push_str(&view.nodes())).cutting(Cut::Nothing),
    column('A', "numtasks", "TASKS", |view, out| put(out, view.step.map_or(1, |step| step.n_tasks))),
    column('\0', "numcpus", "NUM_CPUS", |view, out| put(out, view.step.map_or(0, |_| view.n_cpus())))
        .sorted_by(|view| Key::Number(view.step.map_or(0, |_| i64::from(view.n_cpus())))),
    column('S', "starttime", "START_TIME", |view, out| {
        let started = view.step.map_or(view.job.job.started, |step| step.started);
        view.job.scene.clock.write_or(started, "N/A", out)
    }),
    column('l', "timelimit", "TIME_LIMIT", |view, out| {
        let limit = view.step.and_then(|step| step.spec.time_limit).unwrap_or(TimeLimit::Unlimited);
        write_limit(limit, out);
    }),
    column('b', "gres", "TRES_PER_JOB", |view, out| view.asked(out, "(null)", |words| &words.per_node)),
    column('\0', "stepstate", "STATE", |view, out| out.push_str(view.state())),
    column('\0', "jobid", "JOB_ID", |view, out| put(out, view.job.job.id)),
    column('\0', "arrayjobid", "ARRAY_JOB_ID", |view, out| {
        put(out, view.job.job.array_id().unwrap_or(view.job.job.id))
    }),
    column('\0', "arraytaskid", "ARRAY_TASK_ID", |view, out| view.job.write_task(out)),
    column('\0', "cluster", "CLUSTER", |view, out| out.push_str(&view.job.scene.config.cluster_name)),
    column('\0', "container", "CONTAINER", |_, out| out.push_str("(null)")),
    column('\0', "tres-per-step", "TRES_PER_STEP", |view, out| view.asked(out, "N/A", |words| &words.per_step)),
];

impl StepView<'_> {
    /// What it said of its devices.
    fn asked(&self, out: &mut String, nothing: &str, words: impl Fn(&AskedWords) -> &String) {
        let said = self.step.map(|step| words(&step.spec.asked)).filter(|said| !said.is_empty());
        out.push_str(said.map_or(nothing, |said| said));
    }

    /// `12_3.0`, `12.batch`
    pub fn full_id(&self) -> String {
        let mut id = String::new();
        self.job.write_id(&mut id);
        format!("{id}.{}", self.id)
    }

    pub fn name(&self) -> &str {
        match self.step {
            Some(step) => &step.spec.name,
            None => "batch",
        }
    }

    pub fn nodes(&self) -> String {
        match self.step {
            Some(step) => hostlist::compress(step.shares.iter().map(|share| &share.node)),
            None => self.job.job.script_node().map(|node| node.to_string()).unwrap_or_default(),
        }
    }

    pub fn n_nodes(&self) -> usize {
        self.step.map_or(1, |step| step.shares.len())
    }

    pub fn n_cpus(&self) -> u32 {
        let own = |step: &Step| Amount::of_step(step).n_cpus;
        self.step.map_or_else(|| self.job.job.allocation.nodes.first().map_or(0, |share| share.cpus.len()), own)
    }

    pub fn run_secs(&self) -> u64 {
        let Some(step) = self.step else { return self.job.run_secs() };
        let Some(started) = step.started else { return 0 };
        self.job.job.ran_between(started, step.ended.unwrap_or(self.job.now())).secs()
    }

    pub fn state(&self) -> &'static str {
        match self.step.map(|step| step.phase) {
            None => self.job.job.state().name(),
            // Also while its job is suspended.
            Some(StepPhase::Starting | StepPhase::Running) => "RUNNING",
            Some(StepPhase::Ending) => "COMPLETING",
            Some(StepPhase::Done) => "COMPLETED",
        }
    }
}
