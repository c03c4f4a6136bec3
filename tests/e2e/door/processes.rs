//! Processes and threads: no daemon runs as a user, so no user signals one, stops one, or keeps one waiting for ever.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, is_alive, is_root};

/// Longer than the agent waits for a run that does not end (`KILL_GRACE` and more).
const ENDS_WITHIN: Duration = Duration::from_secs(40);

const CONF: &str = "cluster_name = \"processes\"\n[agent]\nkill_wait = 1\n\
    [[nodes]]\nnames = \"n1\"\ncpus = 16\nmemory_mb = 4000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

/// Real, effective, saved and file system user of one thread.
type Credentials = [u32; 4];

/// A user that no other test, nor any process of this machine, is; another with each call.
pub fn own_user() -> u32 {
    static N_USERS: AtomicU32 = AtomicU32::new(0);
    const USERS_PER_PROCESS: u32 = 64;
    600_000 + std::process::id() * USERS_PER_PROCESS + N_USERS.fetch_add(1, Ordering::Relaxed) % USERS_PER_PROCESS
}

/// The line as this user would type it.
pub fn as_user(uid: u32, line: &str) -> String {
    format!("setpriv --reuid={uid} --regid={uid} --clear-groups bash -c '{}'", line.replace('\'', "'\\''"))
}

/// A cluster whose work directory is everybody's; none where the test has only one user.
pub fn shared(conf: &str) -> Option<Cluster> {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return None;
    }
    let head = Cluster::configured(conf);
    head.ok("chmod 1777 .");
    Some(head)
}

/// An attacker's process, which goes with its test also when the test fails.
pub struct BegunShell(Child);

impl Deref for BegunShell {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for BegunShell {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for BegunShell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn begin(head: &Cluster, line: &str) -> BegunShell {
    BegunShell(head.shell(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("bash runs"))
}

fn credentials(thread: &Path) -> Option<Credentials> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let ids: Vec<u32> = line.split_whitespace().flat_map(str::parse).collect();
    ids.try_into().ok()
}

/// Of each process of our executable, what its threads run as.
fn looked_at(executable: &Path) -> BTreeMap<PathBuf, BTreeSet<Credentials>> {
    let mut found = BTreeMap::new();
    for process in fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        if fs::read_link(process.join("exe")).is_ok_and(|exe| exe == executable) {
            let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
            found.insert(process, threads.filter_map(|thread| credentials(&thread.path())).collect());
        }
    }
    found
}

/// A process with root's rights of any kind has nobody else's, and the threads of a process are one user.
fn is_sound(threads: &BTreeSet<Credentials>) -> bool {
    threads.len() <= 1 && threads.iter().all(|ids| ids.iter().all(|id| *id == ids[0]))
}

#[test]
fn no_thread_of_a_daemon_runs_as_a_user() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let executable = fs::canonicalize(env!("CARGO_BIN_EXE_spur")).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = {
        let (executable, is_over) = (executable.clone(), is_over.clone());
        std::thread::spawn(move || {
            let (mut unsound, mut n_looks) = (BTreeSet::new(), 0);
            while !is_over.load(Ordering::Relaxed) {
                for (process, threads) in looked_at(&executable) {
                    if !is_sound(&threads) {
                        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
                        unsound.insert(format!("{}: {threads:?}", name.trim()));
                    }
                }
                n_looks += 1;
            }
            (unsound, n_looks)
        })
    };
    let user = |line: &str| as_user(uid, line);
    head.ok("mkfifo -m 666 pipe; head -c 3000000 /dev/urandom > big; chmod 644 big");
    // Files that take their time: the directory is missing, the pipe has no reader.
    let job = head.ok(&user("sbatch --parsable -o missing/out --wrap true"));
    let other = head.ok(&user("sbatch --parsable -i pipe -o out --wrap 'srun -n4 -o step.%t true'"));
    let allocation = head.ok(&user("sbatch --parsable -o /dev/null --wrap 'sleep 600'"));
    head.wait_state(&allocation, "RUNNING");
    let parked = begin(&head, &user(&format!("sbcast -f -j {allocation} big pipe")));
    for number in 0..6 {
        head.ok(&user(&format!("sbcast -j {allocation} big copy.{number}")));
        head.ok(&user(&format!("srun --jobid={allocation} --overlap -n3 -o dir/missing.{number}.%t true || true")));
    }
    head.wait_until(&format!("squeue -h -j {job},{other} -o %T"), |said| said.out.trim().is_empty());
    head.ok(&format!("cmp big copy.5 && test $(stat -c %u copy.5) = {uid}"));
    is_over.store(true, Ordering::Relaxed);
    let (unsound, n_looks) = watching.join().unwrap();
    ended(parked, ENDS_WITHIN);
    assert!(n_looks > 10, "{n_looks} looks");
    assert!(unsound.is_empty(), "{unsound:?}");
    head.ok(&format!("scancel {allocation}"));
}

