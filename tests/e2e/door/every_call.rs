//! Every call, by every kind of caller, through every door, with hostile values in every field.
//!
//! Calls, fields and types come from `proto/spur.proto` and from the types themselves, so a new call or field is walked without
//! a change here, and the walk fails if it has passed over one. Callers who may only ask what all may ask share the places
//! between them, each with one value whose turn it is; the others send a sample. `SPUR_WALK=all` sends everything,
//! `SPUR_WALK_SEED` repeats a walk.
//! Every request is answered, no daemon breaks, and nothing changes that is not the caller's own.
use std::time::{SystemTime, UNIX_EPOCH};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::possessions::{LivingDaemon, endow, faults_in_logs, possessions};
use super::walk::Walk;
use super::walkers::{
    ADMINISTRATOR, COORDINATOR, GUEST, OPERATOR, STRANGER, VICTIM, WalkGround, Walker, WalkerRights, walkers,
};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{Machine, free_port, join, token};

/// What a daemon may ever have had resident, whatever was asked of it.
const CONTROLLER_MIB_MAX: u64 = 400;
const AGENT_MIB_MAX: u64 = 200;

/// The suite repeats one walk; `SPUR_WALK_SEED=new` begins another.
fn seed() -> u64 {
    match std::env::var("SPUR_WALK_SEED").as_deref() {
        Ok("new") => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(),
        Ok(text) => text.parse().expect("a number"),
        Err(_) => 1_795_134_605,
    }
}

/// Accounts for everybody, so that some are more than users.
fn appoint(head: &Cluster) {
    head.ok("sacctmgr -i add account a && sacctmgr -i add account b");
    for (name, words) in [
        ("root", "account=a"),
        (VICTIM.0, "account=a"),
        (STRANGER.0, "account=a"),
        (GUEST.0, "account=a"),
        (COORDINATOR.0, "account=b"),
        (OPERATOR.0, "account=a adminlevel=operator"),
        (ADMINISTRATOR.0, "account=a adminlevel=admin"),
    ] {
        head.ok(&format!("sacctmgr -i add user {name} {words}"));
    }
    head.ok(&format!("sacctmgr -i add coordinator names={} account=b", COORDINATOR.0));
    let guest = format!("setpriv --reuid={0} --regid={0} --clear-groups", GUEST.1);
    let job = head.ok(&format!("{guest} sbatch --parsable -w a1 -n 1 -D / -o /dev/null -t 9 --wrap 'sleep 500'"));
    head.wait_state(&job, "RUNNING");
}

/// All at the same time, each on a thread of its own.
fn walk_together(group: Vec<Walker>, walk: &Walk) -> (usize, Vec<String>) {
    let one = |walker: Walker| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (n_sent, wrong) = runtime.block_on(walker.walk(walk));
        eprintln!("{}: {n_sent} hostile requests", walker.name);
        (n_sent, wrong)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = group.into_iter().map(|walker| scope.spawn(move || one(walker))).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("no caller breaks"));
        results.fold((0, Vec::new()), |(n_all, mut all), (n_sent, wrong)| {
            all.extend(wrong);
            (n_all + n_sent, all)
        })
    })
}

#[test]
fn hostile_values_in_every_field_of_every_call_break_nothing() {
    let head = Cluster { dir: new_dir() };
    let (port, agent_port) = (free_port(), free_port());
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{port}", head.dir.display()));
    let node = join(&token(&head, ""), &format!("--node a1 --cpus 8 --memory 1G --listen 127.0.0.1:{agent_port}"));
    let other = join(&token(&head, ""), "--node a2 --cpus 8 --memory 1G");
    let login = join(&token(&head, "--login"), "--node l1 --cpus 1 --memory 1G");
    let seed = seed();
    eprintln!("SPUR_WALK_SEED={seed}");
    let socket = head.dir.join("run/controller.sock");
    let mut walk = on_own_thread(async move {
        let headers = [(wire::node::NODE_HEADER, "a1".to_owned())];
        let caller = RawCaller::open(&Entrance::Local { socket, uid: 0, gid: 0 }, &headers).await;
        Walk::plan(&caller, seed).await
    });
    assert_eq!(walk.commands_without_a_call(), Vec::<&str>::new(), "commands of users that no call takes");
    // An administrator's ordinary requests have done this and that.
    head.ok("scontrol reconfigure");
    head.run("scontrol update nodename=a1,a2 state=resume");
    if is_root() {
        appoint(&head);
    }
    let job = endow(&head);
    walk.victim = job.parse().unwrap();
    let (address, agent_address) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{agent_port}"));
    let ground = WalkGround {
        head: &head,
        address: &address,
        node: &node,
        other: &other,
        login: &login,
        agent_address: &agent_address,
    };
    let mut waiting = walkers(&ground);
    let agent = |machine: &Machine, name: &str| LivingDaemon::new(name, machine.0.agent_pid(name));
    let daemons = || {
        [
            LivingDaemon::new("controller", head.controller_pid()),
            agent(&node, "a1"),
            agent(&other, "a2"),
            agent(&login, "l1"),
        ]
    };
    let before = daemons();
    let (mut n_sent, mut all_wrong) = (0, Vec::new());
    for rights in [WalkerRights::None, WalkerRights::Jobs, WalkerRights::All] {
        let (group, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|walker| walker.rights == rights);
        waiting = rest;
        let had = possessions(&head, &job, rights);
        let (n, wrong) = walk_together(group, &walk);
        n_sent += n;
        all_wrong.extend(wrong);
        assert_eq!(daemons(), before, "{rights:?} ended a daemon\n{}{}", head.logs(), node.0.logs());
        for (had, has) in had.iter().zip(possessions(&head, &job, rights)) {
            assert_eq!(*had, has, "{rights:?} changed what is not its own");
        }
    }
    for daemon in &before {
        let most = if daemon.name == "controller" { CONTROLLER_MIB_MAX } else { AGENT_MIB_MAX };
        eprintln!("{}: {} MiB resident at most", daemon.name, daemon.resident_mib());
        assert!(daemon.resident_mib() <= most, "{daemon:?} had {} MiB", daemon.resident_mib());
    }
    for machine in [&head, &node.0, &other.0, &login.0] {
        assert_eq!(faults_in_logs(machine), Vec::<String>::new());
    }
    let some = &all_wrong[..all_wrong.len().min(40)];
    assert!(all_wrong.is_empty(), "{} answers, such as\n{}\n{}", all_wrong.len(), some.join("\n"), head.logs());
    let untouched = walk.untouched();
    let some = &untouched[..untouched.len().min(40)];
    assert!(untouched.is_empty(), "{} fields were never hostile, such as\n{}", untouched.len(), some.join("\n"));
    eprintln!("{n_sent} requests, {} fields", walk.n_touched());
    assert!(n_sent > 2_000, "{n_sent} requests are no walk");
    head.ok("scontrol ping");
    // Jobs outlive their machines' agents.
    head.run("scancel -t running $(squeue -h -t running -o %A)");
}
