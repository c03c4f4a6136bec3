//! `spur up`, `env`, `down`, `status`, configuration files.
use crate::cluster::Cluster;

#[test]
fn the_nodes_of_a_configuration_file_come_up_idle() {
    let cluster = Cluster::configured(
        "cluster_name = \"mine\"\n[[nodes]]\nnames = \"a[1-2]\"\ncpus = 64\nmemory_mb = 100000\n\
         [[partitions]]\nname = \"batch\"\nnodes = \"ALL\"\ndefault = true\nmax_time = \"1:00:00\"\n",
    );
    assert_eq!(cluster.ok("sinfo -h -o '%P %D %t %N %l'"), "batch* 2 idle a[1-2] 1:00:00");
    assert_eq!(cluster.ok("sinfo -h -o %c -N | sort -u"), "64");
}

#[test]
fn a_misspelt_key_is_named_with_its_line() {
    let cluster = Cluster::up("--nodes 1");
    std::fs::write(
        cluster.dir.join("work/bad.conf"),
        "cluster_name = \"x\"\n[[nodes]]\nnames = \"n1\"\nmemroy_mb = 5\n",
    )
    .unwrap();
    let said = cluster.run("spur config check bad.conf");
    assert_ne!(said.code, 0);
    let text = said.out + &said.err;
    assert!(text.contains("bad.conf:4") && text.contains("memory_mb"), "{text}");
}

#[test]
fn without_a_cluster_commands_say_in_one_line_what_to_do() {
    let cluster = Cluster::up("--nodes 1");
    let said = cluster.run("SPUR_CONF=/nonexistent/spur.conf squeue");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
}

#[test]
fn a_drained_node_takes_no_jobs_until_it_is_resumed() {
    let cluster = Cluster::up("--nodes 1");
    assert_ne!(cluster.run("scontrol update nodename=n1 state=drain").code, 0);
    cluster.ok("scontrol update nodename=n1 state=drain reason=broken");
    assert_eq!(cluster.ok("sinfo -h -o '%t'"), "drain");
    let job = cluster.sbatch("--wrap=true");
    cluster.wait_until(&format!("squeue -h -j {job} -o '%t %r'"), |said| said.out.contains("DOWN, DRAINED"));
    cluster.ok("scontrol update nodename=n1 state=resume");
    cluster.wait_state(&job, "COMPLETED");
}
