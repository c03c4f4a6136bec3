//! Steps: `srun` alone and inside allocations, and `salloc`.
use crate::cluster::{Cluster, is_alive, kill_9, said};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn tasks_stand_still_for_a_debugger_and_are_named() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let running = cluster.shell("exec srun -n2 --debugger-test touch begun 2> told").spawn();
    let mut running = running.expect("srun starts");
    let told = cluster.wait_file("told", |text| text.matches("executable:").count() == 2);
    let lines: Vec<&str> = told.lines().filter(|line| line.contains("executable:")).collect();
    for (rank, line) in lines.iter().enumerate() {
        let rest = line.strip_prefix(&format!("srun: task:{rank}, host:n1, pid:")).expect("ranks in order");
        let pid: u32 = rest.strip_suffix(", executable:touch").expect("the program as it was given").parse().unwrap();
        cluster.wait_for(&format!("grep State: /proc/{pid}/status"), "State:\tT (stopped)");
        let program = cluster.ok(&format!("readlink /proc/{pid}/exe"));
        assert!(!program.contains("spur"), "it has become its program: {program}");
    }
    // SAFETY: a plain call on a child of ours.
    unsafe { libc::kill(running.id() as i32, libc::SIGTERM) };
    running.wait().unwrap();
    assert!(cluster.run("ls begun").code != 0, "it was ended without having run");
}

#[test]
fn srun_alone_runs_its_tasks_on_several_nodes_and_brings_their_output() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let out = cluster.ok("srun -N2 -n4 -l bash -c 'echo $SLURMD_NODENAME $SLURM_NTASKS' | sort");
    assert_eq!(out, "0: n1 4\n1: n1 4\n2: n2 4\n3: n2 4");
    assert_eq!(cluster.ok("squeue -h"), "");
}

#[test]
fn whole_nodes_get_alike_many_tasks_unless_they_are_packed() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    let placed = |words: &str| cluster.ok(&format!("{words} -l printenv SLURM_NODEID | sort")).replace('\n', ", ");
    assert_eq!(placed("srun --exclusive -N2 -n4"), "0: 0, 1: 0, 2: 1, 3: 1");
    for words in ["-m pack", "-O -m pack", "-m block,pack"] {
        assert_eq!(placed(&format!("srun --exclusive -N2 -n4 {words}")), "0: 0, 1: 0, 2: 0, 3: 1", "{words}");
    }
    assert_eq!(placed("salloc -Q --exclusive -N2 -n4 srun"), "0: 0, 1: 0, 2: 1, 3: 1");
    assert_eq!(placed("salloc -Q --exclusive -N2 -n4 srun -m pack"), "0: 0, 1: 0, 2: 0, 3: 1");
}

#[test]
fn a_site_may_have_all_nodes_packed() {
    let cluster = Cluster::configured(
        "cluster_name = \"packed\"\n[scheduler]\nfills_nodes = true\n[[nodes]]\nnames = \"n[1-2]\"\ncpus = 4\n\
         [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
    );
    let placed = |words: &str| cluster.ok(&format!("{words} -l printenv SLURM_NODEID | sort")).replace('\n', ", ");
    assert_eq!(placed("srun --exclusive -N2 -n4"), "0: 0, 1: 0, 2: 0, 3: 1");
    assert_eq!(placed("salloc -Q --exclusive -N2 -n4 srun"), "0: 0, 1: 0, 2: 0, 3: 1");
    assert_eq!(placed("srun --exclusive -N2 -n4 -m nopack"), "0: 0, 1: 0, 2: 1, 3: 1");
    assert!(cluster.ok("scontrol show config").contains("CR_PACK_NODES"));
}

#[test]
fn the_end_of_the_output_is_not_kept_for_an_srun_that_was_killed() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let step = "srun sh -c \"echo begun; echo \\$PPID > supervisor; exec sleep 1000\"";
    let job = cluster.sbatch(&format!("-o /dev/null --wrap '{step} & echo $! > client; wait; exec sleep 1000'"));
    let pid = |name: &str| cluster.wait_file(name, |text| text.ends_with('\n')).trim().parse::<i32>().unwrap();
    let (supervisor, client) = (pid("supervisor"), pid("client"));
    assert!(is_alive(supervisor));
    kill_9(client);
    cluster.ok(&format!("scancel {job}"));
    let began = Instant::now();
    cluster.wait_until("true", |_| !is_alive(supervisor));
    // For one that may come again it is kept for a minute.
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
}

