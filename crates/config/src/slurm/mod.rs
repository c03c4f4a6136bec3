//! A site's own slurm.conf, with the gres.conf beside it.
//!
//! ```text
//! lines ──▶ values, checked against keys ──▶ node, partition, gres, settings ──▶ model::Config
//! ```
//! Keys that Slurm knows and that mean nothing here are named in one warning; those that Slurm does not know are problems.
pub(crate) mod burst;
mod cgroup;
mod gres;
mod hooks;
mod keys;
pub(crate) mod lines;
mod network;
mod node;
mod partition;
mod places;
mod preemption;
mod scheduling;
mod settings;
pub(crate) mod values;

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use model::Config;
use model::config::NamedNode;

use crate::client::Client;
use crate::problem::{Problem, Problems};
use crate::{DEFAULT_AGENT_SOCKET, DEFAULT_CONTROLLER_SOCKET};
use keys::Key;
use lines::{Line, Pair, Reader};
use node::Nodes;
use partition::Partitions;
use values::{Again, Notes, Values};

/// Files that Slurm reads beside slurm.conf and that mean nothing here.
const IDLE_FILES: [&str; 5] = ["acct_gather.conf", "job_container.conf", "mpi.conf", "oci.conf", "plugstack.conf"];

/// Whether a file is written as Slurm's are: told by its first line that says anything, and if none does by its name.
pub(crate) fn is_slurm(file: &Path) -> io::Result<bool> {
    for line in BufReader::new(std::fs::File::open(file)?).lines() {
        if let Some(answer) = is_slurm_line(&line?) {
            return Ok(answer);
        }
    }
    Ok(file.file_name().is_some_and(|name| name == "slurm.conf"))
}

fn is_slurm_line(line: &str) -> Option<bool> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let word = line.split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
    let is_line = keys::LINES.iter().any(|key| key.eq_ignore_ascii_case(word));
    // Our own keys are in small letters with underscores; a misspelt key of Slurm's at least has its large letters.
    let looks_alike = word.starts_with(|c: char| c.is_ascii_uppercase());
    Some(is_line || looks_alike || word.eq_ignore_ascii_case("include") || keys::find(keys::TOP, word).is_some())
}

/// Reads and checks a text; what has no effect comes back as warnings. `folder` is where other files are looked for.
pub(crate) fn parse(text: &str, file_name: &str, folder: Option<&Path>) -> Result<(Config, Problems), Problems> {
    let notes = Notes::default();
    let mut content = Content::default();
    read_lines(text, file_name, folder, &notes, &mut |line| content.line(line, &notes));
    let gres_lines = gres_lines(folder, &notes);
    let content_top = content.top.clone();
    let mut config = content.finish(&gres_lines, &notes, file_name);
    network::read(&content_top, &mut config, folder, &notes);
    for problem in crate::units::settle(&mut config) {
        notes.problems.borrow_mut().extend(crate::problem::Problems::of_file(file_name, problem).list);
    }
    burst::read(&content_top, &mut config, folder, &notes);
    hooks::job_submit(&content_top, &mut config, folder, &notes);
    cgroup::read(&content_top, &mut config.agent, folder, &notes);
    let sorted = |mut list: Vec<Problem>| {
        list.sort();
        list.dedup();
        Problems { file: file_name.into(), list }
    };
    let problems = sorted(notes.problems.take());
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut warnings = sorted(notes.warnings.take());
    warnings.list.extend(idle_keys(&notes));
    warnings.list.extend(idle_files(folder));
    Ok((config, warnings))
}

