//! Suspension with real processes: everything of a job stands still, on every node, through crashes, and its clock with it.
use std::collections::BTreeMap;
use std::fs;

use crate::cluster::{Cluster, is_alive, kill_9};

const TWO_NODES: &str = "cluster_name = \"frozen\"\n\
    [agent]\nsuspend_grace = 0\nkill_wait = 2\n\
    [[nodes]]\nnames = \"n[1-2]\"\ncpus = 4\nmemory_mb = 4000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

/// Says who it is, hides children in every way, runs a step on all nodes.
const FAMILY: &str = "#!/bin/bash
trap 'echo term >> heard' TERM
echo $$ > pid.shell
setsid sleep 1000 & echo $! > pid.session
(nohup sleep 1001 >/dev/null 2>&1 & echo $! > pid.orphan)
srun --overlap sh -c 'echo $$ > pid.task-$SLURM_PROCID; while :; do echo x >> beat-$SLURM_PROCID; sleep 0.02; done' &
while :; do echo x >> beat-shell; sleep 0.02; done
";

fn pids(cluster: &Cluster, names: &[&str]) -> BTreeMap<String, i32> {
    let read = |name: &&str| {
        let text = cluster.wait_file(&format!("pid.{name}"), |text| text.ends_with('\n'));
        (name.to_string(), text.trim().parse().expect("a pid"))
    };
    names.iter().map(read).collect()
}

/// Whoever has a SIGSTOP waiting in the kernel runs no more: one that waits there for a child which was stopped first, or for its turn.
fn state(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let has_stop = |name: &str| u64::from_str_radix(field(name), 16).unwrap_or(0) & (1 << (libc::SIGSTOP - 1)) != 0;
    match field("State:").get(..1) {
        Some(_) if has_stop("SigPnd:") || has_stop("ShdPnd:") => "T".into(),
        state => state.unwrap_or("gone").into(),
    }
}

fn stands_still(state: &str) -> bool {
    state == "T"
}

fn wait_all(cluster: &Cluster, pids: &BTreeMap<String, i32>, what: &str, holds: impl Fn(&str) -> bool) {
    cluster.wait_until("true", |_| pids.values().all(|pid| holds(&state(*pid))));
    for (name, pid) in pids {
        assert!(holds(&state(*pid)), "{name} is {}, not {what}", state(*pid));
    }
}

fn family(cluster: &Cluster) -> (String, BTreeMap<String, i32>) {
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    fs::write(cluster.dir.join("work/family.sh"), FAMILY).unwrap();
    let job = cluster.sbatch("-N2 -t 10 family.sh");
    let pids = pids(cluster, &["shell", "session", "orphan", "task-0", "task-1"]);
    (job, pids)
}

fn field(cluster: &Cluster, job: &str, name: &str) -> String {
    let record = cluster.ok(&format!("scontrol -o show job {job}"));
    let found = record.split(' ').find_map(|word| word.strip_prefix(&format!("{name}=")));
    found.unwrap_or_else(|| panic!("no {name} in {record}")).to_string()
}

#[test]
fn everything_of_a_job_stands_still_goes_on_and_dies() {
    let cluster = Cluster::configured(TWO_NODES);
    let (job, pids) = family(&cluster);
    cluster.wait_file("beat-1", |text| !text.is_empty());
    for _ in 0..2 {
        assert_eq!(cluster.ok(&format!("scontrol suspend {job}")), "");
        wait_all(&cluster, &pids, "stopped", stands_still);
        assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%t %T %M'")).split(' ').count(), 3);
        assert_eq!(cluster.ok("squeue -h -o '%i %t'"), format!("{job} S"));
        assert!(!cluster.ok("sinfo -h -o %T").contains("idle"));
        let beats = |name: &str| cluster.file(name).len();
        let before = (beats("beat-shell"), beats("beat-0"), beats("beat-1"));
        std::thread::sleep(std::time::Duration::from_millis(150));
        assert_eq!((beats("beat-shell"), beats("beat-0"), beats("beat-1")), before);
        cluster.ok(&format!("scontrol resume {job}"));
        wait_all(&cluster, &pids, "running", |state| matches!(state, "S" | "R" | "D"));
        for name in ["beat-shell", "beat-0", "beat-1"] {
            cluster.wait_file(name, |text| text.len() > before.0.max(before.1).max(before.2));
        }
    }
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    assert!(pids.values().all(|pid| !is_alive(*pid)), "{pids:?}");
    // Frozen processes are not asked first.
    assert_eq!(cluster.file("heard"), "");
}

