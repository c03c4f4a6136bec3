//! Five hosts and a bad network between them: three controllers and two nodes, cut off from each other, delayed, robbed of what
//! they send, killed and frozen, while clients on several of them work. What they were promised must hold.
//!
//! Needs root (namespaces). `SPUR_TORTURE=seconds` makes it longer, `SPUR_SEED=number` repeats a schedule as far as the machine allows.
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, kill_9, new_dir};
use crate::switch::{Switch, address};
use crate::torture::{Dice, endure, schedule};

/// Controllers first, then nodes.
const N_CONTROLLERS: usize = 3;
const N_HOSTS: usize = 5;

struct Hosts {
    switch: Switch,
    machines: Vec<Cluster>,
}

impl Hosts {
    fn new() -> Result<Hosts, String> {
        let switch = Switch::new(N_HOSTS)?;
        let machines: Vec<Cluster> = (0..N_HOSTS).map(|_| Cluster { dir: new_dir() }).collect();
        let hosts = Hosts { switch, machines };
        let head = &hosts.machines[0];
        hosts.ok(0, &format!("spur init --dir {} --listen {}", head.dir.display(), address(0)));
        for host in 1..N_HOSTS {
            let kind = if host < N_CONTROLLERS { " --controller" } else { "" };
            let said = head.ok(&format!("spur token{kind} --dir {}", head.dir.display()));
            let word = said.rsplit_once(' ').unwrap().1;
            let own = match host < N_CONTROLLERS {
                true => format!("--listen {}", address(host)),
                false => format!("--node a{} --cpus 32 --memory 4G", host + 1),
            };
            hosts.ok(host, &format!("spur join{kind} {word} {own} --dir {}", hosts.machines[host].dir.display()));
        }
        Ok(hosts)
    }

    /// On the host itself: what it starts lives there.
    fn ok(&self, host: usize, line: &str) -> String {
        self.machines[host].ok(&format!("ip netns exec {} {line}", self.switch.names[host]))
    }

    fn start(&self, host: usize) {
        self.ok(host, &format!("spur up --dir {}", self.machines[host].dir.display()));
    }

    fn pid(&self, host: usize) -> i32 {
        match host < N_CONTROLLERS {
            true => self.machines[host].controller_pid(),
            false => self.machines[host].agent_pid(&format!("a{}", host + 1)),
        }
    }

    /// The controller that leads, as far as one of them can tell.
    fn leader(&self, dice: &mut Dice) -> usize {
        let said =
            self.machines[0].run(&format!("timeout 5 spur status --json --dir {}", self.machines[0].dir.display()));
        let status: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
        let members = status["controllers"]["members"].as_array().cloned().unwrap_or_default();
        let leads = members.iter().find(|member| member["is_leader"] == true).and_then(|member| member["id"].as_u64());
        leads.map_or_else(|| dice.below(N_CONTROLLERS as u64) as usize, |id| id as usize - 1)
    }

