//! Bounded torture: three controllers are killed, frozen and restarted while clients work and keep a record of what they were promised.
//!
//! Afterwards: every acknowledged job ran exactly once, no id was given twice, and the answers about one job's comment could all
//! have been given by a single controller that did one thing at a time (linearizable). `SPUR_TORTURE=seconds` makes it longer,
//! `SPUR_SEED=number` repeats a schedule as far as the machine allows.
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::cluster::{Cluster, kill_9};

const CLIENTS: usize = 2;
const ENOUGH_JOBS: usize = 11;
const PATIENCE: Duration = Duration::from_secs(60);

/// One read or write of the register, from before it was asked until it was answered.
#[derive(Clone, Debug)]
struct Operation {
    began: Duration,
    /// None: nobody knows whether it was done.
    ended: Option<Duration>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Write(u32),
    Read(u32),
}

#[test]
fn nothing_is_lost_doubled_or_told_in_the_wrong_order() {
    let (lasts, seed) = schedule(12);
    let cluster = Cluster::up("--nodes 2 --cpus 32 --controllers 3");
    endure(&[&cluster], || break_things(&cluster, lasts, seed));
}

/// How long, and by which seed.
pub fn schedule(usual_secs: u64) -> (Duration, u64) {
    let lasts = Duration::from_secs(number("SPUR_TORTURE").unwrap_or(usual_secs));
    let seed = number("SPUR_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()))
    });
    eprintln!("SPUR_SEED={seed}");
    (lasts, seed)
}

/// Clients work at these places, all of one cluster, while things break; then everything that they were promised must hold.
pub fn endure(places: &[&Cluster], break_things: impl Fn()) {
    let first = places[0];
    let ran_file = first.dir.join("work/ran").display().to_string();
    let register = first.sbatch("-D / -H -J register --comment 0 --wrap true");
    let (enough, began) = (AtomicBool::new(false), Instant::now());
    let promised: Mutex<Vec<(String, String)>> = Mutex::default();
    let cancelled: Mutex<Vec<String>> = Mutex::default();
    let operations: Mutex<Vec<Operation>> = Mutex::default();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (enough, promised, cancelled, ran_file) = (&enough, &promised, &cancelled, &ran_file);
            let cluster = places[client % places.len()];
            scope.spawn(move || {
                for count in 0.. {
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("c{client}x{count}");
                    let is_held = count % 4 == 3;
                    let hold = if is_held { "-H" } else { "" };
                    let said = cluster.run(&format!(
                        "sbatch --parsable -D / {hold} -J {name} -o /dev/null --wrap 'echo {name} >> {ran_file}'"
                    ));
                    if said.code != 0 {
                        continue;
                    }
                    let id = said.out.trim().to_owned();
                    if !is_held {
                        promised.lock().unwrap().push((id, name));
                    } else if cluster.run(&format!("scancel {id}")).code == 0 {
                        cancelled.lock().unwrap().push(name);
                    }
                }
            });
        }
        for client in 0..2 {
            let (enough, operations, register) = (&enough, &operations, &register);
            let cluster = places[(client + 1) % places.len()];
            scope.spawn(move || {
                for count in 1.. {
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let start = began.elapsed();
                    let done = match client {
                        0 => {
                            let said = cluster.run(&format!("scontrol update jobid={register} comment={count}"));
                            // One that failed may have been done all the same.
                            Operation {
                                began: start,
                                ended: (said.code == 0).then(|| began.elapsed()),
                                kind: Kind::Write(count),
                            }
                        }
                        _ => {
                            let said = cluster.run(&format!("squeue -h -j {register} -o %k"));
                            let Ok(value) = said.out.trim().parse() else { continue };
                            Operation { began: start, ended: Some(began.elapsed()), kind: Kind::Read(value) }
                        }
                    };
                    operations.lock().unwrap().push(done);
                }
            });
        }
        let _enough = StopOnDrop(&enough);
        // A slow machine needs more of it until there is something to judge.
        let end = Instant::now() + PATIENCE;
        break_things();
        while promised.lock().unwrap().len() < ENOUGH_JOBS && Instant::now() < end {
            break_things();
        }
    });
    let (promised, cancelled) = (promised.into_inner().unwrap(), cancelled.into_inner().unwrap());
    assert!(promised.len() >= ENOUGH_JOBS, "too few submissions got through: {}", promised.len());
    let ids: BTreeSet<&String> = promised.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), promised.len(), "an id was given twice");
    let ran = first.wait_file("ran", |text| {
        let names: HashSet<&str> = text.lines().collect();
        promised.iter().all(|(_, name)| names.contains(name.as_str()))
    });
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    ran.lines().for_each(|name| *times.entry(name).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "ran more than once: {twice:?}");
    let undead: Vec<_> = cancelled.iter().filter(|name| times.contains_key(name.as_str())).collect();
    assert!(undead.is_empty(), "cancelled before they could run, and ran: {undead:?}");
    let queued = first.ok("squeue -h -o %j");
    let lingering: Vec<_> = cancelled.iter().filter(|name| queued.lines().any(|line| line == name.as_str())).collect();
    assert!(lingering.is_empty(), "cancelled, and still in the queue: {lingering:?}");
    let operations = operations.into_inner().unwrap();
    eprintln!("{} jobs, {} cancelled, {} operations", promised.len(), cancelled.len(), operations.len());
    assert!(is_linearizable(&operations), "no single controller could have answered so: {operations:#?}");
    first.ok(&format!("scancel {register}"));
}

