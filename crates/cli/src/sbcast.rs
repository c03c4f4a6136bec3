//! `sbcast`: copies a file to every node of a job, or of one of its steps.
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use config::Client;
use model::ask::{Answer, FileEnd, FileTimes, Piece, Question};
use model::request::JobFilter;
use wire::NodeAgent;

use crate::context::block_on;
use crate::getopt::{Flag, Operands, Value, flag, parse};
use crate::job_ids::{self, Target};
use crate::live;
use crate::output::print;
use crate::trouble::{self, Trouble};
use crate::version;

const FLAGS: &[Flag] = &[
    flag("compress", Some('C'), Value::Optional),
    flag("exclude", None, Value::Required),
    flag("fanout", Some('F'), Value::Required),
    flag("force", Some('f'), Value::None),
    flag("help", None, Value::None),
    flag("jobid", Some('j'), Value::Required),
    flag("preserve", Some('p'), Value::None),
    flag("send-libs", None, Value::Optional),
    flag("size", Some('s'), Value::Required),
    flag("timeout", Some('t'), Value::Required),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

const HELP: &str = "\
Usage: sbcast [OPTIONS] SOURCE DEST
  -C, --compress[=lib]  accepted; nothing is compressed on one machine
  -f, --force           replace a file that is there
  -F, --fanout=num      accepted; every node is served directly
  -j, --jobid=#[.#]     the job, and perhaps the step, whose nodes get the file
  -p, --preserve        keep mode and times of the source
  -s, --size=num        bytes sent at once
  -t, --timeout=secs    how long a node may take for a piece
  -v, --verbose         tell what is done
  -V, --version

Help options:
      --help            this text
      --usage           a short one
";
const PATIENCE_SECS: u64 = 60;
const PIECE_BYTES: usize = 4 << 20;

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("sbcast: {problem}\nTry \"sbcast --help\" for more information");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") { HELP } else { "Usage: sbcast [-CfFjpstvV] SOURCE DEST\n" });
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    for refused in ["exclude", "send-libs"] {
        if parsed.has(refused) && parsed.value(refused) != Some("no") {
            return fail(&format!("--{refused} is not supported by this version of Spur"));
        }
    }
    let [source, dest] = &parsed.operands[..] else {
        eprintln!("Need two file names, have {} names", parsed.operands.len());
        eprintln!("Try \"sbcast --help\" for more information");
        return 1;
    };
    let named = parsed.value("jobid").map(str::to_string);
    let variable = || std::env::var("SLURM_JOB_ID").or_else(|_| std::env::var("SLURM_JOBID")).ok();
    let Some(text) = named.or_else(variable) else {
        return fail("Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.");
    };
    let Some(Target { job, step }) = job_ids::parse(&text) else {
        return fail(&format!("Invalid job id specified: {text}"));
    };
    let size = parsed
        .value("size")
        .and_then(|text| model::size::parse_bytes(text, 1))
        .map_or(PIECE_BYTES, |size| size as usize);
    let secs = match parsed.value("timeout").map(str::parse).unwrap_or(Ok(PATIENCE_SECS)) {
        Ok(secs) => secs,
        Err(_) => return fail("invalid --timeout"),
    };
    let copy = Copy {
        source: source.clone(),
        dest: dest.clone(),
        replaces: parsed.has("force"),
        preserves: parsed.has("preserve"),
        piece_bytes: size.clamp(4096, 64 << 20),
        patience: Duration::from_secs(secs),
    };
    let is_verbose = parsed.has("verbose");
    let outcome = block_on(async {
        let (cluster, mut controller) = trouble::connect().await?;
        let filter = JobFilter { jobs: vec![job], with_steps: true, ..JobFilter::default() };
        let page = controller.all_jobs(&filter).await?;
        let (jobs, steps) = (page.jobs.iter().filter(|job| job.holds_nodes()), &page.steps);
        // All components of a heterogeneous job, unless one is named.
        let held: Vec<String> = jobs.flat_map(|job| job.allocation.names().map(ToString::to_string)).collect();
        if held.is_empty() {
            return Err(Trouble::Call("slurm_sbcast_lookup: Invalid job id specified".into()));
        }
        let nodes: Vec<String> = match step {
            None => held,
            Some(step) => match steps.iter().find(|known| known.id == step) {
                Some(step) => step.shares.iter().map(|share| share.node.to_string()).collect(),
                None => return Err(Trouble::Call("slurm_sbcast_lookup: Invalid job id specified".into())),
            },
        };
        if is_verbose {
            copy.tell(secs);
            eprintln!("sbcast: jobid      = {text}\nsbcast: node_list  = {}", model::hostlist::compress(&nodes));
        }
        copy.to_all(&cluster, &nodes).await.map_err(Trouble::Call)
    });
    match outcome {
        Ok(()) => 0,
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => fail(&text),
    }
}

