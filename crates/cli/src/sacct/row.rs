//! The lines a run gives: the job itself, then its steps.
use model::accounts::Accounts;
use model::config::Config;
use model::history::{JobRecord, RunHistory, StepChoice, StepRecord};
use model::job_state::JobState;
use model::time::Span;
use model::{StepId, Timestamp};

use crate::job_view::put;
use crate::zone::Clock;

use super::options::Options;

/// What all lines share.
pub struct Scene<'a> {
    pub clock: &'a Clock,
    pub config: &'a Config,
    pub options: &'a Options,
    /// As they are now; empty where nothing of them is shown.
    pub accounts: &'a Accounts,
}

/// The number of the association that a job belongs to, 0 for none.
pub fn association(accounts: &Accounts, job: &JobRecord) -> u32 {
    accounts.association(&job.account, &job.user, &job.partition).map_or(0, |one| one.id)
}

/// One line.
pub struct Row<'a> {
    pub run: &'a RunHistory,
    pub part: Part<'a>,
    pub scene: &'a Scene<'a>,
}

#[derive(Clone, Copy)]
pub enum Part<'a> {
    Job,
    Step(&'a StepRecord),
    /// What users start on the nodes themselves.
    Extern,
}

/// Gives every line of the run that was asked for.
pub fn rows<'a>(run: &'a RunHistory, scene: &'a Scene<'a>, mut give: impl FnMut(&Row<'a>)) {
    let query = &scene.options.query;
    let choices = query.jobs.iter().filter(|choice| is_meant(choice, &run.job));
    let chosen: Vec<Option<StepChoice>> = choices.map(|choice| choice.step).collect();
    let whole = chosen.is_empty() || chosen.contains(&None);
    let wants = |step: StepChoice| whole || chosen.contains(&Some(step));
    let mut give_part = |part| give(&Row { run, part, scene });
    if whole {
        give_part(Part::Job);
    }
    if !query.with_steps {
        return;
    }
    let batch = run.steps.iter().filter(|step| step.step == StepId::Batch);
    let others = run.steps.iter().filter(|step| step.step != StepId::Batch);
    batch.filter(|step| wants(StepChoice::Step(step.step))).for_each(|step| give_part(Part::Step(step)));
    if run.job.has_extern && wants(StepChoice::Extern) {
        give_part(Part::Extern);
    }
    others.filter(|step| wants(StepChoice::Step(step.step))).for_each(|step| give_part(Part::Step(step)));
}

/// The job itself.
pub fn of_job<'a>(run: &'a RunHistory, scene: &'a Scene<'a>) -> Row<'a> {
    Row { run, part: Part::Job, scene }
}

fn is_meant(choice: &model::history::JobChoice, job: &JobRecord) -> bool {
    let groups = [Some(job.job), job.array, job.het_job];
    groups.contains(&Some(choice.job))
        && choice.tasks.as_ref().is_none_or(|tasks| match (job.task, &job.waiting) {
            (Some(task), _) => tasks.contains(task),
            (None, Some(waiting)) => tasks.iter().any(|task| waiting.contains(task)),
            (None, None) => false,
        })
}

/// `12`, `12_3`, `12_[0-7%4]`, `12+1`
pub fn job_id(job: &JobRecord) -> String {
    match (job.array, job.task, &job.waiting) {
        (Some(array), Some(task), _) => format!("{array}_{task}"),
        (Some(array), None, Some(waiting)) => {
            let limit = job.waiting_limit.map(|limit| format!("%{limit}")).unwrap_or_default();
            format!("{array}_[{}{limit}]", waiting.show_within(crate::job_view::TASKS_WIDTH))
        }
        _ => match job.het_job {
            Some(leader) => format!("{leader}+{}", job.het_offset),
            None => job.job.to_string(),
        },
    }
}