/// Whether it has ended by itself in time; it has ended afterwards.
fn ended(mut child: BegunShell, within: Duration) -> bool {
    let until = Instant::now() + within;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn sbcast_into_a_pipe_is_refused_and_leaves_nothing() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let job = head.ok(&as_user(uid, "sbatch --parsable -o /dev/null --wrap 'sleep 600'"));
    head.wait_state(&job, "RUNNING");
    head.ok("echo text > file; mkfifo -m 666 pipe; mkfifo -m 666 read");
    let _reader = begin(&head, "exec sleep 600 < read");
    for pipe in ["pipe", "read"] {
        let sbcast = begin(&head, &as_user(uid, &format!("sbcast -f -j {job} file {pipe}")));
        assert!(ended(sbcast, ENDS_WITHIN), "sbcast into {pipe} does not end");
    }
    let threads = fs::read_dir(format!("/proc/{}/task", head.agent_pid("n1"))).unwrap().flatten();
    let parked: Vec<_> = threads.filter_map(|thread| credentials(&thread.path())).filter(|ids| ids[0] != 0).collect();
    assert!(parked.is_empty(), "{parked:?}");
    head.ok(&as_user(uid, &format!("sbcast -j {job} file plain")));
    assert_eq!(head.file("plain"), "text\n");
    head.ok(&format!("scancel {job}"));
}

#[test]
fn agent_outlives_a_user_who_kills_all_they_can() {
    let Some(head) = shared(CONF) else { return };
    let (uid, agent, controller) = (own_user(), head.agent_pid("n1"), head.controller_pid());
    let neighbour = head.sbatch("-o neighbour.out --wrap 'while [ ! -e go ]; do sleep 0.05; done; echo went'");
    head.wait_state(&neighbour, "RUNNING");
    let job = head.ok(&as_user(uid, "sbatch --parsable -o /dev/null --wrap 'sleep 600'"));
    head.wait_state(&job, "RUNNING");
    head.ok("mkfifo -m 666 pipe; echo text > file");
    let parked = begin(&head, &as_user(uid, &format!("sbcast -f -j {job} file pipe")));
    // Files that are slow to open, while the user's loop reaches for all that it may signal, and changes all that it may.
    let waits = head.ok(&as_user(uid, "sbatch --parsable -o missing/out --wrap true"));
    // A thread's number reaches its process.
    let change = "for t in /proc/[0-9]*/task/[0-9]*; do kill -KILL ${t##*/}; renice 19 -p ${t##*/}; done 2>/dev/null";
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        head.run(&as_user(uid, change));
    }
    ended(parked, ENDS_WITHIN);
    head.wait_until(&format!("squeue -h -j {job},{waits} -o %T"), |said| said.out.trim().is_empty());
    assert!(is_alive(agent) && is_alive(controller));
    assert_eq!((head.agent_pid("n1"), head.controller_pid()), (agent, controller));
    let executable = fs::canonicalize(env!("CARGO_BIN_EXE_spur")).unwrap();
    for (process, _) in looked_at(&executable) {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // Nice is the sixteenth field behind the name.
        let nice = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(16)).map(str::to_string);
        let is_head = fs::read(process.join("cmdline")).is_ok_and(|words| words.starts_with(b"spur"));
        assert!(!is_head || nice.as_deref() != Some("19"), "{} was made nice", process.display());
    }
    head.ok("touch go");
    head.wait_state(&neighbour, "COMPLETED");
    assert_eq!(head.file("neighbour.out"), "went\n");
}

