//! A cluster from a site's own slurm.conf: by `spur up`, and by scripts that start `slurmctld` and `slurmd`.
use std::fs;
use std::path::PathBuf;

use crate::cluster::{Cluster, is_alive, kill_9, new_dir};

const NODES: &str = "# as a site has it\n\
    ClusterName=Site\n\
    SlurmctldHost=head(127.0.0.1)\n\
    AuthType=auth/munge\n\
    SelectType=select/cons_tres\n\
    SelectTypeParameters=CR_CPU_Memory\n\
    DefMemPerCPU=10\n\
    MaxArraySize=100\n\
    KillWait=1\n\
    Include nodes.conf\n";

const INCLUDED: &str = "NodeName=DEFAULT CPUs=4 \\\n  RealMemory=1000\n\
    NodeName=n[1-2] Feature=fast State=UNKNOWN\n\
    PartitionName=debug Nodes=ALL Default=YES MaxTime=30 State=UP\n";

/// Writes the files; `places` are lines that say where everything goes.
fn write_conf(dir: &std::path::Path, places: &str) -> PathBuf {
    let site = dir.join("site");
    fs::create_dir_all(&site).unwrap();
    fs::write(site.join("slurm.conf"), format!("{NODES}{places}")).unwrap();
    fs::write(site.join("nodes.conf"), INCLUDED).unwrap();
    site.join("slurm.conf")
}

#[test]
fn spur_up_runs_the_cluster_of_a_slurm_conf() {
    let cluster = Cluster { dir: new_dir() };
    let conf = write_conf(&cluster.dir, "");
    let said = cluster.run(&format!("spur up --dir {} --config {}", cluster.dir.display(), conf.display()));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("without effect here: AuthType (line 4)"), "{said:?}");
    assert_eq!(cluster.ok("sinfo -h -o '%P %D %t %N %l %c'"), "debug* 2 idle n[1-2] 30:00 4");
    let job = cluster.sbatch("--constraint=fast -n2 --wrap 'echo $SLURM_CLUSTER_NAME'");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{job}.out")).trim(), "site");
    cluster.start("");
    let shown = cluster.ok("scontrol show config");
    assert!(shown.contains("MaxArraySize            = 100\n"), "{shown}");
    assert!(shown.contains("KillWait                = 1 sec\n"), "{shown}");
    assert!(
        shown.contains("MessageTimeout          = 10 sec\n") && shown.contains("SlurmUser               = "),
        "{shown}"
    );
}

/// Daemons that were started by hand, killed with the test.
struct ByHand {
    cluster: Cluster,
    conf: PathBuf,
    pid_files: Vec<PathBuf>,
}

impl ByHand {
    fn new() -> ByHand {
        let cluster = Cluster { dir: new_dir() };
        let site = cluster.dir.join("site");
        let at = |name: &str| site.join(name).display().to_string();
        let places = format!(
            "StateSaveLocation={}\nSlurmdSpoolDir={}/%n\nSlurmctldPidFile={}\nSlurmdPidFile={}.%n\n\
             SlurmctldLogFile={}\nSlurmdLogFile={}.%n\n",
            at("state"),
            at("spool"),
            at("run/ctld.pid"),
            at("run/slurmd"),
            at("log/ctld"),
            at("log/slurmd"),
        );
        let conf = write_conf(&cluster.dir, &places);
        let pid_files = ["ctld.pid", "slurmd.n1", "slurmd.n2"].map(|name| site.join("run").join(name)).to_vec();
        fs::create_dir_all(cluster.dir.join("bin")).unwrap();
        for name in ["slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "srun", "scontrol"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_spur"), cluster.dir.join("bin").join(name)).unwrap();
        }
        ByHand { cluster, conf, pid_files }
    }

    /// A line with nothing but `SLURM_CONF` to find the cluster by.
    fn ok(&self, line: &str) -> String {
        self.cluster.ok(&self.pointed(line))
    }

    fn pointed(&self, line: &str) -> String {
        format!("unset SPUR_CONF; export SLURM_CONF={}; {line}", self.conf.display())
    }

    fn pid(&self, index: usize) -> Option<i32> {
        fs::read_to_string(&self.pid_files[index]).ok()?.trim().parse().ok()
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        (0..self.pid_files.len()).filter_map(|index| self.pid(index)).for_each(kill_9);
        for node in ["n1", "n2"] {
            self.cluster.run(&format!("spur spurd --clear --config {} --node {node}", self.conf.display()));
        }
    }
}

#[test]
fn slurmctld_and_slurmd_are_started_as_scripts_start_them() {
    let hand = ByHand::new();
    let conf = hand.conf.display();
    let refused = hand.cluster.run(&format!("slurmctld -f {conf} -Q"));
    assert!(refused.code == 1 && refused.err.contains('Q'), "{refused:?}");
    hand.ok(&format!("slurmctld -f {conf}"));
    hand.ok("slurmd -N n1 -v && slurmd -N n2 -c");
    hand.cluster.wait_for(&hand.pointed("sinfo -h -o '%D %t'"), "2 idle");
    assert_eq!(hand.ok("srun -N2 -l hostname | wc -l"), "2");
    let job = hand.ok("sbatch --parsable --wrap 'sleep 600'");
    hand.cluster.wait_for(&hand.pointed(&format!("squeue -h -j {job} -o %T")), "RUNNING");

    let again = hand.cluster.run(&hand.pointed("slurmctld"));
    assert!(again.code == 1 && again.err.contains("already"), "{again:?}");
    let (first, mode) = (hand.pid(0).unwrap(), fs::metadata(hand.cluster.dir.join("site/state/journal")).unwrap());
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o700);
    kill_9(first);
    hand.ok("slurmctld -i");
    assert!(is_alive(hand.pid(0).unwrap()) && hand.pid(0) != Some(first));
    hand.cluster.wait_for(&hand.pointed(&format!("squeue -h -j {job} -o %T")), "RUNNING");
    hand.ok(&format!("scontrol show config | grep SLURM_CONF | grep -q {conf}"));

    kill_9(hand.pid(0).unwrap());
    hand.ok("slurmctld -c");
    hand.cluster.wait_for(&hand.pointed("squeue -h -t all | wc -l"), "0");
    hand.cluster.wait_for(&hand.pointed("sinfo -h -o '%D %t'"), "2 idle");
}