fn fail(text: &str) -> i32 {
    eprintln!("sbcast: error: {text}");
    1
}

/// One file on its way.
pub struct Copy {
    pub source: String,
    pub dest: String,
    pub replaces: bool,
    pub preserves: bool,
    pub piece_bytes: usize,
    /// For one piece, of one node.
    pub patience: Duration,
}

impl Copy {
    /// What `-v` says before anything is sent.
    fn tell(&self, patience_secs: u64) {
        eprintln!("sbcast: -----------------------------");
        eprintln!("sbcast: block_size = {}", self.piece_bytes);
        eprintln!("sbcast: force      = {}", self.replaces);
        eprintln!("sbcast: preserve   = {}", self.preserves);
        eprintln!("sbcast: timeout    = {patience_secs}");
        eprintln!("sbcast: source     = {}", self.source);
        eprintln!("sbcast: dest       = {}", self.dest);
        eprintln!("sbcast: -----------------------------");
        let Ok(file) = std::fs::metadata(&self.source) else { return };
        eprintln!("sbcast: modes    = {:o}", file.mode());
        eprintln!("sbcast: uid      = {}", file.uid());
        eprintln!("sbcast: gid      = {}", file.gid());
        eprintln!("sbcast: size     = {}", file.size());
    }

    /// To every node, piece by piece. The error is ready to print.
    pub async fn to_all(&self, cluster: &Client, nodes: &[String]) -> Result<(), String> {
        let words = |error: std::io::Error| {
            let text = error.to_string();
            format!("Can't open `{}`: {}", self.source, text.split(" (os error").next().unwrap_or(&text))
        };
        let file = File::open(&self.source).map_err(words)?;
        let metadata = file.metadata().map_err(words)?;
        if !metadata.is_file() {
            return Err(format!("{} is not a regular file", self.source));
        }
        let path = match self.dest.starts_with('/') {
            true => self.dest.clone(),
            false => format!("{}/{}", std::env::current_dir().unwrap_or_default().display(), self.dest),
        };
        let mut agents = Vec::new();
        for node in nodes {
            let agent = NodeAgent::connect(&live::way(cluster, node)).await;
            agents.push((node, agent.map_err(|error| format!("REQUEST_FILE_BCAST({node}): {error}"))?));
        }
        let times = FileTimes { accessed_secs: metadata.atime(), modified_secs: metadata.mtime() };
        let mut offset = 0;
        loop {
            let mut data = vec![0; self.piece_bytes];
            let mut length = 0;
            while length < data.len() {
                match file.read_at(&mut data[length..], offset + length as u64).map_err(words)? {
                    0 => break,
                    more => length += more,
                }
            }
            data.truncate(length);
            let is_last = length < self.piece_bytes;
            let size = offset + length as u64;
            let times = self.preserves.then(|| times.clone());
            let mode = if self.preserves { metadata.mode() } else { metadata.mode() & 0o777 & !umask() };
            let last = is_last.then_some(FileEnd { mode, size, times });
            let piece = Piece { path: path.clone(), offset, data, replaces: self.replaces, last };
            let question = Question::Write(piece);
            for (node, agent) in &mut agents {
                let Ok(answer) = tokio::time::timeout(self.patience, agent.ask(&question)).await else {
                    return Err(format!("REQUEST_FILE_BCAST({node}): Socket timed out on send/recv operation"));
                };
                match answer {
                    Ok(Answer::Written) => {}
                    Ok(Answer::Refused { why }) => return Err(format!("REQUEST_FILE_BCAST({node}): {why}")),
                    Ok(Answer::Runs(_)) => return Err(format!("REQUEST_FILE_BCAST({node}): another answer")),
                    Err(error) => return Err(format!("REQUEST_FILE_BCAST({node}): {error}")),
                }
            }
            if is_last {
                return Ok(());
            }
            offset = size;
        }
    }
}

fn umask() -> u32 {
    // SAFETY: set and set back; commands have one thread here.
    unsafe {
        let mask = libc::umask(0o022);
        libc::umask(mask);
        mask
    }
}
