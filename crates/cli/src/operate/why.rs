//! `spur why JOB`: what holds a job, when it will start, and what would start it sooner.
use model::Timestamp;
use model::why::Why;

use wire::{CallError, Controller};

use super::Call;
use super::folder::Folder;
use crate::getopt::{self, Flag, Operands, Value, flag};
use crate::zone::Clock;
use crate::{context, job_ids, trouble};

const FLAGS: &[Flag] = &[flag("dir", None, Value::Required), flag("json", None, Value::None)];

pub(super) fn run(call: &Call) -> Result<i32, String> {
    let parsed = getopt::parse(FLAGS, Operands::Mixed, call.arguments)?;
    let [word] = &parsed.operands[..] else { return Err("name one job: spur why JOB".into()) };
    let named = job_ids::parse_job(word).ok_or_else(|| format!("{word} is no job id"))?;
    let socket = match super::directory(&parsed) {
        Some(dir) => {
            let conf = Folder::to_find(Some(&dir))?.conf();
            config::load(&conf).map_err(|error| error.to_string())?.controller.sockets()
        }
        None => context::cluster()?.controller_socket,
    };
    let answer = context::block_on(async {
        let mut controller = Controller::connect(&socket).await?;
        let why = controller.why(&named).await?;
        Ok::<_, CallError>((why, controller.configuration().await?.now))
    });
    let (why, now) = answer.map_err(|error| trouble::text(&error))?;
    let Some(why) = why else { return Err(format!("there is no job {word}")) };
    match parsed.has("json") {
        true => say!("{}", serde_json::to_string_pretty(&why).map_err(|error| error.to_string())?),
        false => say!("{}", render(&why, &Clock::local(None, now)).trim_end()),
    }
    Ok(0)
}

/// What a person reads.
pub fn render(why: &Why, clock: &Clock) -> String {
    let mut text = format!("job {} ({}) is {}", why.job, why.name, why.state);
    if let Some(gate) = why.gate {
        text.push_str(&format!(": {gate}"));
    }
    if !why.detail.is_empty() {
        text.push_str(&format!(" ({})", why.detail));
    }
    text.push('\n');
    if why.state != "PENDING" {
        return text;
    }
    let mut line = |words: String| text.push_str(&format!("  {words}\n"));
    line(format!("needs {}", why.needs));
    if why.n_nodes_fitting > 0 || !why.held.is_empty() {
        line(format!("{} of {} fitting nodes are free for it", why.n_nodes_free, why.n_nodes_fitting));
    }
    for held in &why.held {
        let until = held.until.map_or("no known time".into(), |at| clock.show(at));
        line(format!("{} is held by job {} until {until}", held.node, held.by));
    }
    if why.n_ahead > 0 {
        let first: Vec<String> = why.ahead.iter().map(|job| job.to_string()).collect();
        let more = if why.n_ahead as usize > first.len() { ", …" } else { "" };
        line(format!("{} ahead of it: {}{more}", why.n_ahead, first.join(", ")));
    }
    let when = |at: Timestamp| if at <= clock.now() { "now".to_string() } else { clock.show(at) };
    match why.expected_start {
        Some(at) if why.expected_nodes.is_empty() => line(format!("will not start before {}", when(at))),
        Some(at) => line(format!("expected to start {} on {}", when(at), why.expected_nodes)),
        None => line("nobody can tell when it will start".into()),
    }
    for hint in &why.hints {
        let at = hint.starts.map_or(String::new(), when);
        line(format!("with {} it would start {at}: scontrol update job {} {}", hint.change, why.job, hint.change));
    }
    text
}
