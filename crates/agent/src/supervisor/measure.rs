//! What the tasks use: looked at now and then while they run, and asked of the kernel when they end.
//!
//! The kernel's own account of an ended task (with all that it waited for) is exact for time, faults and I/O. Memory and
//! address space are the most that a look, or the account, has found.
use std::collections::HashMap;
use std::fs;

use model::Usage;
use model::time::Span;
use model::usage::Spread;

/// From the first look on, the pauses double up to the longest.
const FIRST_PAUSE_MILLIS: i64 = 50;
const LONGEST_PAUSE_MILLIS: i64 = 5_000;

pub struct Meter {
    tasks: Vec<Measured>,
    /// Of orphans that no task waited for.
    others: Times,
    next_at: i64,
    pause: i64,
    longest_pause: i64,
    /// Of all processes together, at the last look.
    rss_now_bytes: u64,
    /// Memory of this process itself: what a task inherits at its birth, before it runs its program.
    inherited_bytes: u64,
}

#[derive(Clone, Copy, Default)]
struct Times {
    user_micros: u64,
    system_micros: u64,
}

struct Measured {
    rank: u32,
    pid: i32,
    times: Times,
    rss_bytes: u64,
    vsize_bytes: u64,
    page_faults: u64,
    read_bytes: u64,
    written_bytes: u64,
    has_ended: bool,
}

/// One process, as `/proc/PID/stat` has it.
struct Process {
    parent: i32,
    session: i32,
    times: Times,
    page_faults: u64,
    vsize_bytes: u64,
    rss_bytes: u64,
}

impl Meter {
    pub fn new(now: i64) -> Self {
        Meter {
            tasks: Vec::new(),
            others: Times::default(),
            next_at: now + FIRST_PAUSE_MILLIS,
            pause: FIRST_PAUSE_MILLIS,
            longest_pause: LONGEST_PAUSE_MILLIS,
            rss_now_bytes: 0,
            inherited_bytes: own_peak_bytes(),
        }
    }

    /// Looks at least this often, because something depends on it.
    pub fn look_often(&mut self, pause_millis: i64) {
        self.longest_pause = pause_millis;
    }

    pub fn rss_now_bytes(&self) -> u64 {
        self.rss_now_bytes
    }

    pub fn add_task(&mut self, rank: u32, pid: i32) {
        self.tasks.push(Measured {
            rank,
            pid,
            times: Times::default(),
            rss_bytes: 0,
            vsize_bytes: 0,
            page_faults: 0,
            read_bytes: 0,
            written_bytes: 0,
            has_ended: false,
        });
        // It was born with what this process had then.
        self.inherited_bytes = own_peak_bytes();
    }

    /// When the next look is due.
    pub fn next_at(&self) -> i64 {
        self.next_at
    }

    /// Looks at these processes, all there are now.
    pub fn look(&mut self, pids: &[i32], now: i64) {
        self.pause = (self.pause * 2).min(self.longest_pause);
        self.next_at = now + self.pause;
        let processes: HashMap<i32, Process> = pids.iter().filter_map(|pid| Some((*pid, read(*pid)?))).collect();
        let mut sums: HashMap<usize, (Times, u64, u64, u64, u64, u64)> = HashMap::new();
        self.rss_now_bytes = processes.values().map(|process| process.rss_bytes).sum();
        for (pid, process) in &processes {
            let Some(index) = self.task_of(*pid, &processes) else { continue };
            let (read_bytes, written_bytes) = read_io(*pid);
            let (times, rss, vsize, faults, input, output) = sums.entry(index).or_default();
            times.user_micros += process.times.user_micros;
            times.system_micros += process.times.system_micros;
            *rss += process.rss_bytes;
            *vsize += process.vsize_bytes;
            *faults += process.page_faults;
            *input += read_bytes;
            *output += written_bytes;
        }
        for (index, (times, rss, vsize, faults, input, output)) in sums {
            let task = &mut self.tasks[index];
            task.rss_bytes = task.rss_bytes.max(rss);
            task.vsize_bytes = task.vsize_bytes.max(vsize);
            if task.has_ended {
                continue;
            }
            // A process that nobody has waited for yet is in no account: what was seen once does not shrink.
            task.times.user_micros = task.times.user_micros.max(times.user_micros);
            task.times.system_micros = task.times.system_micros.max(times.system_micros);
            task.page_faults = task.page_faults.max(faults);
            task.read_bytes = task.read_bytes.max(input);
            task.written_bytes = task.written_bytes.max(output);
        }
    }

