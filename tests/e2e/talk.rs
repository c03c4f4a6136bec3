//! What commands say of their work, and that it goes on when nobody can hear them.
use crate::cluster::{Cluster, is_alive};

#[test]
fn a_command_that_nobody_hears_still_ends_its_job_when_it_is_told_to() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    for command in ["srun -J deaf touch-and-wait", "salloc -J deaf touch-and-wait"] {
        let line = command.replace("touch-and-wait", "bash -c 'touch here; exec sleep 100'");
        // Standard error is a pipe without a reader, as a terminal that was closed.
        let said = cluster.run(&format!(
            "{line} 2> >(exec 0<&-) >/dev/null & command=$!; while [ ! -e here ]; do sleep 0.05; done; sleep 0.2; kill -HUP $command; wait $command; echo $?; rm here"
        ));
        assert_ne!(said.out.trim(), "101", "it panicked: {said:?}");
        cluster.wait_for("squeue -h -n deaf", "");
    }
}

#[test]
fn verbose_srun_tells_where_its_tasks_go_and_how_they_end() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let said = cluster.run("srun -v -N2 -n3 true");
    for line in [
        "srun: jobid 1: nodes(2):`n[1-2]', cpu counts: 2(x1),1(x1)\n",
        "srun: launching StepId=1.0 on host n1, 2 tasks: [0-1]\n",
        "srun: launching StepId=1.0 on host n2, 1 tasks: 2\n",
        "srun: launch/slurm: _task_finish: n2: task 2: Completed\n",
    ] {
        assert!(said.err.contains(line), "{line:?} is missing: {said:?}");
    }
    let said = cluster.run("sbatch -vv -H --wrap true");
    assert!(said.err.contains("sbatch: debug:  "), "{said:?}");
}

#[test]
fn what_srun_says_of_cpus_and_counts_decides_where_its_tasks_go() {
    let cluster = Cluster::up("--nodes 3 --cpus 4");
    // As many tasks as the CPUs of each allow, on nodes of its own.
    assert_eq!(cluster.ok("srun -c2 --exclusive -N1 printenv SLURM_PROCID | sort | xargs"), "0 1");
    assert_eq!(cluster.ok("salloc -Q -N1 --exclusive srun -c1 printenv SLURM_PROCID | sort | xargs"), "0 1 2 3");
    assert_eq!(cluster.ok("srun -c2 printenv SLURM_PROCID"), "0");
    let said = cluster.run("salloc -Q -N3 srun -N2 -r 2 -n2 true");
    let told = "srun: error: --relative and --nodes option incompatible with count of allocated nodes (2+2>3)";
    assert!(said.err.contains(told), "{said:?}");
    assert_eq!(cluster.ok("salloc -Q -N3 srun -r 2 -N1 printenv SLURMD_NODENAME"), "n3");
    let counts = "sh -c 'echo $SLURM_NNODES $SLURM_NTASKS'";
    assert_eq!(cluster.ok(&format!("salloc -Q -N2 -n4 srun -n1 -N1 {counts}")), "1 1");
    assert_eq!(cluster.ok(&format!("salloc -Q -N2 -n4 srun -E -n1 -N1 {counts}")), "2 4");
    assert_eq!(cluster.ok("salloc -Q -n1 srun -t 3 scontrol show step | grep -o TimeLimit=.*"), "TimeLimit=00:03:00");
    assert_eq!(cluster.ok("srun -m arbitrary -w n2,n1,n1 -l printenv SLURMD_NODENAME | sort"), "0: n2\n1: n1\n2: n1");
    let said = cluster.run("srun --test-only -N9 true");
    assert!(said.err.contains("allocation failure: Requested node configuration is not available"), "{said:?}");
    let said = cluster.run("salloc -p nosuch,other true");
    assert!(said.err.contains("salloc: error: invalid partition specified: nosuch\n"), "{said:?}");
}

#[test]
fn scontrol_shutdown_ends_the_daemons_and_leaves_jobs_alone() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let job = cluster
        .sbatch("-N2 --wrap 'srun sleep 0.1; echo $$ > begun; while [ ! -e go ]; do sleep 0.05; done; echo done'");
    // The shell itself: what it runs comes and goes.
    let shell = cluster.wait_file("begun", |text| text.ends_with('\n'));
    let listed = format!("scontrol listpids | awk '$1 == {} {{print $1}}'", shell.trim());
    assert!(cluster.ok(&format!("{listed} | xargs scontrol pidinfo")).contains("Slurm JobId=1 "));
    assert_eq!(cluster.run("scontrol shutdown nonsense").code, 1);
    let daemons = [cluster.controller_pid(), cluster.agent_pid("n1"), cluster.agent_pid("n2")];
    cluster.ok("scontrol shutdown");
    cluster.wait_until("true", |_| !daemons.iter().any(|pid| is_alive(*pid)));
    assert_eq!(cluster.run("squeue").code, 1);
    cluster.start("");
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{job}.out")), "done\n");
}

#[test]
fn who_has_a_node_alone_has_its_devices() {
    let conf = "cluster_name = \"c\"\n[[nodes]]\nnames = \"n1\"\ncpus = 2\nmemory_mb = 1000\ngres = \"gpu:2\"\n";
    let cluster = Cluster::configured(conf);
    assert_eq!(cluster.ok("srun --exclusive printenv CUDA_VISIBLE_DEVICES"), "0,1");
}
