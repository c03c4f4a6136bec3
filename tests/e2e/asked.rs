//! What can be asked for besides resources: the script's node, ports, words of the supervisors; and files brought back.
use crate::cluster::{Cluster, is_alive};

const CONF: &str = "mpi_ports = \"23000-23004\"\n\
    [[nodes]]\nnames = \"n1\"\ncpus = 2\nmemory_mb = 1000\nfeatures = [\"blue\"]\n\
    [[nodes]]\nnames = \"n2\"\ncpus = 2\nmemory_mb = 1000\nfeatures = [\"blue\", \"red\"]\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"ALL\"\ndefault = true\n";

#[test]
fn the_script_runs_where_its_features_are_and_steps_on_all_nodes() {
    let cluster = Cluster::configured(CONF);
    let script = "scontrol show job $SLURM_JOB_ID | grep -o \"Batch[FH][eo].*\"; echo $SLURMD_NODENAME; srun -l printenv SLURMD_NODENAME | sort";
    cluster.sbatch(&format!("-W -N2 -C 'blue|red' --batch=red -o host.out --wrap='{script}'"));
    assert_eq!(cluster.file("host.out"), "BatchFeatures=red BatchHost=n2\nn2\n0: n1\n1: n2\n");
    let said = cluster.run("sbatch -C blue --batch=red --wrap=true");
    assert!(said.err.contains("Job --batch option is invalid or not a subset of --constraints"), "{said:?}");
    let told = "scontrol -o show job $SLURM_JOB_ID | tr \" \" \"\\n\" | grep -E \"^(MCS|Power|Reboot)\"; \
                printenv SLURM_PROFILE SLURM_CPU_FREQ_REQ; srun scontrol show step $SLURM_JOB_ID.0 | grep -o \"CPU_.*freq=[^ ]*\"";
    cluster.sbatch(&format!(
        "-W --mcs-label=x --power=level --profile=task --cpu-freq=1000-low -o told.out --wrap='{told}'"
    ));
    let expected = "MCS_label=x\nReboot=0\nPower=LEVEL\nTask\n1000-Low\nCPU_min_freq=1000 CPU_max_freq=Low\n";
    assert_eq!(cluster.file("told.out"), expected);
}

#[test]
fn steps_have_ports_of_their_own_and_wait_for_them() {
    let cluster = Cluster::configured(CONF);
    assert_eq!(cluster.ok("srun --resv-ports=2 printenv SLURM_STEP_RESV_PORTS"), "23000-23001");
    let shown = "scontrol show step $SLURM_JOB_ID.0 | grep -o ResvPorts.*";
    assert_eq!(cluster.ok(&format!("srun --resv-ports=3 bash -c '{shown}'")), "ResvPorts=23002-23004");
    let said = cluster.run("srun --resv-ports=6 true");
    assert!(said.err.contains("Requires more ports than can be reserved"), "{said:?}");
    // Four are held until the one that waits for two has said so.
    let said = cluster.run(
        "salloc -Q -w n1 bash -c '
           srun --overlap --resv-ports=4 bash -c \"touch held; until [ -e go ]; do sleep 0.02; done\" &
           until [ -e held ]; do sleep 0.02; done
           srun -I --overlap --resv-ports=2 true
           srun --overlap --resv-ports=2 printenv SLURM_STEP_RESV_PORTS 2>waits &
           until grep -q retrying waits; do sleep 0.02; done
           touch go; wait'",
    );
    assert!(said.err.contains("Required ports are in use"), "{said:?}");
    assert_eq!(
        cluster.file("waits").lines().next().map(|line| line.ends_with("(Required ports are in use)")),
        Some(true)
    );
    assert_eq!(said.out.trim().split(['-', ',']).count(), 2, "{said:?}");
    // MPI has ports without asking, and waits for those of another job too.
    let holds = "srun --resv-ports=5 bash -c \"touch all; until [ -e on ]; do sleep 0.02; done\"";
    let holder = cluster.sbatch(&format!("-w n1 -o /dev/null --wrap '{holds}'"));
    cluster.wait_file("all", |_| true);
    let waiting = cluster.sbatch("-w n1 -o mpi.out --wrap 'srun --mpi=pmi2 printenv SLURM_STEP_RESV_PORTS'");
    cluster.wait_file("mpi.out", |text| text.contains("retrying"));
    cluster.ok("touch on");
    for job in [holder, waiting] {
        cluster.wait_state(&job, "COMPLETED");
    }
    assert!(cluster.file("mpi.out").lines().last().is_some_and(|ports| ports.starts_with("2300")));
}

#[test]
fn nodes_tell_what_they_do_and_send_back_what_they_have() {
    let cluster = Cluster::configured(CONF);
    let said = cluster.run("srun --slurmd-debug=info bash -c 'exit 3'");
    let told: Vec<&str> = said.err.lines().filter(|line| line.starts_with("slurmstepd-n1: ")).collect();
    assert!(
        told[2].ends_with("starting 1 tasks") && told[3].contains("task 0 (") && told[3].contains(" started "),
        "{said:?}"
    );
    assert_eq!(told[0], "slurmstepd-n1: debug levels are stderr='debug'");
    assert!(told[1].contains("debug:  IO handler started pid="), "{said:?}");
    assert!(told.iter().any(|line| line.ends_with("exited with exit code 3.")), "{said:?}");
    cluster.ok("echo content >file; chmod 640 file; mkdir -p tree/inner; echo leaf >tree/inner/leaf");
    let said = cluster.run(
        "salloc -Q -N2 bash -c '
           sgather -k -p file got && cat got.n1 got.n2 && stat -c %a got.n1
           sgather -k -r tree copied && cat copied.n2/inner/leaf
           sgather -f nosuch other && echo passed over
           sgather nosuch other || echo refused
           sgather file last && cat last.n2; [ -e file ] || echo removed'; ls",
    );
    let expected = "content\ncontent\n640\nleaf\npassed over\nrefused\ncontent\nremoved\n";
    assert!(said.out.starts_with(expected), "{said:?}");
    assert!(!said.out.contains(".part") && !said.out.contains("other"), "{said:?}");
    assert!(said.err.contains("sgather(n1): error: Can't open nosuch"), "{said:?}");
    let said = cluster.run("sgather a b");
    assert_eq!((said.code, said.err.as_str()), (1, "sgather: error: Command only valid from within Slurm job\n"));
}

#[test]
fn a_controller_that_is_aborted_comes_back_with_its_jobs() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--wrap='until [ -e go ]; do sleep 0.02; done'");
    cluster.wait_state(&job, "RUNNING");
    let controller = cluster.controller_pid();
    cluster.ok("scontrol abort");
    // One that answers late seems to be down before it is.
    cluster.wait_until("true", |_| !is_alive(controller));
    cluster.wait_until("scontrol ping", |said| said.out.contains("DOWN"));
    cluster.start("");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
}