/// The nodes of one `NodeName` line, as a command gives it, and what of it has no effect; else everything that is wrong.
pub(crate) fn node_line(text: &str) -> Result<(Vec<NamedNode>, Option<String>), Vec<String>> {
    let notes = Notes::default();
    let mut nodes = Nodes::default();
    nodes.takes_future = true;
    read_lines(text, "", None, &notes, &mut |line| match line.pairs() {
        Ok(pairs) => nodes.line(values_of(&pairs, keys::NODE, "of a node", &notes), &notes),
        Err(problem) => notes.problems.borrow_mut().push(problem),
    });
    let problems = notes.problems.take();
    if !problems.is_empty() {
        return Err(problems.into_iter().map(|problem| problem.text).collect());
    }
    let idle = notes.idle.borrow().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    Ok((nodes.list, (!idle.is_empty()).then(|| format!("without effect here: {}", idle.join(", ")))))
}

fn read_lines(text: &str, file: &str, folder: Option<&Path>, notes: &Notes, each: &mut dyn FnMut(&Line)) {
    let mut reader = Reader::new(folder.map(Path::to_path_buf), each);
    reader.read(text, file);
    notes.problems.borrow_mut().extend(reader.problems);
}

/// What the lines have said so far.
#[derive(Default)]
struct Content {
    top: Values,
    nodes: Nodes,
    partitions: Partitions,
}

impl Content {
    fn line(&mut self, line: &Line, notes: &Notes) {
        let pairs = match line.pairs() {
            Ok(pairs) => pairs,
            Err(problem) => return notes.problems.borrow_mut().push(problem),
        };
        match line.first_key().as_str() {
            "nodename" => self.nodes.line(values_of(&pairs, keys::NODE, "of a node", notes), notes),
            "partitionname" => {
                self.partitions.line(values_of(&pairs, keys::PARTITION, "of a partition", notes), notes);
            }
            "nodeset" => self.nodes.set_line(values_of(&pairs, keys::NODE_SET, "of a node set", notes)),
            "downnodes" => self.nodes.down_line(values_of(&pairs, keys::DOWN_NODES, "of DownNodes", notes)),
            "frontendname" => {
                values_of(&pairs, keys::FRONTEND, "of a front end", notes);
            }
            _ => pairs.iter().for_each(|pair| self.setting(pair, notes)),
        }
    }

    fn setting(&mut self, pair: &Pair, notes: &Notes) {
        let is_host = pair.key.eq_ignore_ascii_case("SlurmctldHost");
        if is_host && self.top.get("SlurmctldHost").is_some() {
            return notes.warn(&pair.at, format!("{} has no effect here: there is one controller", pair.value));
        }
        self.top.add(keys::TOP, "in slurm.conf", pair, Again::Warned, notes);
    }

    fn finish(mut self, gres_lines: &[Values], notes: &Notes, file_name: &str) -> Config {
        let whole_file = |text: &str| Problem { file: file_name.into(), line: 0, column: 0, text: text.into() };
        self.nodes.finish(notes);
        let mut config = Config { partitions: self.partitions.finish(&self.nodes, notes), ..Config::default() };
        config.nodes = self.nodes.list;
        if config.nodes.is_empty() {
            notes.problems.borrow_mut().push(whole_file("no NodeName line describes a node"));
        }
        if config.partitions.is_empty() {
            notes.problems.borrow_mut().push(whole_file("no PartitionName line describes a partition"));
        }
        forget_unlisted_gres(&self.top, &mut config, notes);
        gres::apply(gres_lines, &mut config.nodes, notes);
        settings::read(&self.top, &mut config, notes);
        crate::inherit_limits(&mut config);
        config
    }
}

fn values_of(pairs: &[Pair], table: &'static [Key], title: &str, notes: &Notes) -> Values {
    let mut values = Values::default();
    pairs.iter().for_each(|pair| values.add(table, title, pair, Again::Replaces, notes));
    values
}

/// Slurm hands out only what `GresTypes` names.
fn forget_unlisted_gres(top: &Values, config: &mut Config, notes: &Notes) {
    let Some(pair) = top.get("GresTypes") else {
        return;
    };
    let known: Vec<&str> = pair.value.split(',').map(str::trim).collect();
    for node in &mut config.nodes {
        node.config.gres.retain(|gres| {
            let is_known = known.contains(&gres.name.as_str());
            if !is_known {
                notes.warn(&pair.at, format!("`GresTypes` does not name {}: it is not handed out", gres.name));
            }
            is_known
        });
    }
}

