//! `sbcast`: copies a file to every node of a job, or of one of its steps.
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use model::request::JobFilter;

use crate::context::block_on;
use crate::delivery::{Delivery, libraries};
use crate::getopt::{Flag, Operands, Value, flag, parse};
use crate::job_ids::{self, Target};
use crate::output::print;
use crate::trouble::{self, Trouble};
use crate::version;
use wire::Controller;

pub const FLAGS: &[Flag] = &[
    flag("compress", Some('C'), Value::Optional),
    flag("exclude", None, Value::Required),
    flag("fanout", Some('F'), Value::Required),
    flag("force", Some('f'), Value::None),
    flag("help", None, Value::None),
    flag("jobid", Some('j'), Value::Required),
    flag("no-allocation", Some('Z'), Value::None),
    flag("nodelist", Some('w'), Value::Required),
    flag("preserve", Some('p'), Value::None),
    flag("send-libs", None, Value::Optional),
    flag("size", Some('s'), Value::Required),
    flag("timeout", Some('t'), Value::Required),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
Usage: sbcast [OPTIONS] SOURCE DEST
  -C, --compress[=lib]  accepted; nothing is compressed on one machine
  -f, --force           replace a file that is there
      --exclude=paths   libraries in these directories are not sent (NONE: all are)
  -F, --fanout=num      accepted; every node is served directly
  -j, --jobid=#[.#]     the job, and perhaps the step, whose nodes get the file
  -w, --nodelist=nodes  only these nodes of the job
  -Z, --no-allocation   to the nodes of --nodelist, without a job (administrators)
  -p, --preserve        keep mode and times of the source
      --send-libs[=yes|no]  send the shared libraries of a program along
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
    let with_libraries = match given(&parsed, "send-libs").map(|text| libraries::is_wanted(&text)) {
        None => false,
        Some(Some(wanted)) => wanted,
        Some(None) => {
            let text = given(&parsed, "send-libs").unwrap_or_default();
            eprintln!("sbcast: error: Ignoring unrecognized --send-libs value '{text}'");
            false
        }
    };
    let (excluded, complaints) = libraries::excluded(given(&parsed, "exclude").as_deref());
    if with_libraries {
        complaints.iter().for_each(|text| eprintln!("sbcast: {text}"));
    }
    let [source, dest] = &parsed.operands[..] else {
        eprintln!("Need two file names, have {} names", parsed.operands.len());
        eprintln!("Try \"sbcast --help\" for more information");
        return 1;
    };
    let only = match parsed.value("nodelist").map(model::hostlist::expand) {
        Some(Err(problem)) => return fail(&format!("Invalid node list: {problem}")),
        only => only.and_then(Result::ok),
    };
    let place = match (parsed.has("no-allocation"), &only) {
        (true, None) => return fail("--nodelist/-w is required with --no-allocation/-Z."),
        (true, Some(nodes)) => CopyPlace::Nodes(nodes.clone()),
        (false, _) => {
            let named = parsed.value("jobid").map(str::to_string);
            let variable = || std::env::var("SLURM_JOB_ID").or_else(|_| std::env::var("SLURM_JOBID")).ok();
            let Some(text) = named.or_else(variable) else {
                return fail(
                    "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.",
                );
            };
            let Some(target) = job_ids::parse(&text) else {
                return fail(&format!("Invalid job id specified: {text}"));
            };
            CopyPlace::Job { text, target, only }
        }
    };
    let size = parsed
        .value("size")
        .and_then(|text| model::size::parse_bytes(text, 1))
        .map_or(PIECE_BYTES, |size| size as usize);
    let secs = match parsed.value("timeout").map(str::parse).unwrap_or(Ok(PATIENCE_SECS)) {
        Ok(secs) => secs,
        Err(_) => return fail("invalid --timeout"),
    };
    let delivery = Delivery {
        program: "sbcast",
        replaces: parsed.has("force"),
        preserves: parsed.has("preserve"),
        piece_bytes: size.clamp(4096, 64 << 20),
        patience: Duration::from_secs(secs),
    };
    let is_verbose = parsed.has("verbose");
    let path = match dest.starts_with('/') {
        true => dest.clone(),
        false => format!("{}/{dest}", std::env::current_dir().unwrap_or_default().display()),
    };
    let outcome = block_on(async {
        let (cluster, mut controller) = trouble::connect().await?;
        let nodes = place.nodes(&mut controller).await?;
        if is_verbose {
            tell(&delivery, source, dest, secs);
            if let CopyPlace::Job { text, .. } = &place {
                eprintln!("sbcast: jobid      = {text}");
            }
            eprintln!("sbcast: node_list  = {}", model::hostlist::compress(&nodes));
        }
        let targets: Vec<(String, String)> = nodes.into_iter().map(|node| (node, path.clone())).collect();
        delivery.bring(&cluster, source, &targets).await.map_err(Trouble::Call)?;
        if with_libraries {
            delivery.bring_libraries(&cluster, source, &targets, &excluded).await.map_err(Trouble::Call)?;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => 0,
        Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
            fail(&text);
            exit_code(&text)
        }
    }
}

/// Where a file is to go.
enum CopyPlace {
    Job { text: String, target: Target, only: Option<Vec<String>> },
    Nodes(Vec<String>),
}

impl CopyPlace {
    async fn nodes(&self, controller: &mut Controller) -> Result<Vec<String>, Trouble> {
        let refused = |why: &str| Err(Trouble::Call(format!("slurm_sbcast_lookup: {why}")));
        let (target, only) = match self {
            CopyPlace::Job { target, only, .. } => (target, only),
            CopyPlace::Nodes(names) => {
                let config = controller.configuration().await?.config;
                if !crate::users::sees_hidden(&config) {
                    return refused("Access/permission denied");
                }
                let is_there = |name: &&String| config.nodes.iter().any(|node| node.name.as_str() == **name);
                return match names.iter().find(|name| !is_there(name)) {
                    Some(_) => refused("Invalid node name specified"),
                    None => Ok(names.clone()),
                };
            }
        };
        let filter = JobFilter { jobs: vec![target.job.clone()], with_steps: true, ..JobFilter::default() };
        let page = controller.all_jobs(&filter).await?;
        let (jobs, steps) = (page.jobs.iter().filter(|job| job.holds_nodes()), &page.steps);
        // All components of a heterogeneous job, unless one is named.
        let held: Vec<String> = jobs.flat_map(|job| job.allocation.names().map(ToString::to_string)).collect();
        if held.is_empty() {
            return refused("Invalid job id specified");
        }
        if !may_bring(crate::users::own_uid(), page.jobs.iter().map(|job| job.spec.uid)) {
            return refused("Invalid user id");
        }
        let all: Vec<String> = match target.step {
            None => held,
            Some(step) => match steps.iter().find(|known| known.id == step) {
                Some(step) => step.shares.iter().map(|share| share.node.to_string()).collect(),
                None => return refused("Invalid job id specified"),
            },
        };
        match only {
            None => Ok(all),
            Some(only) if only.iter().all(|name| all.contains(name)) => Ok(only.clone()),
            Some(_) => refused("Invalid node name specified"),
        }
    }
}

/// Files are brought to the nodes of one's own jobs.
fn may_bring(caller: u32, mut owners: impl Iterator<Item = u32>) -> bool {
    caller == 0 || owners.all(|owner| owner == caller)
}

/// Slurm's exit code: the system's number of an error that a node told in the system's words.
fn exit_code(text: &str) -> i32 {
    let first = text.lines().next().unwrap_or_default();
    let told = first.strip_prefix("REQUEST_FILE_BCAST(").and_then(|rest| rest.split_once("): "));
    let Some((_, words)) = told else { return if first.starts_with("Can't open") { 255 } else { 1 } };
    let says_so = |number: &i32| {
        let known = std::io::Error::from_raw_os_error(*number).to_string();
        known.split(" (os error").next() == Some(words)
    };
    (1..=133).find(says_so).unwrap_or(1)
}

fn fail(text: &str) -> i32 {
    eprintln!("sbcast: error: {text}");
    1
}

/// What an option says, or its variable.
fn given(parsed: &crate::getopt::Parsed, name: &str) -> Option<String> {
    match parsed.has(name) {
        true => Some(parsed.value(name).unwrap_or_default().to_owned()),
        false => std::env::var(format!("SBCAST_{}", name.to_ascii_uppercase().replace('-', "_"))).ok(),
    }
}

/// What `-v` says before anything is sent.
fn tell(delivery: &Delivery, source: &str, dest: &str, patience_secs: u64) {
    eprintln!("sbcast: -----------------------------");
    eprintln!("sbcast: block_size = {}", delivery.piece_bytes);
    eprintln!("sbcast: force      = {}", delivery.replaces);
    eprintln!("sbcast: preserve   = {}", delivery.preserves);
    eprintln!("sbcast: timeout    = {patience_secs}");
    eprintln!("sbcast: source     = {source}");
    eprintln!("sbcast: dest       = {dest}");
    eprintln!("sbcast: -----------------------------");
    let Ok(file) = std::fs::metadata(source) else { return };
    eprintln!("sbcast: modes    = {:o}", file.mode());
    eprintln!("sbcast: uid      = {}", file.uid());
    eprintln!("sbcast: gid      = {}", file.gid());
    eprintln!("sbcast: size     = {}", file.size());
}

#[cfg(test)]
mod tests {
    #[test]
    fn nobody_but_root_brings_files_to_the_jobs_of_others() {
        assert!(super::may_bring(1000, [1000, 1000].into_iter()) && super::may_bring(0, [1000].into_iter()));
        assert!(!super::may_bring(1001, [1000].into_iter()) && !super::may_bring(1000, [1000, 1001].into_iter()));
    }

    #[test]
    fn a_nodes_refusal_is_the_exit_code() {
        let check = |text: &str, expected| assert_eq!(super::exit_code(text), expected, "{text}");
        check("REQUEST_FILE_BCAST(n1): File exists\nsbcast: error: REQUEST_FILE_BCAST(n2): File exists", 17);
        check("REQUEST_FILE_BCAST(n1): No such file or directory", 2);
        check("REQUEST_FILE_BCAST(n1): something else", 1);
        check("Can't open `x`: No such file or directory", 255);
    }
}