#[test]
fn child_stopped_before_its_program_keeps_no_job() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let submit = as_user(uid, "sbatch -H --parsable -D / -o /dev/null --wrap \"sleep 600\"");
    let jobs: Vec<String> = (0..8).map(|_| head.ok(&submit)).collect();
    let mut stopper = begin(&head, &as_user(uid, "while true; do kill -STOP -1; done"));
    head.ok(&format!("scontrol release {}", jobs.join(" ")));
    // The last of them has been begun, and whatever could be stopped was.
    head.wait_until("squeue -h -o %T", |said| said.out.lines().all(|state| state == "RUNNING"));
    std::thread::sleep(Duration::from_secs(1));
    stopper.kill().unwrap();
    stopper.wait().unwrap();
    head.ok(&format!("scancel {}", jobs.join(" ")));
    let until = Instant::now() + ENDS_WITHIN;
    let left = || head.ok("squeue -h -o %i");
    while !left().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    let states =
        head.ok("ps -eo pid,ppid,uid,stat,wchan:20,args | grep -E 'spurstepd|sleep 600' | grep -v grep || true");
    assert_eq!(left(), "", "{states}");
    assert_eq!(head.ok("sinfo -h -o %t"), "idle");
    // The node still serves.
    let after = head.ok(&as_user(uid, "sbatch --parsable -o after --wrap 'echo after'"));
    head.wait_state(&after, "COMPLETED");
    assert_eq!(head.file("after"), "after\n");
}

#[test]
fn full_pipe_for_notes_keeps_no_job() {
    let head = Cluster::configured(CONF);
    head.ok("mkfifo pipe");
    let mut reader = begin(&head, "exec sleep 600 < pipe");
    let fill = "dd if=/dev/zero bs=4096 count=100 >&2";
    let job = head.sbatch(&format!("-o /dev/null -e pipe --wrap '{fill}; sleep 600'"));
    head.wait_state(&job, "RUNNING");
    // Its pipe is full when the writer waits for room.
    head.wait_until("ps -eo comm,wchan:20 | grep ^dd", |said| said.out.contains("pipe_w"));
    head.ok(&format!("scancel {job}"));
    let until = Instant::now() + ENDS_WITHIN;
    while !head.ok("squeue -h -o %i").is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    let left = head.ok("squeue -h -o %i");
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert_eq!(left, "");
}

#[test]
fn files_of_processes_are_no_input_or_output() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let files = ["/proc/self/environ", "/proc/self/maps", "/proc/self/fd/0", "/proc/thread-self/cwd/x", "/dev/fd/1"];
    head.ok("ln -s /proc/self/maps link");
    for file in files.into_iter().chain(["link"]) {
        for flags in [format!("-i {file} -o out"), format!("-o {file}"), format!("-o out -e {file}")] {
            let job = head.ok(&as_user(uid, &format!("sbatch --parsable {flags} --wrap \"cat; echo >&2\"")));
            let said = head.wait_until(&format!("squeue -h -t all -j {job} -o %T"), |said| {
                !["PENDING", "RUNNING", "COMPLETING"].contains(&said.out.trim())
            });
            assert_eq!((said.out.trim(), head.file("out").as_str()), ("FAILED", ""), "{flags}");
        }
    }
    let job = head.ok(&as_user(uid, "sbatch --parsable -i /dev/zero -o plain --wrap 'head -c 3 | wc -c'"));
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("plain"), "3\n");
}