fn gres_lines(folder: Option<&Path>, notes: &Notes) -> Vec<Values> {
    let Some(file) = folder.map(|folder| folder.join("gres.conf")).filter(|file| file.exists()) else {
        return Vec::new();
    };
    let name = file.display().to_string();
    let mut lines = Vec::new();
    match std::fs::read_to_string(&file) {
        Err(error) => notes.problems.borrow_mut().extend(Problems::of_file(&name, error.to_string()).list),
        Ok(text) => read_lines(&text, &name, folder, notes, &mut |line| match line.pairs() {
            Ok(pairs) => lines.push(values_of(&pairs, keys::GRES, "in gres.conf", notes)),
            Err(problem) => notes.problems.borrow_mut().push(problem),
        }),
    }
    lines
}

/// One warning for all keys without effect.
fn idle_keys(notes: &Notes) -> Option<Problem> {
    let idle = notes.idle.borrow();
    let (_, first) = idle.first()?;
    let names: Vec<String> = idle.iter().map(|(name, at)| format!("{name} (line {})", at.line)).collect();
    let text = format!("without effect here: {}", names.join(", "));
    Some(Problem { file: first.file.to_string(), line: 0, column: 0, text })
}

fn idle_files(folder: Option<&Path>) -> Option<Problem> {
    let folder = folder?;
    let present: Vec<&str> = IDLE_FILES.into_iter().filter(|name| folder.join(name).exists()).collect();
    let text = format!("without effect here: {}", present.join(", "));
    (!present.is_empty()).then(|| Problem { file: folder.display().to_string(), line: 0, column: 0, text })
}

/// Where the cluster is reached: only the three keys that tell are looked at, and lines of nodes and partitions not at all.
pub(crate) fn client(file: &Path) -> io::Result<Client> {
    let text = std::fs::read_to_string(file)?;
    let mut client = Client {
        file: file.into(),
        cluster_name: "cluster".into(),
        controller_socket: PathBuf::from(DEFAULT_CONTROLLER_SOCKET).into(),
        agent_socket: DEFAULT_AGENT_SOCKET.into(),
        srun_prolog: String::new(),
        srun_epilog: String::new(),
        mpi_default: String::new(),
        kill_on_bad_exit: false,
        wait_secs: 0,
        may_spare: false,
    };
    let mut each = |line: &Line| {
        if keys::LINES.iter().any(|key| key.eq_ignore_ascii_case(&line.first_key())) {
            return;
        }
        for pair in line.pairs().unwrap_or_default() {
            match pair.key.to_lowercase().as_str() {
                "clustername" => client.cluster_name = pair.value.to_lowercase(),
                "statesavelocation" => {
                    client.controller_socket = PathBuf::from(places::controller_socket(&pair.value)).into()
                }
                "srunprolog" => client.srun_prolog = pair.value.clone(),
                "srunepilog" => client.srun_epilog = pair.value.clone(),
                "mpidefault" => client.mpi_default = hooks::mpi(&pair.value).unwrap_or_default(),
                "killonbadexit" => {
                    client.kill_on_bad_exit = pair.value.trim().parse().is_ok_and(|value: u32| value > 0)
                }
                "allowspecresourcesusage" => client.may_spare = values::flag(&pair.value).unwrap_or(false),
                "waittime" => client.wait_secs = pair.value.trim().parse().unwrap_or(0),
                "slurmdspooldir" => client.agent_socket = places::agent_socket(&places::spool_dir(&pair.value)),
                _ => {}
            }
        }
    };
    Reader::new(folder_of(file), &mut each).read(&text, &file.display().to_string());
    Ok(client)
}

/// Where a file's neighbours are.
pub(crate) fn folder_of(file: &Path) -> Option<PathBuf> {
    std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_path_buf))
}
