//! A cluster of its own for each test, in a temporary directory, gone when the test is.
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Cluster {
    pub dir: PathBuf,
}

/// What a command printed, and its exit code.
#[derive(Debug, Clone)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Cluster {
    /// `spur up` with these arguments.
    pub fn up(arguments: &str) -> Cluster {
        let cluster = Cluster { dir: new_dir() };
        cluster.start(arguments);
        cluster
    }

    /// `spur up` on a configuration with these lines.
    pub fn configured(text: &str) -> Cluster {
        let dir = new_dir();
        let file = dir.join("wanted.conf");
        fs::write(&file, text).unwrap();
        let cluster = Cluster { dir };
        cluster.start(&format!("--config {}", file.display()));
        cluster
    }

    /// Starts whatever of the cluster is not running.
    pub fn start(&self, arguments: &str) {
        let said = self.run(&format!("spur up --dir {} {arguments}", self.dir.display()));
        assert_eq!(said.code, 0, "spur up failed: {said:?}");
    }

    /// Runs a line of shell with the cluster's commands on PATH, in its `work` directory.
    pub fn run(&self, line: &str) -> Said {
        said(self.shell(line).output().expect("bash runs"))
    }

    pub fn shell(&self, line: &str) -> Command {
        let work = self.dir.join("work");
        fs::create_dir_all(&work).unwrap();
        let bin = Path::new(env!("CARGO_BIN_EXE_spur"));
        let path = format!(
            "{}:{}:{}",
            self.dir.join("bin").display(),
            bin.parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(work).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SLURM_") || name.starts_with("SPUR_")) {
            command.env_remove(name);
        }
        command.env("PATH", path).env("SPUR_CONF", self.dir.join("spur.conf"));
        command
    }

    /// As `run`, for lines that must succeed; gives what they printed.
    pub fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said.out.trim_end().to_string()
    }

    /// Submits and gives the job's id.
    pub fn sbatch(&self, arguments: &str) -> String {
        self.ok(&format!("sbatch --parsable {arguments}"))
    }

    /// Waits until the line prints `wanted`.
    pub fn wait_for(&self, line: &str, wanted: &str) {
        self.wait_until(line, |said| said.out.trim() == wanted);
    }

    pub fn wait_until(&self, line: &str, enough: impl Fn(&Said) -> bool) -> Said {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.run(line);
            if enough(&said) {
                return said;
            }
            assert!(Instant::now() < end, "{line} still says {said:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the job is in this state.
    pub fn wait_state(&self, job: &str, state: &str) {
        self.wait_for(&format!("squeue -h -t all -j {job} -o %T"), state);
    }

    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join("work").join(name)).unwrap_or_default()
    }

    /// Waits until a file of the work directory is there and satisfies `enough`.
    pub fn wait_file(&self, name: &str, enough: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let path = self.dir.join("work").join(name);
        loop {
            let text = self.file(name);
            if path.exists() && enough(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{name} still holds {text:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn controller_pid(&self) -> i32 {
        self.pid("controller")
    }

    pub fn agent_pid(&self, node: &str) -> i32 {
        self.pid(&format!("agent-{node}"))
    }

    pub fn pid(&self, who: &str) -> i32 {
        let file = self.dir.join("run").join(format!("{who}.pid"));
        let end = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            // Whoever starts it may be writing it anew.
            match text.trim().parse() {
                Ok(pid) => return pid,
                Err(error) => assert!(Instant::now() < end, "{}: {error}", file.display()),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn logs(&self) -> String {
        let Ok(files) = fs::read_dir(self.dir.join("log")) else { return String::new() };
        let tail = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("== {}\n{}\n", path.display(), lines[lines.len().saturating_sub(40)..].join("\n"))
        };
        files.flatten().map(|file| tail(file.path())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Daemons that a test started by hand are its own to end.
        if self.dir.join("spur.conf").exists() {
            let down = self.run(&format!("spur down --dir {}", self.dir.display()));
            if !std::thread::panicking() {
                assert_eq!(down.code, 0, "spur down failed: {down:?}");
            }
        }
        forget(&self.dir);
    }
}

/// A folder beside a cluster's own, which goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        Folder(new_dir())
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        forget(&self.0);
    }
}

fn forget(dir: &Path) {
    if std::env::var_os("KEEP").is_none() {
        let _ = fs::remove_dir_all(dir);
    }
}

pub fn said(output: Output) -> Said {
    Said {
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// SIGKILL, and the certainty that the process is gone.
pub fn kill_9(pid: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let end = Instant::now() + PATIENCE;
    while is_alive(pid) {
        assert!(Instant::now() < end, "{pid} does not die");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Zombies count as gone.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub fn is_root() -> bool {
    // SAFETY: a plain call.
    unsafe { libc::geteuid() == 0 }
}

pub fn new_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("spur-e2e-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}
