//! The machine's clock is set, forwards and back, under a cluster at work. A library put before the C library's tells all daemons and
//! commands what time it is; programs that bring a C library of their own would not hear it.
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::cluster::{Cluster, kill_9};
use crate::failover::pid_of;

const SHIFTED: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    int told = syscall(SYS_clock_gettime, clock, at);
    FILE *shift = clock == CLOCK_REALTIME ? fopen(SHIFT_FILE, "re") : 0;
    long seconds = 0;
    if (shift) {
        if (fscanf(shift, "%ld", &seconds) == 1) at->tv_sec += seconds;
        fclose(shift);
    }
    return told;
}
"#;

/// The library, where there is a compiler to make it with. Daemons do not keep the environment: it must know the file by itself.
fn library(dir: &Path, shift: &Path) -> Option<PathBuf> {
    let (source, library) = (dir.join("shifted.c"), dir.join("shifted.so"));
    std::fs::write(&source, SHIFTED).unwrap();
    let file = format!("-DSHIFT_FILE=\"{}\"", shift.display());
    let compiled = Command::new("cc").args(["-shared", "-fPIC", &file, "-o"]).args([&library, &source]).status();
    compiled.is_ok_and(|status| status.success()).then_some(library)
}

/// Its controllers and commands tell the time that the test sets; agents tell none.
struct Clocked {
    cluster: Cluster,
    before: String,
    shift: PathBuf,
    controllers: Vec<Child>,
}

impl Clocked {
    fn up() -> Option<Clocked> {
        let cluster = Cluster::up("--nodes 2 --cpus 8 --controllers 3");
        let shift = cluster.dir.join("shift");
        let library = library(&cluster.dir, &shift)?;
        let before = format!("export LD_PRELOAD={};", library.display());
        let mut clocked = Clocked { cluster, before, shift, controllers: Vec::new() };
        clocked.set(0);
        for member in 1..=3 {
            // `spur up` keeps daemons from such an environment.
            kill_9(pid_of(&clocked.cluster, member));
            let mut controller = clocked.cluster.shell("exec spurctld --config ../spur.conf $MEMBER");
            let name = if member == 1 { String::new() } else { format!("--member {member}") };
            controller.env("LD_PRELOAD", &library).env("MEMBER", name).stdout(Stdio::null()).stderr(Stdio::null());
            clocked.controllers.push(controller.spawn().unwrap());
            clocked.wait("scontrol ping", |said| said.matches("is UP").count() == 3);
        }
        Some(clocked)
    }

    /// Seconds between the real time and what is told from now on.
    fn set(&self, seconds: i64) {
        let new = self.shift.with_extension("new");
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(new, &self.shift).unwrap();
    }

    fn ok(&self, line: &str) -> String {
        self.cluster.ok(&format!("{} {line}", self.before))
    }

    fn wait(&self, line: &str, enough: impl Fn(&str) -> bool) {
        self.cluster.wait_until(&format!("{} {line}", self.before), |said| enough(said.out.trim()));
    }

    fn wait_state(&self, job: &str, state: &str) {
        self.wait(&format!("squeue -h -t all -j {job} -o %T"), |said| said == state);
    }
}

impl Drop for Clocked {
    fn drop(&mut self) {
        for controller in &mut self.controllers {
            let _ = controller.kill();
            let _ = controller.wait();
        }
    }
}

const HOUR: i64 = 3600;

#[test]
fn a_clock_that_is_set_loses_nothing_and_stops_nothing() {
    let Some(at) = Clocked::up() else {
        return eprintln!("skipped: no C compiler to play another clock with");
    };
    let submit = |words: &str| at.ok(&format!("sbatch --parsable -o /dev/null {words}"));
    let open = submit("--wrap 'while [ ! -e go ]; do sleep 0.05; done'");
    let limited = submit("-t 60 --wrap 'sleep 1000'");
    let later = submit("--begin now+2hours --wrap 'echo later >> ran'");
    at.wait_state(&limited, "RUNNING");
    at.wait_state(&open, "RUNNING");
    assert_eq!(at.ok(&format!("squeue -h -j {later} -o %r")), "BeginTime");
    // Three hours ahead: what is due by then is due now, and once.
    at.set(3 * HOUR);
    at.wait_state(&limited, "TIMEOUT");
    at.wait_state(&later, "COMPLETED");
    at.wait_state(&open, "RUNNING");
    assert_eq!(at.cluster.file("ran"), "later\n");
    // And back, further than it was: nothing becomes younger, and time does not stand still until the clock has caught up.
    for shift in [-HOUR, -50 * 365 * 24 * HOUR, 0] {
        at.set(shift);
        let next = submit("--wrap 'echo next >> ran'");
        assert!(next.parse::<u32>().unwrap() > later.parse::<u32>().unwrap());
        at.wait_state(&next, "COMPLETED");
        let times = at.ok(&format!("squeue -h -t all -j {limited},{next} -S i -o %V"));
        let mut sorted: Vec<&str> = times.lines().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, times.lines().collect::<Vec<_>>(), "whoever came later came later");
        let timed = submit("--wrap 'while [ ! -e go ]; do sleep 0.05; done'");
        at.wait_state(&timed, "RUNNING");
        at.wait(&format!("squeue -h -j {timed} -o %M"), |said| said != "0:00" && said != "0:01");
        at.ok(&format!("scancel {timed}"));
    }
    // The next leader does not believe its clock more than the log either.
    at.ok("scontrol takeover");
    at.cluster.ok("touch go");
    at.wait_state(&open, "COMPLETED");
    assert_eq!(at.cluster.file("ran"), "later\nnext\nnext\nnext\n", "each once");
}
