//! What commands say of their work, and that it goes on when nobody can hear them.
use crate::cluster::Cluster;

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
