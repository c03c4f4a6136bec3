//! `sattach`: shows what a running step printed last and prints from now on, and sends it what is typed.
use std::collections::BTreeMap;

use model::attach::{Stream, ToStep};
use model::{Job, JobId, Step, StepId, hostlist};
use tokio::sync::mpsc;

use crate::context::block_on;
use crate::getopt::{Flag, Operands, Parsed, Value, flag, parse};
use crate::live;
use crate::output::print;
use crate::srun::connection::{Connection, News};
use crate::srun::input;
use crate::srun::output::{self, Lines, Piece, Sink};
use crate::srun::terminal;
use crate::trouble::{self, Trouble};
use crate::version;

pub const FLAGS: &[Flag] = &[
    flag("debugger-test", None, Value::None),
    flag("error-filter", None, Value::Required),
    flag("help", Some('h'), Value::None),
    flag("input-filter", None, Value::Required),
    flag("label", Some('l'), Value::None),
    flag("layout", None, Value::None),
    flag("output-filter", None, Value::Required),
    flag("pty", None, Value::None),
    flag("quiet", Some('Q'), Value::None),
    flag("usage", Some('u'), Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
Usage: sattach [options] <jobid.stepid>
      --input-filter=taskid   input goes to this task only
      --output-filter=taskid  only this task's stdout
      --error-filter=taskid   only this task's stderr
  -l, --label                 the task's number before each line
      --layout                show where the tasks are, and end
      --debugger-test         tell the tasks' process ids, and end
      --pty                   for a step with a terminal of its own: what is
                              typed goes there as it is
  -Q, --quiet
  -v, --verbose
  -V, --version
  -h, --help
";
/// Pieces of output on their way through the filters.
const QUEUE: usize = 64;

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("sattach: {problem}\nTry \"sattach --help\" for more information");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") { HELP } else { "Usage: sattach [options] <jobid.stepid>\n" });
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    let filters = match Filters::read(&parsed) {
        Ok(filters) => filters,
        Err(why) => return fail(&why),
    };
    let is_filtered = ["input-filter", "output-filter", "error-filter"].iter().any(|name| parsed.has(name));
    if parsed.has("pty") && is_filtered {
        return fail("don't specify both --pty and I/O filtering");
    }
    let [text] = &parsed.operands[..] else {
        println!("Usage: sattach [options] <jobid.stepid>");
        return fail("too many parameters");
    };
    let Some((job, step)) = place(text) else {
        println!("Usage: sattach [options] <jobid.stepid>");
        return fail("Failed to parse stepid from command line options");
    };
    if parsed.has("verbose") {
        let n_times = parsed.options.iter().filter(|(name, _)| *name == "verbose").count();
        eprintln!("sattach: defined options for program `sattach'");
        eprintln!("sattach: ----------------- ---------------------");
        eprintln!("sattach: job ID         : {job}\nsattach: step ID        : {step}");
        eprintln!("sattach: uid            : {}\nsattach: verbose        : {n_times}", crate::users::own_uid());
    }
    let outcome = block_on(async {
        let (cluster, mut controller) = trouble::connect().await?;
        let found = live::job(&mut controller, job).await?;
        let found = found.and_then(|(job, steps)| Some((job, steps.into_iter().find(|known| known.id == step)?)));
        let Some((job, step)) = found else {
            return Err(Trouble::Call("Could not get job step info: Invalid job id specified".into()));
        };
        if parsed.has("layout") {
            print(&layout(&job, &step));
            return Ok(0);
        }
        if parsed.has("debugger-test") {
            tell_processes(&cluster, &step).await;
            return Ok(0);
        }
        if !step.is_live() {
            return Err(Trouble::Call("Job step has already completed".into()));
        }
        let _raw = if parsed.has("pty") { terminal::RawTerminal::enter() } else { None };
        Ok(attach(&cluster, &step, &filters, parsed.has("label")).await)
    });
    match outcome {
        Ok(code) => code,
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => fail(&text),
    }
}

#[derive(Clone, Copy, Default)]
struct Filters {
    input: Option<u32>,
    output: Option<u32>,
    error: Option<u32>,
}

impl Filters {
    fn read(parsed: &Parsed) -> Result<Self, String> {
        let one = |name: &str| match parsed.value(name) {
            None | Some("all") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| format!("Invalid --{name} argument: {text}")),
        };
        Ok(Filters { input: one("input-filter")?, output: one("output-filter")?, error: one("error-filter")? })
    }

    fn passes(&self, piece: &Piece) -> bool {
        let only = match piece.stream {
            Stream::Stdout => self.output,
            Stream::Stderr => self.error,
        };
        only.is_none_or(|rank| rank == piece.rank)
    }
}