    fn task_of(&self, pid: i32, processes: &HashMap<i32, Process>) -> Option<usize> {
        let is_task = |pid: i32| self.tasks.iter().position(|task| task.pid == pid);
        let mut at = pid;
        // A chain of parents is never longer than there are processes.
        for _ in 0..=processes.len() {
            if let Some(index) = is_task(at) {
                return Some(index);
            }
            match processes.get(&at) {
                Some(process) => at = process.parent,
                None => break,
            }
        }
        is_task(processes.get(&pid)?.session)
    }

    /// Before an ended child is collected: its I/O goes with it.
    pub fn note_zombie(&mut self, pid: i32) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.pid == pid && !task.has_ended) {
            let (read_bytes, written_bytes) = read_io(pid);
            task.read_bytes = task.read_bytes.max(read_bytes);
            task.written_bytes = task.written_bytes.max(written_bytes);
        }
    }

    /// The kernel's account of a child that has been collected.
    pub fn note_end(&mut self, pid: i32, account: &libc::rusage) {
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        let times = Times { user_micros: micros(account.ru_utime), system_micros: micros(account.ru_stime) };
        let Some(task) = self.tasks.iter_mut().find(|task| task.pid == pid && !task.has_ended) else {
            self.others.user_micros += times.user_micros;
            self.others.system_micros += times.system_micros;
            return;
        };
        task.has_ended = true;
        task.times = times;
        task.page_faults = task.page_faults.max(account.ru_majflt as u64);
        let peak = account.ru_maxrss as u64 * 1024;
        // Not more than it was born with says nothing about the program.
        if peak > self.inherited_bytes {
            task.rss_bytes = task.rss_bytes.max(peak);
        }
    }

    pub fn usage(&self) -> Usage {
        let mut usage = Usage {
            user_cpu: Span(self.others.user_micros),
            system_cpu: Span(self.others.system_micros),
            ..Usage::default()
        };
        for task in &self.tasks {
            let spread = |value| Spread::of(value, task.rank);
            usage.add(&Usage {
                user_cpu: Span(task.times.user_micros),
                system_cpu: Span(task.times.system_micros),
                n_tasks: 1,
                cpu_micros: spread(task.times.user_micros + task.times.system_micros),
                rss_bytes: spread(task.rss_bytes),
                vsize_bytes: spread(task.vsize_bytes),
                page_faults: spread(task.page_faults),
                read_bytes: spread(task.read_bytes),
                written_bytes: spread(task.written_bytes),
            });
        }
        usage
    }
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in brackets and may hold anything. The fields behind it are counted from the third on.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let number = |index: usize| fields.get(index - 3).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // With children that it waited for.
    let ticks = |own: usize, waited: usize| (number(own) + number(waited)) * 1_000_000 / ticks_per_second();
    Some(Process {
        parent: number(4) as i32,
        session: number(6) as i32,
        times: Times { user_micros: ticks(14, 16), system_micros: ticks(15, 17) },
        page_faults: number(12) + number(13),
        vsize_bytes: number(23),
        rss_bytes: number(24) * page_bytes(),
    })
}

/// Read and written, with what its waited-for children did.
fn read_io(pid: i32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    (value("rchar:"), value("wchar:"))
}

/// The most this process has had in memory.
pub fn own_peak_bytes() -> u64 {
    // SAFETY: the struct is plain data that the call fills.
    unsafe {
        let mut account: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut account);
        account.ru_maxrss as u64 * 1024
    }
}

fn ticks_per_second() -> u64 {
    // SAFETY: plain call.
    (unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).max(1) as u64
}

fn page_bytes() -> u64 {
    // SAFETY: plain call.
    (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::zombie_processes, reason = "wait4 waits for it, and tells what it has used")]
    fn what_a_task_was_born_with_is_not_its_own_memory() {
        let mut meter = Meter::new(0);
        let ballast = vec![1_u8; 64 << 20];
        let child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        meter.add_task(0, pid);
        // SAFETY: the struct is plain data that the call fills.
        let account = unsafe {
            let (mut status, mut account) = (0, std::mem::zeroed::<libc::rusage>());
            assert_eq!(libc::wait4(pid, &mut status, 0, &mut account), pid);
            account
        };
        meter.note_end(pid, &account);
        assert_eq!(std::hint::black_box(&ballast)[1000], 1);
        assert!(meter.usage().rss_bytes.max < 64 << 20, "{:?}", meter.usage().rss_bytes);
    }
}