#[test]
fn a_suspension_outlives_the_deaths_of_controller_and_agents() {
    let cluster = Cluster::configured(TWO_NODES);
    let (job, pids) = family(&cluster);
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    let times = |cluster: &Cluster| {
        ["RunTime", "SecsPreSuspend", "SuspendTime", "EndTime"].map(|name| field(cluster, &job, name))
    };
    let before = times(&cluster);
    kill_9(cluster.controller_pid());
    kill_9(cluster.agent_pid("n1"));
    kill_9(cluster.agent_pid("n2"));
    assert!(pids.values().all(|pid| stands_still(&state(*pid))));
    std::thread::sleep(std::time::Duration::from_secs(1));
    cluster.start("");
    cluster.wait_for("sinfo -h -o '%D %T'", "2 mixed");
    assert_eq!(field(&cluster, &job, "JobState"), "SUSPENDED");
    assert_eq!(times(&cluster), before);
    assert!(pids.values().all(|pid| stands_still(&state(*pid))));
    cluster.ok(&format!("scontrol resume {job}"));
    wait_all(&cluster, &pids, "running", |state| matches!(state, "S" | "R" | "D"));
    assert_ne!(field(&cluster, &job, "EndTime"), before[3]);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    assert!(pids.values().all(|pid| !is_alive(*pid)));
}

