//! What the kernel holds runs to: CPUs, devices, memory; each where this machine's control groups allow it, told aloud where not.
use std::fs;
use std::path::Path;

use crate::cluster::{Cluster, is_root, new_dir};

/// Whether root may make groups with this controller of version 1.
fn has_old(controller: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_there = mounts.lines().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        words.len() > 3 && words[2] == "cgroup" && words[3].split(',').any(|option| option == controller)
    });
    is_there && is_root()
}

/// Whether the unified hierarchy hands this controller to groups that root makes.
fn has_unified(controller: &str) -> bool {
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    controllers.split_whitespace().any(|one| one == controller) && is_root()
}

fn skipped(what: &str) {
    eprintln!("SKIPPED: {what}");
}

#[test]
fn a_run_has_the_cpus_that_it_holds_and_no_others() {
    let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if !(has_old("cpuset") || has_unified("cpuset")) || n_cpus < 2 {
        return skipped("no cpuset controller for us, or one CPU only");
    }
    let cluster = Cluster::configured(
        "[agent]\nconstrain_cores = true\n[[nodes]]\nnames = 'n1'\ncpus = 2\n[[partitions]]\nname = 'main'\nnodes = 'n1'\n",
    );
    let allowed = "sh -c 'grep Cpus_allowed_list /proc/self/status'";
    let one = cluster.ok(&format!("srun -n1 -c1 {allowed}"));
    assert!(one.ends_with("\t0") || one.ends_with("\t1"), "{one}");
    assert_eq!(cluster.ok(&format!("srun -n1 -c2 {allowed}")), "Cpus_allowed_list:\t0-1");
    // Two steps of one job at the same time, each with a CPU of its own.
    fs::write(
        cluster.dir.join("work/meet"),
        "#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status\ntouch here.$1\nuntil [ -e here.$2 ]; do sleep 0.02; done\n",
    )
    .expect("written");
    let step = "srun --exact -n1 -c1 sh ./meet";
    let both = cluster.ok(&format!("salloc -Q -n2 bash -c \"{step} 1 2 & {step} 2 1 & wait\""));
    let mut lines: Vec<&str> = both.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["Cpus_allowed_list:\t0", "Cpus_allowed_list:\t1"]);
    // The batch script has all that its job has.
    cluster.ok(&format!("sbatch -W -c2 -o batch.out --wrap \"{allowed}\""));
    assert_eq!(cluster.file("batch.out"), "Cpus_allowed_list:\t0-1\n");
}

#[test]
fn a_run_cannot_open_devices_that_it_does_not_hold() {
    // Version 2 has no controller for them: where it bounds memory, programs of the kernel's guard devices.
    if !(has_old("devices") || has_unified("memory")) {
        return skipped("nothing here that guards devices for us");
    }
    // Harmless devices in the place of GPUs: a full disk and an endless source of zeros.
    let cluster = Cluster { dir: new_dir() };
    let site = cluster.dir.join("site");
    std::fs::create_dir_all(&site).unwrap();
    let files = [
        (
            "slurm.conf",
            "ClusterName=c\nSlurmctldHost=head\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nTaskPlugin=task/cgroup\nGresTypes=gpu\nNodeName=n1 CPUs=2 Gres=gpu:2\n\
             PartitionName=main Nodes=n1 Default=YES\n",
        ),
        ("gres.conf", "NodeName=n1 Name=gpu File=/dev/full\nNodeName=n1 Name=gpu File=/dev/zero\n"),
        ("cgroup.conf", "ConstrainDevices=yes\n"),
    ];
    for (name, text) in files {
        std::fs::write(site.join(name), text).unwrap();
    }
    cluster.start(&format!("--config {}", site.join("slurm.conf").display()));
    let opens = "sh -c 'for file in full zero null; do head -c1 /dev/$file > /dev/null 2>&1 && echo $file; done; true'";
    assert_eq!(cluster.ok(&format!("srun -n1 {opens}")), "null");
    assert_eq!(cluster.ok(&format!("srun -n1 --gres=gpu:1 {opens}")), "full\nnull");
    assert_eq!(cluster.ok(&format!("srun -n1 --gres=gpu:2 {opens}")), "full\nzero\nnull");
}

#[test]
fn the_unified_hierarchy_bounds_memory() {
    if !has_unified("memory") {
        return skipped("the unified hierarchy has no memory controller here");
    }
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let line = "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max";
    assert_eq!(cluster.ok(&format!("srun --mem=64 sh -c '{line}'")), (64_u64 << 20).to_string());
}

#[test]
fn where_the_kernel_bounds_nothing_memory_is_looked_at() {
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return skipped("only root can become a user who may make no control groups");
    }
    let cluster = Cluster { dir: new_dir() };
    let dir = cluster.dir.display();
    // The whole cluster belongs to a user without rights on control groups.
    let user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    if cluster.run(&format!("{user} spur --version")).code != 0 {
        return skipped("another user cannot run the binary that is tested");
    }
    cluster.ok(&format!("mkdir -p {dir}/work && chown -R 65534:65534 {dir}"));
    cluster.ok(&format!("{user} spur up --dir {dir} --nodes 1 --cpus 2"));
    let hog = "x=$(head -c 150000000 /dev/zero | tr \"\\\\0\" x); sleep 120; echo alive";
    std::fs::write(cluster.dir.join("work/hog.sh"), format!("#!/bin/bash\n{hog}\n")).unwrap();
    let said = cluster.run(&format!("{user} srun --mem=40 bash hog.sh"));
    let stopped = cluster.run(&format!("{user} spur down --dir {dir}"));
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(said.code != 0 && !said.out.contains("alive"), "{said:?}");
    assert!(said.err.contains("exceeded memory limit, being killed"), "{said:?}");
    assert!(said.err.contains("srun: error: n1: task 0: Out Of Memory"), "{said:?}");
}
