//! Where the demo plays: a cluster in a temporary directory, commands run in it, and what they print.
use model::config::Sockets;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::super::folder::{Folder, cannot};
use super::super::settle::Wanted;
use super::super::{down, up};
use super::interrupt;

/// How long a part of the demo waits for what it wants to show.
const PATIENCE: Duration = Duration::from_secs(20);

/// Gone, with all that plays on it, when it is dropped.
pub struct Stage {
    folder: Folder,
    is_cleared: bool,
}

impl Stage {
    /// Makes a directory that nobody else has.
    pub fn set() -> Result<Stage, String> {
        let base = std::env::temp_dir();
        for attempt in 0..1000 {
            let dir = base.join(format!("spur-demo-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o755).create(&dir) {
                Ok(()) => {
                    let dir = dir.canonicalize().map_err(|error| cannot("find", &dir, error))?;
                    let work = dir.join("work");
                    fs::create_dir(&work).map_err(|error| cannot("make", &work, error))?;
                    return Ok(Stage { folder: Folder { dir }, is_cleared: false });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(cannot("make", &dir, error)),
            }
        }
        Err(format!("{} is full of old demos", base.display()))
    }

    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// A file of the jobs' working directory.
    pub fn work(&self, name: &str) -> PathBuf {
        self.folder.dir.join("work").join(name)
    }

    pub fn raise(&self, nodes: u32, cpus: u32, names: &[&str]) -> Result<(), String> {
        let burst_buffer = Some(super::data::pools(&self.folder.dir));
        let wanted = Wanted {
            nodes: Some(nodes),
            cpus: Some(cpus),
            memory_mb: Some(1024),
            config: None,
            controllers: None,
            burst_buffer,
            network: Some(super::racks::network()),
        };
        up::bring_up(&self.folder, &wanted, names).map(|_| ())
    }

    pub fn socket(&self) -> Result<Sockets, String> {
        Ok(config::client::find(Some(&self.folder.conf()))?.controller_socket)
    }

    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.work(name);
        fs::write(&path, text).map_err(|error| cannot("write", &path, error))
    }

    pub fn say_command(&self, line: &str) {
        say!("   $ {line}");
    }

    /// Runs a command and shows what it prints, indented.
    pub fn show(&self, name: &str, arguments: &[&str]) -> Result<(), String> {
        self.show_text(name, arguments).map(|_| ())
    }

    /// As `show`; gives back what was printed.
    pub fn show_text(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        let text = self.run(name, arguments)?;
        self.say_command(&words(name, arguments));
        text.lines().for_each(|line| say!("   {}", line.trim_end()));
        Ok(text)
    }

    /// As `show`, for `spur VERB`.
    pub fn show_verb(&self, verb: &str, arguments: &[&str]) -> Result<(), String> {
        let text = self.run(verb, arguments)?;
        self.say_command(&format!("spur {}", words(verb, arguments)));
        text.lines().for_each(|line| say!("   {}", line.trim_end()));
        Ok(())
    }

    /// What a command prints, for our own use.
    pub fn quietly(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        self.run(name, arguments)
    }

    /// `sbatch`; the new job's number.
    pub fn submit(&self, arguments: &[&str]) -> Result<u32, String> {
        let text = self.run("sbatch", arguments)?;
        self.say_command(&words("sbatch", arguments));
        say!("   {}", text.trim_end());
        let number = text.split_whitespace().last().and_then(|word| word.parse().ok());
        number.ok_or_else(|| format!("sbatch printed {text:?}"))
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        let executable = std::env::current_exe().map_err(|error| error.to_string())?;
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut all = vec![self.folder.bin()];
        all.extend(std::env::split_paths(&path));
        let mut command = Command::new(executable);
        command.arg(name).args(arguments).current_dir(self.folder.dir.join("work")).stdin(Stdio::null());
        // A demo that is run inside a job, or with somebody's defaults set, must look the same.
        for (name, _) in std::env::vars_os() {
            let is_ours = ["SLURM_", "SPUR_", "SBATCH_", "SQUEUE_", "SINFO_", "SRUN_"]
                .iter()
                .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
            if is_ours {
                command.env_remove(name);
            }
        }
        command.env("SPUR_CONF", self.folder.conf());
        if let Ok(all) = std::env::join_paths(all) {
            command.env("PATH", all);
        }
        let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} failed ({}): {}", words(name, arguments), output.status, errors.trim_end()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// All that the jobs have written, for the post mortem.
    pub fn outputs(&self) -> String {
        let Ok(files) = fs::read_dir(self.folder.dir.join("work")) else { return String::new() };
        let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "out"));
        paths.sort();
        let text = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("--- {name}\n{}", fs::read_to_string(path).unwrap_or_default())
        };
        paths.iter().map(text).collect()
    }

    /// Stops and removes everything.
    pub fn clear(&mut self) -> Result<(), String> {
        self.is_cleared = true;
        if self.folder.conf().exists() {
            down::take_down(&self.folder)?;
        }
        fs::remove_dir_all(&self.folder.dir).map_err(|error| cannot("remove", &self.folder.dir, error))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_cleared {
            let _ = self.clear();
        }
    }
}