impl<'a> Row<'a> {
    pub fn job(&self) -> &'a JobRecord {
        &self.run.job
    }

    pub fn step(&self) -> Option<&'a StepRecord> {
        match self.part {
            Part::Step(step) => Some(step),
            Part::Job | Part::Extern => None,
        }
    }

    pub fn is_job(&self) -> bool {
        matches!(self.part, Part::Job)
    }

    /// The text for jobs; steps show nothing there.
    pub fn of_job(&self, text: &str) -> String {
        if self.is_job() { text.to_string() } else { String::new() }
    }

    /// With the step's part after the job's own.
    pub fn id(&self, of_job: &str) -> String {
        match self.part {
            Part::Job => of_job.to_string(),
            Part::Step(step) => format!("{of_job}.{}", step.step),
            Part::Extern => format!("{of_job}.extern"),
        }
    }

    pub fn name(&self) -> &'a str {
        match self.part {
            Part::Job => &self.job().name,
            Part::Step(step) => &step.name,
            Part::Extern => "extern",
        }
    }

    pub fn started(&self) -> Option<Timestamp> {
        let started = match self.part {
            Part::Job => self.job().started,
            Part::Step(step) => step.started,
            Part::Extern => self.job().started,
        };
        self.truncated(started)
    }

    pub fn ended(&self) -> Option<Timestamp> {
        let ended = match self.part {
            Part::Job | Part::Extern => self.job().ended,
            Part::Step(step) => step.ended,
        };
        let query = &self.scene.options.query;
        match (self.scene.options.truncates, query.before) {
            (true, Some(before)) if ended.is_none_or(|ended| ended > before) && self.started().is_some() => {
                Some(before)
            }
            _ => ended,
        }
    }

    fn truncated(&self, moment: Option<Timestamp>) -> Option<Timestamp> {
        match (self.scene.options.truncates, self.scene.options.query.after) {
            (true, Some(after)) => moment.map(|moment| moment.max(after)),
            _ => moment,
        }
    }

    /// Whole seconds it ran, without suspensions: as far as the times that are shown lie apart.
    pub fn elapsed_secs(&self) -> u64 {
        let Some(started) = self.started() else { return 0 };
        let job = self.job();
        let until = match (self.ended(), job.suspended_since) {
            (Some(ended), _) => ended,
            (None, Some(since)) => since,
            (None, None) => self.scene.clock.now(),
        };
        let closed = match job.pauses.is_empty() {
            // What lies after the end (it was ended while suspended) took nothing of its time.
            false => self.pauses_within(started, until),
            true if job.suspended_since.is_some() => Span(0),
            true => self.closed_suspension(),
        };
        until.secs().saturating_sub(started.secs()).saturating_sub(closed.secs())
    }

    fn closed_suspension(&self) -> Span {
        match self.part {
            Part::Job | Part::Extern => self.job().suspended,
            Part::Step(step) => step.suspended,
        }
    }

    /// How long the job was suspended between two moments, as far as those suspensions are over.
    fn pauses_within(&self, from: Timestamp, until: Timestamp) -> Span {
        let within = self.job().pauses.iter().map(|pause| pause.until.min(until) - pause.from.max(from));
        within.fold(Span(0), |sum, one| sum + one)
    }

    /// With the suspension that lasts. All of it counts for a job; for a step, and where times are cut (`-T`), what lies within.
    pub fn suspended_secs(&self) -> u64 {
        let is_part = matches!(self.part, Part::Step(_)) || self.scene.options.truncates;
        if let (true, false, Some(from)) = (is_part, self.job().pauses.is_empty(), self.started()) {
            let until = self.ended().unwrap_or(self.scene.clock.now());
            let since = self.job().suspended_since.map_or(until, |since| since.max(from));
            return (self.pauses_within(from, until) + (until - since)).secs();
        }
        let open = match (self.job().suspended_since, self.job().ended) {
            (Some(since), None) => self.scene.clock.now() - since,
            _ => Span(0),
        };
        (self.closed_suspension() + open).secs()
    }

    pub fn state(&self) -> JobState {
        let word = match self.part {
            Part::Job => &self.job().state,
            Part::Step(step) => &step.state,
            Part::Extern => return self.extern_state(),
        };
        match word.parse().unwrap_or(JobState::Completed) {
            // A suspension is written down once, for the job.
            JobState::Running if self.job().suspended_since.is_some() => JobState::Suspended,
            state => state,
        }
    }

    fn extern_state(&self) -> JobState {
        match self.job().state.parse() {
            Ok(JobState::Running) => JobState::Running,
            Ok(JobState::Suspended) => JobState::Suspended,
            Ok(JobState::NodeFail) => JobState::NodeFail,
            _ => JobState::Completed,
        }
    }

    /// `CANCELLED by 1000`
    pub fn state_text(&self) -> String {
        let by = match self.part {
            Part::Job => self.job().cancelled_by,
            Part::Step(step) => step.cancelled_by,
            Part::Extern => None,
        };
        match (self.state(), by) {
            (JobState::Cancelled, Some(uid)) => format!("CANCELLED by {uid}"),
            (state, _) => state.name().to_string(),
        }
    }

    /// Asked for, while it has none.
    pub fn n_cpus(&self) -> u32 {
        match self.held().n_cpus {
            0 => self.job().asked.n_cpus,
            n_cpus => n_cpus,
        }
    }

    pub fn held(&self) -> &'a model::amount::Amount {
        match self.part {
            Part::Job | Part::Extern => &self.job().held,
            Part::Step(step) => &step.held,
        }
    }

    pub fn nodes(&self) -> &'a str {
        match self.part {
            Part::Job | Part::Extern if self.job().nodes.is_empty() => "None assigned",
            Part::Job | Part::Extern => &self.job().nodes,
            Part::Step(step) => &step.nodes,
        }
    }

    pub fn time(&self, moment: Option<Timestamp>) -> String {
        let mut text = String::new();
        self.scene.clock.write_or(moment, "Unknown", &mut text);
        text
    }
}

pub fn number(value: impl std::fmt::Display) -> String {
    let mut text = String::new();
    put(&mut text, value);
    text
}
