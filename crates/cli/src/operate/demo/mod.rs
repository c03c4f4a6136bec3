//! `spur demo`: a cluster starts, computes something in parallel, and is gone again; told so that a stranger can follow.
mod data;
mod racks;
mod scripts;
mod stage;
mod still;

use std::time::{Duration, Instant};

use model::request::{JobFilter, JobsPage};
use model::{Job, JobId, JobRef, Outcome, Phase};
use tokio_stream::StreamExt;
use wire::Controller;

use self::scripts::{ANSWER, CPUS, NODES, SLICE, SLICES, SUM, SUM_NODES};
use self::stage::{Bar, Stage, Tail};
use super::{Call, interrupt, options};
use crate::context::block_on;

/// How often files are looked at for new output; the queue itself is watched, not polled.
const LOOK_EVERY: Duration = Duration::from_millis(40);
const PATIENCE: Duration = Duration::from_secs(90);

pub fn run(call: &Call) -> Result<i32, String> {
    options(&[], call.arguments)?;
    interrupt::note_signals();
    let mut stage = Stage::set()?;
    let told = tell(&mut stage, call.command_names);
    let cleared = stage.clear();
    match (interrupt::requested(), told, cleared) {
        (Some(signal), _, cleared) => {
            cleared?;
            eprintln!("spur demo: stopped; everything it had started is gone again");
            Ok(128 + signal)
        }
        (None, Err(why), cleared) => {
            cleared?;
            Err(why)
        }
        (None, Ok(_), Err(why)) => Err(why),
        (None, Ok(story), Ok(())) => {
            end(&story);
            Ok(0)
        }
    }
}

/// What there is to tell in the end.
struct Story {
    up: Duration,
    jobs: Duration,
}

fn tell(stage: &mut Stage, names: &[&str]) -> Result<Story, String> {
    say!("Spur demo: a cluster on this machine computes pi, and is gone again in a few seconds.\n");
    say!("1. A controller and {NODES} nodes in two racks, with a CPU each, all on this machine");
    stage.say_command(&format!("spur up --nodes {NODES} --cpus {CPUS} --dir {}", stage.dir().display()));
    let began = Instant::now();
    stage.raise(NODES, CPUS, names)?;
    let up = began.elapsed();
    say!("   idle after {:.2} s", up.as_secs_f64());
    stage.show("sinfo", &[])?;

    say!("\n2. An array of {SLICES} tasks, and a job on {SUM_NODES} nodes that waits for them (afterok)");
    stage.write("slice.sh", SLICE)?;
    stage.write("sum.sh", SUM)?;
    let began = Instant::now();
    let array = stage.submit(&["slice.sh"])?;
    let sum = stage.submit(&[&format!("--dependency=afterok:{array}"), "sum.sh"])?;
    block_on(follow(stage, JobId(array), JobId(sum)))?;
    let jobs = began.elapsed();
    check_answer(stage)?;

    say!("\n3. A job stands still, and its clock with it");
    still::tell(stage)?;

    say!("\n4. Two racks, and where a job of four nodes lands");
    racks::tell(stage)?;

    say!("\n5. A job with data: staged into a buffer on each of its {} nodes, and its results back", data::NODES);
    data::tell(stage)?;
    Ok(Story { up, jobs })
}

/// Shows the queue once all is going, then the progress of the array, then the output of the last job as it is written.
async fn follow(stage: &Stage, array: JobId, sum: JobId) -> Result<(), String> {
    let mut controller = Controller::connect(&stage.socket()?).await.map_err(|error| error.to_string())?;
    let filter =
        JobFilter { jobs: vec![JobRef::from(array), JobRef::from(sum)], with_finished: true, ..Default::default() };
    let mut changes = std::pin::pin!(controller.watch_jobs(&filter).await.map_err(|error| error.to_string())?);
    let mut tick = tokio::time::interval(LOOK_EVERY);
    let mut tail = Tail::new(stage.work("sum.out"));
    let mut bar = Bar::new("   ", "slices", SLICES);
    let mut jobs = Jobs::default();
    let mut has_queue = false;
    let give_up = Instant::now() + PATIENCE;
    loop {
        tokio::select! {
            page = changes.next() => match page {
                Some(page) => jobs.merge(page.map_err(|error| error.to_string())?),
                None => return Err("the controller went away".into()),
            },
            _ = tick.tick() => {}
        }
        if interrupt::requested().is_some() {
            return Err("interrupted".into());
        }
        if Instant::now() > give_up {
            return Err(format!("the jobs did not end within {} s", PATIENCE.as_secs()));
        }
        let (n_done, n_running) = jobs.of_array(array, sum);
        if !has_queue && n_running > 0 {
            stage.show("squeue", &[])?;
            say!("");
            has_queue = true;
        }
        if has_queue {
            bar.show(n_done, n_running);
        }
        let new_lines = tail.lines();
        if !new_lines.is_empty() {
            bar.end();
        }
        new_lines.iter().for_each(|line| say!("   | {line}"));
        match jobs.end_of(sum) {
            None => {}
            Some(Outcome::Completed) => {
                bar.end();
                tail.lines().iter().for_each(|line| say!("   | {line}"));
                return Ok(());
            }
            Some(outcome) => return Err(format!("job {sum} ended as {outcome:?}\n{}", stage.outputs())),
        }
    }
}

/// The jobs as last heard of.
#[derive(Default)]
struct Jobs(Vec<Job>);

impl Jobs {
    fn merge(&mut self, page: JobsPage) {
        for job in page.jobs {
            match self.0.iter_mut().find(|known| known.id == job.id) {
                Some(known) => *known = job,
                None => self.0.push(job),
            }
        }
    }

    /// How many tasks are over, and how many run.
    fn of_array(&self, array: JobId, sum: JobId) -> (u32, u32) {
        let is_task =
            |job: &&Job| job.id != sum && job.waiting_tasks.is_none() && (job.id == array || job.array.is_some());
        let tasks: Vec<&Job> = self.0.iter().filter(is_task).collect();
        let n_done = tasks.iter().filter(|job| job.outcome.is_some() && !job.holds_nodes()).count() as u32;
        let n_running = tasks.iter().filter(|job| job.phase == Phase::Running).count() as u32;
        (n_done, n_running)
    }

    fn end_of(&self, id: JobId) -> Option<Outcome> {
        let job = self.0.iter().find(|job| job.id == id)?;
        job.outcome.filter(|_| job.is_over())
    }
}

fn check_answer(stage: &Stage) -> Result<(), String> {
    let text = std::fs::read_to_string(stage.work("sum.out")).unwrap_or_default();
    match text.lines().last() {
        Some(line) if line.starts_with(ANSWER) => Ok(()),
        other => Err(format!("the jobs ended, but the answer is {other:?}\n{}", stage.outputs())),
    }
}

fn end(story: &Story) {
    say!("\n6. Everything is stopped and removed again.");
    say!(
        "   Cluster up in {:.2} s; {} batch jobs and a {SUM_NODES}-node step, each submission on disk before it was acknowledged, in {:.2} s.",
        story.up.as_secs_f64(),
        SLICES + 1,
        story.jobs.as_secs_f64()
    );
    say!(
        "\nYour own cluster:   spur up --nodes 4 && eval \"$(spur env)\"   then sbatch, srun, squeue as you know them."
    );
}
