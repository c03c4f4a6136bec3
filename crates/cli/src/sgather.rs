//! `sgather`: brings a file of every node of the job to where it is called, each under the name of its node.
//!
//! A step on each node sends the file through its standard output; where modes, times or whole directories are wanted, as an archive.
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::getopt::{Flag, Operands, Parsed, Value, flag, parse};
use crate::output::print;
use crate::version;

pub const FLAGS: &[Flag] = &[
    flag("compress", Some('C'), Value::None),
    flag("fanout", Some('F'), Value::Required),
    flag("force", Some('f'), Value::None),
    flag("help", Some('h'), Value::None),
    flag("keep", Some('k'), Value::None),
    flag("preserve", Some('p'), Value::None),
    flag("recursive", Some('r'), Value::None),
    flag("timeout", Some('t'), Value::Required),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
Usage: sgather [OPTIONS] SOURCE DEST
  -C, --compress        accepted; nothing is compressed
  -f, --force           a node without the source is passed over
  -F, --fanout=num      so many nodes at once, 8 at most
  -k, --keep            leave the source where it is
  -p, --preserve        keep mode and times of the source
  -r, --recursive       bring whole directories
  -t, --timeout=secs    accepted; a node that does not answer is told by its step
  -v, --verbose         tell what is done
  -V, --version

Help options:
  -h, --help            this text
      --usage           a short one
";
const MOST_AT_ONCE: usize = 8;

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => return misused(&format!("sgather: {problem}")),
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") { HELP } else { "Usage: sgather [-CfFkprtvV] SOURCE DEST\n" });
        return 0;
    }
    if parsed.has("version") {
        print(&format!("sgather {}\n", version::SLURM));
        return 0;
    }
    let [source, dest] = &parsed.operands[..] else {
        return misused(&format!("Need two file names, have {} names", parsed.operands.len()));
    };
    let n_at_once = match number(&parsed, "fanout", MOST_AT_ONCE).filter(|count| *count <= MOST_AT_ONCE) {
        Some(count) => count,
        None => return misused(&format!("sgather: invalid fanout -- '{}'", text(&parsed, "fanout"))),
    };
    if number(&parsed, "timeout", 60).is_none() {
        return misused(&format!("sgather: invalid timeout -- '{}'", text(&parsed, "timeout")));
    }
    let variable = |names: [&str; 2]| names.iter().find_map(|name| std::env::var(name).ok());
    let job = variable(["SLURM_JOB_ID", "SLURM_JOBID"]);
    let nodes = variable(["SLURM_JOB_NODELIST", "SLURM_NODELIST"]).and_then(|list| model::hostlist::expand(&list).ok());
    let (Some(job), Some(nodes)) = (job, nodes) else {
        eprintln!("sgather: error: Command only valid from within Slurm job");
        return 1;
    };
    let gathering = Gathering {
        job,
        source: source.clone(),
        dest: PathBuf::from(dest),
        as_archive: is_on(&parsed, "preserve") || is_on(&parsed, "recursive"),
        is_recursive: is_on(&parsed, "recursive"),
        skips_missing: is_on(&parsed, "force"),
        is_verbose: parsed.has("verbose"),
    };
    match gathering.gather(&nodes, n_at_once) {
        Ok(brought) if is_on(&parsed, "keep") || brought.is_empty() => 0,
        Ok(brought) => gathering.remove(&brought),
        Err(code) => code,
    }
}

/// A flag, or its variable.
fn is_on(parsed: &Parsed, name: &str) -> bool {
    parsed.has(name) || std::env::var_os(variable_of(name)).is_some()
}

fn variable_of(name: &str) -> String {
    format!("SGATHER_{}", name.to_ascii_uppercase())
}

fn text(parsed: &Parsed, name: &str) -> String {
    parsed.value(name).map(str::to_string).or_else(|| std::env::var(variable_of(name)).ok()).unwrap_or_default()
}

fn number(parsed: &Parsed, name: &str, otherwise: usize) -> Option<usize> {
    match text(parsed, name).as_str() {
        "" => Some(otherwise),
        given => given.parse().ok().filter(|count| *count > 0),
    }
}

fn misused(text: &str) -> i32 {
    eprintln!("{text}\nTry \"sgather --help\" for more information");
    1
}

struct Gathering {
    job: String,
    source: String,
    dest: PathBuf,
    as_archive: bool,
    is_recursive: bool,
    skips_missing: bool,
    is_verbose: bool,
}

/// What a node without the source exits with.
const MISSING: i32 = 66;
/// What the node's shell does; `$1` is the source, `$2` its directory, `$3` its name.
const SEND_FILE: &str = "[ -e \"$1\" ] || exit 66; exec cat -- \"$1\"";
const SEND_ARCHIVE: &str = "[ -e \"$1\" ] || exit 66; exec tar -cf - -C \"$2\" -- \"$3\"";