#[test]
fn a_node_that_does_not_answer_is_named_and_frozen_when_it_does() {
    let cluster = Cluster::configured(TWO_NODES);
    let (job, pids) = family(&cluster);
    cluster.wait_file("beat-1", |text| !text.is_empty());
    let second = cluster.ok(&format!("squeue -h -j {job} -o %N"));
    assert_eq!(second, "n[1-2]");
    let deaf = cluster.agent_pid("n2");
    // SAFETY: a plain system call on a process of this cluster.
    unsafe { libc::kill(deaf, libc::SIGSTOP) };
    cluster.ok(&format!("scontrol suspend {job}"));
    cluster.wait_until(&format!("scontrol show job {job}"), |said| said.out.contains("SuspendPending=n2\n"));
    // SAFETY: as above.
    unsafe { libc::kill(deaf, libc::SIGCONT) };
    cluster.wait_until(&format!("scontrol show job {job}"), |said| !said.out.contains("SuspendPending"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    // The last word counts.
    cluster
        .ok(&format!("scontrol resume {job}; scontrol suspend {job}; scontrol resume {job}; scontrol suspend {job}"));
    cluster.wait_until(&format!("scontrol show job {job}"), |said| !said.out.contains("SuspendPending"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
}

#[test]
fn what_suspension_refuses_and_what_it_says() {
    let cluster = Cluster::configured(TWO_NODES);
    let job = cluster.sbatch("--wrap='trap \"echo usr1 > heard\" USR1; while :; do sleep 0.05; done'");
    cluster.wait_state(&job, "RUNNING");
    let check = |line: &str, err: &str, code: i32| {
        let said = cluster.run(line);
        assert_eq!((said.out.as_str(), said.err.trim_end(), said.code), ("", err, code), "{line}");
    };
    check("scontrol suspend", "too few arguments for keyword:suspend", 1);
    check("scontrol suspend abc", "Invalid job id specified for job abc", 1);
    check("scontrol suspend 99999", "Invalid job id specified for job 99999", 1);
    check(&format!("scontrol resume {job}"), &format!("Job is not suspended for job {job}"), 1);
    check(&format!("scontrol susp {job}"), "", 0);
    check(&format!("scontrol suspend {job}"), &format!("Job is already suspended for job {job}"), 1);
    check(
        &format!("scancel -s USR1 {job}"),
        &format!("scancel: error: Kill job error on job id {job}: Job can not be altered now, try again later"),
        1,
    );
    let step = cluster.run(&format!("srun --jobid={job} --overlap --immediate=1 true"));
    assert_ne!(step.code, 0, "{step:?}");
    check(&format!("scontrol RESUME jobid={job}"), "", 0);
    assert_eq!(cluster.file("heard"), "");
    // A signal stops it too, but its clock goes on.
    check(&format!("scancel -f -s STOP {job}"), "", 0);
    cluster.wait_state(&job, "STOPPED");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o %t")), "ST");
    check(&format!("scancel -f -s CONT {job}"), "", 0);
    cluster.wait_state(&job, "RUNNING");
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    let finished = format!("Job/step already completing or completed for job {job}");
    check(&format!("scontrol suspend {job}"), &finished, 1);

    let array = cluster.sbatch("-c4 -a 1-3 --wrap='sleep 1000'");
    cluster.wait_for(&format!("squeue -h -r -j {array} -t R -o %K | sort"), "1\n2");
    let said = cluster.run(&format!("scontrol suspend {array}"));
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.err, format!("{array}_1-2: No error\n{array}_3: Job is pending execution\n"));
    cluster.ok(&format!("scontrol resume {array}_1,{array}_2"));
    check(&format!("scontrol suspend {array}_99"), &format!("{array}_99: Invalid job id specified"), 1);
    cluster.ok(&format!("scancel {array}"));
}

/// A process that dies while suspended ends the job.
#[test]
fn a_death_from_outside_ends_the_suspension() {
    let cluster = Cluster::configured(TWO_NODES);
    let job = cluster.sbatch("--no-requeue --wrap='echo $$ > pid.shell; exec sleep 1000'");
    let pids = pids(&cluster, &["shell"]);
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    kill_9(pids["shell"]);
    cluster.wait_state(&job, "FAILED");
    assert_eq!(field(&cluster, &job, "ExitCode"), "0:9");
    assert_eq!(field(&cluster, &job, "EndTime"), field(&cluster, &job, "SuspendTime"));
}

/// The end moves by as much as the job stood still.
#[test]
fn a_limit_moves_with_a_suspension() {
    let cluster = Cluster::configured(TWO_NODES);
    let job = cluster.sbatch("-t 1 --wrap 'while :; do sleep 0.05; done'");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok(&format!("scontrol suspend {job}"));
    let shown = cluster.ok(&format!("squeue -h -j {job} -o '%M %L'"));
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%t %M %L'")), format!("S {shown}"));
    let before = field(&cluster, &job, "EndTime");
    cluster.ok(&format!("scontrol resume {job}"));
    assert_ne!(field(&cluster, &job, "EndTime"), before);
    cluster.ok(&format!("scancel {job}"));
}

#[test]
fn a_heterogeneous_job_stands_still_on_all_its_nodes_and_its_steps_wait() {
    let cluster = Cluster::configured(TWO_NODES);
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    let script = "#!/bin/bash\n#SBATCH -n1 -J h0\n#SBATCH hetjob\n#SBATCH -n1 -J h1\n\
        srun --het-group=0,1 --overlap sh -c 'echo $$ > pid.task-$SLURM_PROCID; sleep 1000' & echo $$ > pid.shell; wait\n";
    fs::write(cluster.dir.join("work/het.sh"), script).unwrap();
    let job = cluster.sbatch("het.sh");
    let pids = pids(&cluster, &["shell", "task-0", "task-1"]);
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    assert_eq!(cluster.ok("squeue -h -S i -o '%i %t'"), format!("{job}+0 S\n{job}+1 S"));
    let waiting = cluster.run(&format!(
        "timeout 60 srun --jobid={job} --het-group=0,1 --overlap true 2>waits & WAITS=$!
         until grep -q retrying waits; do kill -0 $WAITS || break; sleep 0.02; done; kill $WAITS; wait; cat waits >&2"
    ));
    assert!(waiting.err.contains("step creation temporarily disabled, retrying"), "{waiting:?}");
    let refused = cluster.run(&format!("srun --jobid={job} --overlap --immediate=1 true"));
    assert!(refused.err.contains("Requested operation is presently disabled"), "{refused:?}");
    cluster.ok(&format!("scontrol resume {job}"));
    wait_all(&cluster, &pids, "running", |state| matches!(state, "S" | "R" | "D"));
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_until("squeue -h", |said| said.out.is_empty());
    assert!(pids.values().all(|pid| !is_alive(*pid)), "{pids:?}");
}

#[test]
fn every_node_is_told_steps_stay_running_and_a_lost_node_may_be_done_without() {
    let cluster = Cluster::configured(TWO_NODES);
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    fs::write(cluster.dir.join("work/family.sh"), FAMILY).unwrap();
    let job = cluster.sbatch("-N2 --no-kill family.sh");
    let pids = pids(&cluster, &["shell", "session", "orphan", "task-0", "task-1"]);
    cluster.ok(&format!("scontrol suspend {job}"));
    wait_all(&cluster, &pids, "stopped", stands_still);
    let log = fs::read_to_string(cluster.dir.join("log/controller.log")).expect("the controller's log");
    assert_eq!(log.matches("sent SuspendJob").count(), 2, "{log}");
    assert!(log.contains("resume=false"), "{log}");
    let steps = || cluster.ok(&format!("squeue -h -s -j {job} -o '%i %M'"));
    let before = steps();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(steps(), before, "the clocks of steps stand still");
    assert!(cluster.ok(&format!("scontrol show step {job}.0")).contains("State=RUNNING"));
    assert_eq!(cluster.ok(&format!("sacct -n -P -j {job}.0 -o State")), "SUSPENDED");
    let down = "scontrol update nodename=n2 state=down reason=test";
    cluster.ok(down);
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%t %N'")), "S n1");
    cluster.ok(&format!("scontrol resume {job}"));
    let beats = cluster.file("beat-shell").len();
    cluster.wait_file("beat-shell", |text| text.len() > beats);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
}