#[test]
fn srun_gives_the_exit_code_and_tells_which_task_failed() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let said = cluster.run("srun -n2 bash -c 'exit $((SLURM_PROCID * 3))'");
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("srun: error: n1: task 1: Exited with exit code 3"), "{said:?}");
}

#[test]
fn srun_carries_standard_input_to_every_task() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let out = cluster.ok("seq 1000 | srun -N2 -n2 -l cat | sort | md5sum");
    let expected = cluster.ok("(seq 1000 | sed 's/^/0: /'; seq 1000 | sed 's/^/1: /') | sort | md5sum");
    assert_eq!(out, expected);
}

#[test]
fn a_large_output_arrives_whole() {
    let cluster = Cluster::up("--nodes 1");
    assert_eq!(cluster.ok("srun head -c 20000000 /dev/zero | wc -c"), "20000000");
}

#[test]
fn srun_in_a_batch_job_is_a_step_of_it() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let job = cluster.sbatch("-W -N2 -n4 -o steps.out --wrap='srun bash -c \"echo \\$SLURM_STEP_ID.\\$SLURM_PROCID\" | sort; srun -N1 -n1 echo second $SLURM_JOB_ID'");
    assert_eq!(cluster.file("steps.out"), format!("0.0\n0.1\n0.2\n0.3\nsecond {job}\n"));
}

#[test]
fn salloc_holds_nodes_while_its_command_runs() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let said =
        cluster.run("salloc -N2 bash -c 'echo $SLURM_JOB_NODELIST; srun hostname | wc -l; squeue -h -o %t; exit 5'");
    assert_eq!(said.out, "n[1-2]\n2\nR\n", "{said:?}");
    assert_eq!(said.code, 5);
    assert!(said.err.contains("salloc: Granted job allocation 1"), "{said:?}");
    assert!(said.err.contains("salloc: Relinquishing job allocation 1"), "{said:?}");
    cluster.wait_for("squeue -h", "");
}

#[test]
fn a_signal_to_srun_reaches_the_tasks() {
    let cluster = Cluster::up("--nodes 1");
    let child = cluster
        .shell("exec srun bash -c 'trap \"echo caught; exit 0\" USR1; touch ready; while :; do sleep 0.02; done'")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    cluster.wait_until("test -e ready", |said| said.code == 0);
    // SAFETY: a plain system call.
    unsafe { libc::kill(child.id() as i32, libc::SIGUSR1) };
    let said = said(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "caught\n"), "{said:?}");
}

#[test]
fn programs_around_each_task_change_its_environment_and_see_its_end() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    cluster.ok("printf '#!/bin/sh\\necho export GREETING=hello $SLURM_PROCID\\necho unset HOME\\necho print before $SLURM_PROCID\\n' >pro; printf '#!/bin/sh\\necho after $SLURM_PROCID\\n' >epi; chmod +x pro epi");
    let said = cluster.run("srun -n2 --task-prolog=./pro --task-epilog=$PWD/epi sh -c 'echo $GREETING/$HOME; exit $SLURM_PROCID' | sort; exit ${PIPESTATUS[0]}");
    assert_eq!(said.out, "after 0\nafter 1\nbefore 0\nbefore 1\nhello 0/\nhello 1/\n", "{said:?}");
    assert_eq!(said.code, 1, "{said:?}");
    let said = cluster.run("srun --task-epilog=$PWD/epi sh -c 'kill -9 $$'");
    assert_eq!((said.code, said.out.as_str()), (137, "after 0\n"), "{said:?}");
    let said = cluster.run("srun --task-prolog=/bin/false echo never");
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
}

#[test]
fn tasks_of_an_mpi_step_tell_each_other_where_they_are() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let program = r#"#!/bin/bash
ask() { echo "$1" >&$PMI_FD; read -r answer <&$PMI_FD; }
ask "cmd=init pmi_version=1 pmi_subversion=1"
[ "$answer" = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1" ] || echo "init: $answer"
ask "cmd=put kvsname=k key=P$PMI_RANK value=on $SLURMD_NODENAME"
ask "cmd=barrier_in"
next=$(( (PMI_RANK + 1) % PMI_SIZE ))
ask "cmd=get kvsname=k key=P$next"
echo "$PMI_RANK of $PMI_SIZE in $PMI_JOBID: $next ${answer##*value=}"
ask "cmd=barrier_in"
ask "cmd=finalize"
"#;
    std::fs::write(cluster.dir.join("work/ring.sh"), program).unwrap();
    let out = cluster.ok("srun --mpi=pmi2 -N2 -n3 bash ring.sh | sort");
    assert_eq!(out, "0 of 3 in 1.0: 1 on n1\n1 of 3 in 1.0: 2 on n2\n2 of 3 in 1.0: 0 on n1");
    assert!(cluster.ok("srun --mpi=list").starts_with("MPI plugin types are...\n\tnone\n\tpmi2"));
    assert_eq!(cluster.ok("srun sh -c 'echo $PMI_FD'"), "");
}