fn words(name: &str, arguments: &[&str]) -> String {
    let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { word.to_string() };
    [&[name], arguments].concat().iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Lines of a file as it grows.
pub struct Tail {
    path: PathBuf,
    n_read: usize,
}

impl Tail {
    pub fn new(path: PathBuf) -> Self {
        Tail { path, n_read: 0 }
    }

    /// Whole lines that were not there before.
    pub fn lines(&mut self) -> Vec<String> {
        let text = fs::read(&self.path).unwrap_or_default();
        let fresh = text.get(self.n_read..).unwrap_or_default();
        let Some(end) = fresh.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        self.n_read += end + 1;
        String::from_utf8_lossy(&fresh[..end]).lines().map(str::to_string).collect()
    }
}

/// How far an array is: drawn over itself on a terminal, a line a change elsewhere.
pub struct Bar {
    indent: &'static str,
    noun: &'static str,
    n_all: u32,
    last: Option<(u32, u32)>,
    is_terminal: bool,
    is_open: bool,
}

impl Bar {
    pub fn new(indent: &'static str, noun: &'static str, n_all: u32) -> Self {
        Bar {
            indent,
            noun,
            n_all,
            last: None,
            is_terminal: crate::output::TalkStream::Stdout.is_terminal(),
            is_open: false,
        }
    }

    pub fn show(&mut self, n_done: u32, n_running: u32) {
        let is_news = match self.last {
            None => true,
            Some(last) if self.is_terminal => last != (n_done, n_running),
            // A log wants the turns, not every step.
            Some((before, _)) => before != n_done && (n_done == self.n_all || n_done - before >= self.n_all / 3),
        };
        if !is_news {
            return;
        }
        self.last = Some((n_done, n_running));
        let text = picture(n_done, n_running, self.n_all, self.noun);
        if self.is_terminal {
            crate::output::draw(&format!("\r{}{text}\x1b[K", self.indent));
            self.is_open = true;
        } else {
            say!("{}{text}", self.indent);
        }
    }

    /// Leaves the line as it is and goes below it.
    pub fn end(&mut self) {
        if self.is_open {
            say!("");
            self.is_open = false;
        }
    }
}

fn picture(n_done: u32, n_running: u32, n_all: u32, noun: &str) -> String {
    let n_waiting = n_all.saturating_sub(n_done + n_running);
    let cells = [("#", n_done), ("+", n_running), (".", n_waiting)].map(|(sign, n)| sign.repeat(n as usize)).concat();
    format!("[{cells}] {n_done} of {n_all} {noun} done, {n_running} running")
}

/// Looks until it is so, the demo is interrupted, or it has taken too long.
pub fn wait(complaint: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let give_up = Instant::now() + PATIENCE;
    while !is_so() {
        if interrupt::requested().is_some() {
            return Err("interrupted".into());
        }
        if Instant::now() > give_up {
            return Err(complaint.into());
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_done_running_and_waiting() {
        assert_eq!(picture(2, 3, 6, "slices"), "[##+++.] 2 of 6 slices done, 3 running");
    }

    #[test]
    fn a_growing_file_is_read_line_by_line() {
        let path = std::env::temp_dir().join(format!("spur-tail-{}", std::process::id()));
        let mut tail = Tail::new(path.clone());
        assert!(tail.lines().is_empty());
        fs::write(&path, "a\nb").unwrap();
        assert_eq!(tail.lines(), ["a"]);
        fs::write(&path, "a\nbc\n\nd\n").unwrap();
        assert_eq!(tail.lines(), ["bc", "", "d"]);
        assert!(tail.lines().is_empty());
        fs::remove_file(&path).unwrap();
    }
}