    fn break_things(&self, lasts: Duration, seed: u64) {
        let end = Instant::now() + lasts;
        let mut dice = Dice(seed);
        self.switch.set(|rules| rules.seed = seed);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200 + dice.below(800)));
            let controller = dice.below(N_CONTROLLERS as u64) as usize;
            let any = dice.below(N_HOSTS as u64) as usize;
            let while_ = Duration::from_millis(300 + dice.below(2700));
            match dice.below(8) {
                0 => {
                    eprintln!("the leader is cut off");
                    let leader = self.leader(&mut dice);
                    self.switch.isolate(leader);
                }
                1 => {
                    eprintln!("host {any} is cut off");
                    self.switch.isolate(any);
                }
                2 => {
                    let other = (any + 1 + dice.below(N_HOSTS as u64 - 1) as usize) % N_HOSTS;
                    eprintln!("host {any} does not reach {other}");
                    self.switch.set(|rules| rules.cuts.extend([(any, other)]));
                }
                3 => {
                    let leader = self.leader(&mut dice);
                    eprintln!("host {leader}, which leads, hears but is not heard");
                    self.switch.set(|rules| rules.cuts.extend((0..N_HOSTS).map(|other| (leader, other))));
                }
                4 => {
                    let (n_lost, delay) = (dice.below(150), Duration::from_millis(dice.below(120)));
                    eprintln!("{n_lost} of 1000 frames are lost, all are late by up to {} ms", delay.as_millis());
                    self.switch.set(|rules| (rules.n_lost, rules.delay) = (n_lost, delay));
                }
                5 => {
                    eprintln!("controller {controller} stands still");
                    let pid = self.pid(controller);
                    // SAFETY: plain system calls.
                    unsafe { libc::kill(pid, libc::SIGSTOP) };
                    std::thread::sleep(while_);
                    unsafe { libc::kill(pid, libc::SIGCONT) };
                    continue;
                }
                6 => {
                    eprintln!("controller {controller} is killed");
                    kill_9(self.pid(controller));
                    std::thread::sleep(while_ / 2);
                    self.start(controller);
                    continue;
                }
                _ => {
                    let node = N_CONTROLLERS + dice.below((N_HOSTS - N_CONTROLLERS) as u64) as usize;
                    eprintln!("the agent of host {node} is killed");
                    kill_9(self.pid(node));
                    std::thread::sleep(while_ / 2);
                    self.start(node);
                    continue;
                }
            }
            std::thread::sleep(while_);
            self.switch.heal();
        }
        self.switch.heal();
    }
}

impl Drop for Hosts {
    /// Without a majority, orderly ends take their time.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            (0..N_HOSTS).for_each(|host| kill_9(self.pid(host)));
        }
    }
}

#[test]
fn a_bad_network_loses_doubles_and_reorders_nothing() {
    let (lasts, seed) = schedule(10);
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    // Users are on controllers' machines and on a node's.
    let places = [&hosts.machines[0], &hosts.machines[1], &hosts.machines[2]];
    endure(&places, || hosts.break_things(lasts, seed));
}

#[test]
fn a_full_disk_loses_nothing_that_was_promised() {
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: a small disk needs root");
    }
    let cluster = Cluster { dir: new_dir() };
    let state = cluster.dir.join("state");
    std::fs::create_dir_all(&state).unwrap();
    let _mount = Mount(state.display().to_string());
    cluster.ok(&format!("mount -t tmpfs -o size=24m,mode=711 tmpfs {}", state.display()));
    cluster.start("--nodes 1 --cpus 4");
    let mut promised = vec![cluster.sbatch("-H -J before --wrap true")];
    let _ = cluster.run(&format!("dd if=/dev/zero of={}/fill bs=64k status=none", state.display()));
    let mut n_refused = 0;
    for round in 0..40 {
        // Scripts that differ need room.
        let said = cluster.run(&format!(
            "sbatch --parsable -H -J full-{round} --wrap \"true $(head -c 60000 /dev/urandom | base64 -w0)\""
        ));
        match said.code {
            0 => promised.push(said.out.trim().to_owned()),
            _ => n_refused += 1,
        }
        if n_refused >= 2 {
            break;
        }
    }
    assert!(n_refused > 0, "the disk was never full");
    // What it cannot write it does not answer for; it answers questions, and goes on as soon as there is room.
    let pid = cluster.controller_pid();
    cluster.ok("squeue -h");
    cluster.ok(&format!("rm {}/fill", state.display()));
    cluster.wait_until("sbatch --parsable -H -J after --wrap true", |said| said.code == 0);
    assert_eq!(cluster.controller_pid(), pid);
    kill_9(pid);
    cluster.start("");
    let known = cluster.ok("squeue -h -o %i");
    let known: Vec<&str> = known.lines().collect();
    let lost: Vec<_> = promised.iter().filter(|id| !known.contains(&id.as_str())).collect();
    assert!(lost.is_empty(), "promised, and gone: {lost:?} of {promised:?}");
    let next = cluster.sbatch("-H --wrap true");
    assert!(!known.contains(&next.as_str()), "ids are not used again");
    cluster.ok(&format!("spur down --dir {}", cluster.dir.display()));
}

/// Gone with its test.
pub struct Mount(pub String);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["-l", &self.0]).status();
    }
}