/// What one node sends, and where it goes until it is whole.
struct Arriving {
    node: String,
    sender: Child,
    unpacker: Option<Child>,
    at: PathBuf,
}

impl Gathering {
    /// The nodes whose file has come, or what the command exits with.
    fn gather(&self, nodes: &[String], n_at_once: usize) -> Result<Vec<String>, i32> {
        let (mut brought, mut code) = (Vec::new(), 0);
        for some in nodes.chunks(n_at_once) {
            let mut arriving = Vec::new();
            for node in some {
                match self.begin(node) {
                    Ok(one) => arriving.push(one),
                    Err(error) => code = fail(&format!("{node}: {error}")),
                }
            }
            for one in arriving {
                match self.finish(one) {
                    Ok(Some(node)) => brought.push(node),
                    Ok(None) => {}
                    Err(failed) => code = failed,
                }
            }
        }
        if code == 0 { Ok(brought) } else { Err(code) }
    }

    fn begin(&self, node: &str) -> io::Result<Arriving> {
        let at = self.place_of(node, ".part");
        if self.is_verbose {
            eprintln!("sgather: {node}:{} -> {}", self.source, self.place_of(node, "").display());
        }
        let script = if self.as_archive { SEND_ARCHIVE } else { SEND_FILE };
        let path = Path::new(&self.source);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut command = self.step(&[node.to_string()]);
        command.args(["sh", "-c", script, "sgather", &self.source]);
        command.arg(folder).arg(path.file_name().unwrap_or_default());
        if !self.as_archive {
            let sender = command.stdout(File::create(&at)?).spawn()?;
            return Ok(Arriving { node: node.to_string(), sender, unpacker: None, at });
        }
        std::fs::create_dir_all(&at)?;
        let mut sender = command.stdout(Stdio::piped()).spawn()?;
        let archive = sender.stdout.take().expect("it was asked for");
        let unpacker = Command::new("tar").arg("-xpf").arg("-").arg("-C").arg(&at).stdin(archive).spawn()?;
        Ok(Arriving { node: node.to_string(), sender, unpacker: Some(unpacker), at })
    }

    /// The node, if its file has come; none: it has none, and that is fine.
    fn finish(&self, mut one: Arriving) -> Result<Option<String>, i32> {
        let sent = one.sender.wait().ok().and_then(|status| status.code()).unwrap_or(1);
        let is_unpacked = one.unpacker.as_mut().is_none_or(|tar| tar.wait().is_ok_and(|status| status.success()));
        let put = || -> io::Result<()> {
            let place = self.place_of(&one.node, "");
            if !self.as_archive {
                return std::fs::rename(&one.at, place);
            }
            let name = Path::new(&self.source).file_name().unwrap_or_default();
            let inside = one.at.join(name);
            if inside.is_dir() && !self.is_recursive {
                return Err(io::Error::other(format!("{} is a directory", self.source)));
            }
            std::fs::rename(inside, place)
        };
        let outcome = match sent {
            0 if is_unpacked => match put() {
                Ok(()) => Ok(Some(one.node.clone())),
                Err(error) => Err(fail(&format!("{}: {error}", one.node))),
            },
            MISSING => {
                eprintln!("sgather({}): error: Can't open {}", one.node, self.source);
                if self.skips_missing {
                    eprintln!("sgather({}): {} ignored", one.node, self.source);
                }
                if self.skips_missing { Ok(None) } else { Err(1) }
            }
            0 => Err(fail(&format!("{}: the archive cannot be unpacked", one.node))),
            code => Err(code),
        };
        let _ = if one.at.is_dir() { std::fs::remove_dir_all(&one.at) } else { std::fs::remove_file(&one.at) };
        outcome
    }

    /// Nothing is removed before it has come from every node: nodes may share the file.
    fn remove(&self, nodes: &[String]) -> i32 {
        let mut command = self.step(nodes);
        let status = command.args(["rm", "-rf", "--", &self.source]).status();
        status.ok().and_then(|status| status.code()).unwrap_or(1)
    }

    /// One task on each of these nodes, beside whatever else runs there.
    fn step(&self, nodes: &[String]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "spur".into()));
        let count = nodes.len();
        command.args(["srun", "--quiet", "--overlap", "--input=none", "--cpus-per-task=1", "--ntasks-per-node=1"]);
        command.args([format!("--jobid={}", self.job), format!("--nodes={count}"), format!("--ntasks={count}")]);
        command.arg(format!("--nodelist={}", nodes.join(",")));
        command
    }

    fn place_of(&self, node: &str, ending: &str) -> PathBuf {
        let mut name = self.dest.clone().into_os_string();
        name.push(format!(".{node}{ending}"));
        name.into()
    }
}

fn fail(text: &str) -> i32 {
    eprintln!("sgather: error: {text}");
    1
}
