//! A cluster of which nobody hears anything: no user, no agent, no fault, only time and the leader's plans. Each wait that time
//! ends must end by a deadline of the state; between deadlines every plan is empty; and plans never follow each other for ever.
use model::time::Span;
use model::{Caller, Command, Entry, Plan, Timestamp};
use state::{Cluster, apply};

use crate::World;
use crate::dice::Dice;

/// All that the story's jobs wait for by the clock comes within this time.
const LONG_ENOUGH: Span = Span::from_secs(1800);

/// So many plans in a row may start nothing and still say something new.
const N_PLANS_AT_ONCE: u32 = 6;

/// What one deadline brings may be due at once, too.
const N_TICKS_AT_ONCE: u32 = 5;

pub fn check(world: &World) -> Result<(), String> {
    let mut cluster = world.cluster.clone();
    let mut dice = Dice::new(world.seed);
    commit(&mut cluster, world.at.max(world.cluster.now()), Command::Tick);
    let end = cluster.now() + LONG_ENOUGH;
    let mut n_at_once = 0;
    loop {
        plan_until_quiet(&mut cluster)?;
        let Some(due) = cluster.next_deadline() else {
            let far = cluster.now() + Span::from_secs(86_400);
            return stays_quiet(&cluster, far);
        };
        if due > cluster.now() {
            let until_due = (due - cluster.now()).0;
            stays_quiet(&cluster, Timestamp(cluster.now().0 + dice.below(until_due)))?;
        }
        if due > end {
            return Ok(());
        }
        n_at_once = if due > cluster.now() { 0 } else { n_at_once + 1 };
        if n_at_once > N_TICKS_AT_ONCE {
            let waits = |job: &&std::sync::Arc<model::Job>| job.wakes.contains(&model::Wake::At(due));
            let (job, reservations) = (cluster.jobs().find(waits), cluster.reservations().collect::<Vec<_>>());
            return Err(format!("a tick leaves its deadline: {due:?} of {job:?} or {reservations:?}"));
        }
        let at = due.max(cluster.now());
        commit(&mut cluster, at, Command::Tick);
    }
}

fn commit(cluster: &mut Cluster, at: Timestamp, command: Command) {
    let reply = apply(cluster, &Entry { at, by: Caller::SYSTEM, command }).reply;
    assert!(reply.is_ok(), "the leader's own command is refused: {reply:?}");
}

fn plan_until_quiet(cluster: &mut Cluster) -> Result<(), String> {
    let mut n_without_starts = 0;
    loop {
        let plan = scheduler::plan(cluster);
        if plan == Plan::default() {
            return Ok(());
        }
        n_without_starts += u32::from(plan.starts.is_empty() && plan.stage_ins.is_empty());
        if n_without_starts > N_PLANS_AT_ONCE {
            return Err(format!("one plan follows another: {plan:?}"));
        }
        let now = cluster.now();
        commit(cluster, now, Command::AdoptPlan(plan));
    }
}

/// Between two deadlines another plan would give nothing new. Expected starts may move while others run over their time.
fn stays_quiet(cluster: &Cluster, at: Timestamp) -> Result<(), String> {
    let mut later = cluster.clone();
    commit(&mut later, at, Command::Tick);
    let plan = Plan { look_again: None, expected_starts: Vec::new(), ..scheduler::plan(&later) };
    if plan != Plan::default() {
        let (now, due) = (cluster.now(), cluster.next_deadline());
        let first = plan.starts.first().map(|start| start.job).or(plan.reasons.first().map(|one| one.job));
        let job = first.and_then(|id| cluster.job(id));
        return Err(format!(
            "time alone gives another plan at {at:?}, after {now:?}, before {due:?}: {plan:?}; {job:?}"
        ));
    }
    Ok(())
}