fn place(text: &str) -> Option<(JobId, StepId)> {
    let (job, step) = text.split_once('.')?;
    Some((job.parse().ok()?, StepId::Number(step.parse().ok()?)))
}

fn layout(job: &Job, step: &Step) -> String {
    let names: Vec<&str> = step.shares.iter().map(|share| share.node.as_str()).collect();
    let list = hostlist::compress(names.iter().copied());
    let mut text = format!("Job step layout:\n\t{} tasks, {} nodes ({list})\n\n", step.n_tasks, step.shares.len());
    for (index, (share, ranks)) in step.shares.iter().zip(step.ranks()).enumerate() {
        let (n_tasks, ranks) = (ranks.len(), ranks.iter().map(|rank| format!("{rank} ")).collect::<String>());
        text.push_str(&format!("\tNode {index} ({}), {n_tasks} task(s): {ranks}\n", share.node));
    }
    debug_assert_eq!(job.id, step.job);
    text
}

/// Where a debugger would find each task.
async fn tell_processes(cluster: &config::Client, step: &Step) {
    let mut tasks: BTreeMap<u32, (&str, u32)> = BTreeMap::new();
    for share in &step.shares {
        let node = share.node.as_str();
        let runs = live::runs_on(cluster, node, Some(step.job)).await.unwrap_or_default();
        for process in runs.iter().filter(|run| run.step == step.id).flat_map(|run| &run.processes) {
            if let Some((_, rank)) = process.task {
                tasks.insert(rank, (node, process.pid));
            }
        }
    }
    for (rank, (node, pid)) in tasks {
        let command = step.spec.command(rank).unwrap_or_default();
        let program = command.first().map_or("", String::as_str);
        eprintln!("sattach: task:{rank}, host:{node}, pid:{pid}, executable:{program}");
    }
}

async fn attach(cluster: &config::Client, step: &Step, filters: &Filters, labels: bool) -> i32 {
    let writer = output::start(Lines::new(step.n_tasks, labels, false), Sink::Stdout, Some(Sink::Stderr));
    let (pieces, mut unfiltered) = mpsc::channel::<Piece>(QUEUE);
    let (to_writer, filters_own) = (writer.pieces, *filters);
    let filtering = tokio::spawn(async move {
        while let Some(piece) = unfiltered.recv().await {
            if filters_own.passes(&piece) && to_writer.send(piece).await.is_err() {
                return;
            }
        }
    });
    let (news_in, mut news) = mpsc::unbounded_channel();
    let mut nodes = Vec::new();
    for (node, share) in step.shares.iter().enumerate() {
        let connection = Connection {
            way: live::way(cluster, share.node.as_str()),
            open: ToStep::Observe { job: step.job, attempt: step.attempt, step: step.id },
            standing: Default::default(),
            node,
            output: pieces.clone(),
            news: news_in.clone(),
        };
        nodes.push(connection.start());
    }
    drop(pieces);
    let (targets, rank) = (nodes.iter().map(|(to, _)| to.clone()).collect::<Vec<_>>(), filters.input);
    let typing = tokio::spawn(async move {
        let mut typed = input::start(input::Source::Stdin);
        while let Some(data) = typed.recv().await {
            for to in &targets {
                let _ = to.send(ToStep::Input { rank, data: data.clone() }).await;
            }
        }
    });
    let (mut n_left, mut code) = (nodes.len(), 0);
    while n_left > 0 {
        tokio::select! {
            heard = news.recv() => match heard {
                Some((_, News::Ended { exit, .. })) => code = code.max(i32::from(exit.shell_code())),
                Some((_, News::Finished)) => n_left -= 1,
                Some((node, News::Failed(why))) => {
                    n_left -= 1;
                    eprintln!("sattach: error: {}: {why}", step.shares[node].node);
                    code = code.max(1);
                }
                Some((_, News::Away(why))) => eprintln!("sattach: warning: a node is not reached: {why}; still trying"),
                Some((_, News::Started { .. } | News::Fence { .. } | News::Gather { .. } | News::Fetch { .. } | News::Fetched { .. } | News::Abort { .. })) => {}
                None => break,
            },
            // The step goes on without its onlooker.
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    typing.abort();
    nodes.iter().for_each(|(_, task)| task.abort());
    drop(nodes);
    let _ = filtering.await;
    let _ = writer.done.await;
    code
}

fn fail(text: &str) -> i32 {
    eprintln!("sattach: error: {text}");
    1
}