#[test]
fn places_of_processes_are_no_working_directory() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    head.ok("ln -s /proc/self/cwd place; ln -s / plain");
    let dir = head.ok("pwd");
    let places = ["/proc/self/cwd", "/proc/self/root", "/proc/thread-self/cwd/.", "/proc/self/fd/0", "/dev/fd/3"];
    for place in places.into_iter().map(str::to_string).chain([format!("{dir}/place")]) {
        let line =
            format!("sbatch --parsable -D {place} -o {dir}/told -e {dir}/note --wrap \"pwd; srun -D {place} pwd\"");
        let job = head.ok(&as_user(uid, &line));
        head.wait_state(&job, "COMPLETED");
        // As Slurm does where it cannot go: somewhere harmless, with a word about it.
        assert_eq!(head.file("told"), "/tmp\n/tmp\n", "{place}: {}", head.file("note"));
        assert!(head.file("note").contains("couldn't chdir"), "{place}: {}", head.file("note"));
    }
    let job = head.ok(&as_user(uid, &format!("sbatch --parsable -D {dir}/plain/usr -o {dir}/told --wrap pwd")));
    head.wait_state(&job, "COMPLETED");
    assert!(head.file("told").trim_end().ends_with("/usr"), "{}", head.file("told"));
}

/// A process that stops on its way out: whatever kills it, it stays there until this thread, which traces it, lets go
/// of it.
struct HeldProcess(i32);

impl HeldProcess {
    /// None: this machine lets nobody trace others' children.
    fn seize(pid: i32) -> Option<HeldProcess> {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: a plain call; the process is nobody's whom it would harm.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, none, libc::PTRACE_O_TRACEEXIT) };
        (seized == 0).then_some(HeldProcess(pid))
    }
}

impl Drop for HeldProcess {
    fn drop(&mut self) {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: a plain call about a process that this thread traces; one that runs on is killed, and then let go.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            let until = Instant::now() + ENDS_WITHIN;
            while libc::ptrace(libc::PTRACE_DETACH, self.0, none, none) != 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn unkillable_process_drains_its_node_and_ends_its_job() {
    let conf = CONF.replace("kill_wait = 1", "kill_wait = 1\nunkillable_timeout = 3");
    let head = Cluster::configured(&conf);
    let held = |script: &str| {
        let job = head.sbatch(&format!("-o /dev/null --wrap '{script}'"));
        head.wait_state(&job, "RUNNING");
        let pid = head.wait_until("pgrep -f '^sleep 987$'", |said| !said.out.is_empty()).out.trim().to_string();
        Some((job, HeldProcess::seize(pid.parse().unwrap())?, pid))
    };
    let let_go = |process: HeldProcess| {
        let pid = process.0;
        drop(process);
        head.wait_until("true", |_| !is_alive(pid));
        head.ok("scontrol update nodename=n1 state=resume");
    };
    // One that is cancelled, one whose supervisor is killed, and one whose script ends by itself.
    for kill_supervisor in [false, true] {
        let Some((job, process, pid)) = held("sleep 987") else {
            eprintln!("skipped: nobody may trace others' children here (yama.ptrace_scope)");
            return;
        };
        if kill_supervisor {
            head.ok(&format!("kill -9 $(ps -o ppid= $(ps -o ppid= {pid}))"));
        }
        head.ok(&format!("scancel {job}"));
        head.wait_until("squeue -h -o %i", |said| said.out.is_empty());
        let reason = head.ok("sinfo -h -o '%T %E'");
        assert!(reason.starts_with("drained Kill task failed (processes ") && reason.contains(&pid), "{reason}");
        let_go(process);
    }
    let (job, process, pid) = held("sleep 987 & while [ ! -e go ]; do sleep 0.1; done").expect("as before");
    head.ok("touch go");
    head.wait_until("squeue -h -o %i", |said| said.out.is_empty());
    let (reason, state) = (head.ok("sinfo -h -o '%T %E'"), head.ok(&format!("squeue -h -t all -j {job} -o %T")));
    let_go(process);
    assert_eq!((reason, state), (format!("drained Kill task failed (processes {pid})"), "COMPLETED".to_string()));
    let after = head.sbatch("-o after --wrap 'echo after'");
    head.wait_state(&after, "COMPLETED");
}