#[test]
fn a_running_step_can_be_measured_listed_and_looked_at() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let mut child = cluster
        .shell("exec srun -N2 -n2 bash -c 'head -c 3000000 /dev/zero >/dev/null; touch up$SLURM_PROCID; while ! test -e go; do echo tick; sleep 0.05; done; echo seen $SLURM_PROCID; exit 3'")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    cluster.wait_until("test -e up0 && test -e up1", |said| said.code == 0);
    assert_eq!(cluster.ok("sstat -nP -o jobid,ntasks,nodelist -j 1.0"), "1.0|2|n[1-2]");
    let rss = cluster.ok("sstat -n --noconvert -P -o maxrss -j 1");
    assert!(rss.parse::<u64>().unwrap() > 500_000, "{rss}");
    let pids = cluster.ok("scontrol listpids 1.0");
    assert!(pids.starts_with("PID      JOBID    STEPID   LOCALID GLOBALID"), "{pids}");
    assert!(pids.lines().any(|line| line.split_whitespace().skip(1).eq(["1", "0", "0", "1"])), "{pids}");
    let layout = cluster.ok("sattach --layout 1.0");
    assert!(layout.contains("2 tasks, 2 nodes (n[1-2])") && layout.contains("Node 1 (n2), 1 task(s): 1"), "{layout}");
    // It goes on when both tasks have been heard there.
    let said = cluster.run(
        "sattach -l 1.0 >looked & LOOKS=$!
         until grep -q '^0: tick' looked && grep -q '^1: tick' looked; do kill -0 $LOOKS || break; sleep 0.02; done
         touch go; wait $LOOKS; CODE=$?; grep seen looked | sort; exit $CODE",
    );
    assert_eq!((said.out.as_str(), said.code), ("0: seen 0\n1: seen 1\n", 3), "{said:?}");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(cluster.run("sstat -j 1").err.contains("sstat: error: No steps running for job 1"));
}

#[test]
fn a_file_is_copied_to_every_node_of_a_job() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    cluster.ok("head -c 9000000 /dev/urandom >file; chmod 750 file");
    // Both nodes are this machine: what counts is that each agent wrote it.
    let said = cluster
        .run("salloc -Q -N2 bash -c 'sbcast -f -p file $PWD/copy; cmp file copy && stat -c %a copy; sbcast file copy'");
    assert_eq!(said.out, "750\n", "{said:?}");
    assert!(said.err.contains("sbcast: error: REQUEST_FILE_BCAST(n1): File exists"), "{said:?}");
    let said = cluster.run("sbcast file other");
    assert!(said.err.contains("Need a job id") && said.code == 1, "{said:?}");
}

#[test]
fn a_step_may_go_into_one_task_of_an_array() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let array = cluster.sbatch("--array=0-3%1 -o /dev/null --wrap='sleep 600'");
    cluster.wait_for(&format!("squeue -h -j {array} -t R -o %K"), "0");
    let own = cluster.ok(&format!("squeue -h -j {array}_0 -o %A"));
    let inside = cluster.ok(&format!("srun --jobid={array}_0 --overlap printenv SLURM_JOB_ID SLURM_ARRAY_TASK_ID"));
    assert_eq!(inside, format!("{own}\n0"));
    let waiting = cluster.run(&format!("srun --jobid={array}_3 --overlap true"));
    assert_eq!((waiting.code, waiting.out.as_str()), (1, ""), "{waiting:?}");
    assert!(waiting.err.contains(&format!("allocation for job {array}_3: Job is pending execution")), "{waiting:?}");
    let none = cluster.run(&format!("srun --jobid={array}_9 --overlap true"));
    assert!(none.err.contains("Invalid job id specified"), "{none:?}");
    cluster.ok(&format!("scancel {array}"));
}