/// The same numbers for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 |= u64::from(self.0 == 0);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Kills, freezes and restarts controllers, never so many that no majority is left for long.
fn break_things(cluster: &Cluster, lasts: Duration, seed: u64) {
    let end = Instant::now() + lasts;
    let mut dice = Dice(seed);
    let mut next = |below: u64| dice.below(below);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(300 + next(900)));
        let member = 1 + next(3);
        let name = if member == 1 { "controller".to_owned() } else { format!("controller-{member}") };
        let pid = cluster.pid(&name);
        match next(3) {
            0 => {
                // SAFETY: plain system calls.
                unsafe { libc::kill(pid, libc::SIGSTOP) };
                std::thread::sleep(Duration::from_millis(200 + next(2500)));
                unsafe { libc::kill(pid, libc::SIGCONT) };
            }
            _ => {
                kill_9(pid);
                std::thread::sleep(Duration::from_millis(next(1500)));
                cluster.start("");
            }
        }
    }
    cluster.start("");
}

/// Whether the operations have an order that respects time and in which every read finds the last value written. Searches depth
/// first; what was tried is remembered by the set of what is done and the value. There is one writer, so few orders are open at a time.
fn is_linearizable(operations: &[Operation]) -> bool {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.began);
    let far = Duration::MAX;
    let mut seen = HashSet::new();
    // What is done: all before `first`, and those in `ahead`.
    let mut open = vec![(0, Vec::<usize>::new(), 0)];
    while let Some((first, ahead, value)) = open.pop() {
        let is_done = |number: &usize| *number < first || ahead.contains(number);
        let left: Vec<usize> = (first..operations.len()).filter(|number| !is_done(number)).collect();
        // Writes that nobody knows of need not have happened.
        if left.iter().all(|number| operations[*number].ended.is_none()) {
            return true;
        }
        if !seen.insert((first, ahead.clone(), value)) {
            continue;
        }
        let deadline = left.iter().map(|number| operations[*number].ended.unwrap_or(far)).min().unwrap_or(far);
        for number in left.iter().copied().take_while(|number| operations[*number].began <= deadline) {
            let after = match operations[number].kind {
                Kind::Write(written) => written,
                Kind::Read(found) if found == value => value,
                Kind::Read(_) => continue,
            };
            let (mut first, mut ahead) = (first, ahead.clone());
            ahead.push(number);
            ahead.sort_unstable();
            while ahead.first() == Some(&first) {
                ahead.remove(0);
                first += 1;
            }
            open.push((first, ahead, after));
        }
    }
    false
}

#[test]
fn the_checker_finds_what_cannot_have_been() {
    let operation = |began: u64, ended: Option<u64>, kind: Kind| Operation {
        began: Duration::from_millis(began),
        ended: ended.map(Duration::from_millis),
        kind,
    };
    let (read, write) = (Kind::Read, Kind::Write);
    let good = [operation(0, Some(10), write(1)), operation(5, Some(7), read(0)), operation(11, Some(12), read(1))];
    assert!(is_linearizable(&good));
    let stale = [operation(0, Some(10), write(1)), operation(11, Some(12), read(0))];
    assert!(!is_linearizable(&stale), "a read of what was replaced before it began");
    let back = [operation(0, Some(20), write(1)), operation(1, Some(3), read(1)), operation(4, Some(6), read(0))];
    assert!(!is_linearizable(&back), "what was seen once is there");
    let unknown = [operation(0, None, write(1)), operation(1, Some(3), read(0)), operation(40, Some(41), read(1))];
    assert!(is_linearizable(&unknown), "a write without an answer may have been done, late");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
