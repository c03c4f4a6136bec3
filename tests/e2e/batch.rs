//! Batch jobs: submitted, run, watched, cancelled.
use crate::cluster::{Cluster, is_alive};

#[test]
fn a_script_runs_and_its_output_and_exit_code_are_kept() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let said = cluster.run("sbatch --wrap='echo hello from $SLURM_JOB_ID on $SLURMD_NODENAME; exit 3'");
    assert_eq!(said.out, "Submitted batch job 1\n", "{said:?}");
    cluster.wait_state("1", "FAILED");
    assert_eq!(cluster.file("slurm-1.out"), "hello from 1 on n1\n");
    assert!(cluster.ok("scontrol show job 1").contains("ExitCode=3:0"));
}

#[test]
fn sbatch_wait_gives_the_exit_code_of_the_script() {
    let cluster = Cluster::up("--nodes 1");
    assert_eq!(cluster.run("sbatch -W --wrap='exit 0'").code, 0);
    assert_eq!(cluster.run("sbatch -W --wrap='exit 7'").code, 7);
}

#[test]
fn directives_count_until_the_first_command() {
    let cluster = Cluster::up("--nodes 1");
    let script = "#!/bin/sh\n#SBATCH -J named --output=out.%x.%j\n\n# a remark\n#SBATCH -n 2\necho $SLURM_NTASKS $1\n#SBATCH -J late\n";
    std::fs::write(cluster.dir.join("script.sh"), script).unwrap();
    let job = cluster.sbatch(&format!("-W {}/script.sh word", cluster.dir.display()));
    assert_eq!(cluster.file(&format!("out.named.{job}")), "2 word\n");
}

#[test]
fn a_script_may_come_from_standard_input() {
    let cluster = Cluster::up("--nodes 1");
    let said = cluster.run("printf '#!/bin/bash\\necho from stdin\\n' | sbatch -W -o stdin.out");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(cluster.file("stdin.out"), "from stdin\n");
}

#[test]
fn jobs_wait_for_cpus_and_start_when_they_are_free() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let first = cluster.sbatch("-n 2 --wrap='while [ ! -e go ]; do sleep 0.02; done'");
    cluster.wait_state(&first, "RUNNING");
    let second = cluster.sbatch("-n 2 --wrap=true");
    cluster.wait_for(&format!("squeue -h -j {second} -o '%T %r'"), "PENDING Resources");
    cluster.ok("touch go");
    cluster.wait_state(&second, "COMPLETED");
}

#[test]
fn a_cancelled_job_leaves_no_process_behind_not_even_one_that_called_setsid() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--wrap='setsid sleep 1000 & echo $! > daemon.pid; (trap \"\" TERM; sleep 1000) & wait'");
    let pid = cluster.wait_file("daemon.pid", |text| text.ends_with('\n')).trim().parse().unwrap();
    assert!(is_alive(pid));
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    assert!(!is_alive(pid));
    assert!(cluster.file(&format!("slurm-{job}.out")).contains("CANCELLED"));
}

#[test]
fn an_array_runs_every_task_once() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    let job = cluster.sbatch("-W -a 1-20%5 -o task.%a --wrap='echo $SLURM_ARRAY_TASK_ID >> all'");
    let mut tasks: Vec<u32> = cluster.file("all").lines().map(|line| line.parse().unwrap()).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, (1..=20).collect::<Vec<u32>>());
    assert_eq!(cluster.ok(&format!("squeue -h -t CD -r -j {job} | wc -l")), "20");
}

#[test]
fn a_dependent_job_waits_for_the_end_of_the_other() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let first = cluster.sbatch("--wrap='while [ ! -e go ]; do sleep 0.02; done; echo first >> order'");
    let second = cluster.sbatch(&format!("-d afterok:{first} --wrap='echo second >> order'"));
    cluster.wait_for(&format!("squeue -h -j {second} -o %r"), "Dependency");
    cluster.ok("touch go");
    cluster.wait_state(&second, "COMPLETED");
    assert_eq!(cluster.file("order"), "first\nsecond\n");
}

#[test]
fn a_held_job_starts_when_it_is_released() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("-H --wrap=true");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%t %r'")), "PD JobHeldUser");
    cluster.ok(&format!("scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
}

#[test]
fn a_requeued_job_runs_again_and_counts_its_restarts() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster
        .sbatch("--requeue --wrap='echo run $SLURM_RESTART_COUNT >> runs; while [ ! -e go ]; do sleep 0.02; done'");
    cluster.wait_file("runs", |text| text.lines().count() == 1);
    cluster.ok(&format!("scontrol requeue {job}"));
    cluster.wait_file("runs", |text| text.contains("run 1"));
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    assert!(cluster.ok(&format!("scontrol show job {job}")).contains("Restarts=1"));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    for (line, message) in [
        ("sbatch -n 100 --wrap=true", "Requested node configuration is not available"),
        ("sbatch -p nowhere --wrap=true", "invalid partition specified: nowhere"),
        ("sbatch -d afterok:x --wrap=true", "Job dependency problem"),
        ("sbatch --frob --wrap=true", "unrecognized option '--frob'"),
        ("sbatch missing.sh", "missing.sh"),
    ] {
        let said = cluster.run(line);
        assert_ne!(said.code, 0, "{line}: {said:?}");
        assert!(said.err.contains(message), "{line}: {said:?}");
        assert_eq!(said.out, "", "{line}");
    }
    assert_eq!(cluster.ok("squeue -h -t all"), "");
    assert_eq!(cluster.sbatch("--wrap=true"), "1");
}

#[test]
fn a_job_for_more_nodes_than_there_are_waits_and_blocks_nobody() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let large = cluster.sbatch("-N 3 --wrap=true");
    cluster.wait_for(&format!("squeue -h -j {large} -o '%t %r'"), "PD PartitionNodeLimit");
    let small = cluster.sbatch("--wrap=true");
    cluster.wait_state(&small, "COMPLETED");
}

#[test]
fn a_job_that_requeues_itself_is_told_that_it_was_done() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let script = "#!/bin/bash\ntrap : TERM\n[ -n \"$SLURM_RESTART_COUNT\" ] && echo again && exit\n\
                  for i in 1 2 3 4 5; do scontrol requeue $SLURM_JOB_ID; echo told $?; exit; done\n";
    std::fs::write(cluster.dir.join("work/self.sh"), script).unwrap();
    cluster.sbatch("--requeue -o self.out --open-mode=append self.sh");
    let said = cluster.wait_file("self.out", |text| text.contains("again"));
    assert!(said.contains("told 0\n"), "{said}");
}
