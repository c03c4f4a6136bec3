//! Partitions, reservations and licences, made while the cluster runs; none is lost with the controller.
use crate::cluster::{Cluster, kill_9};

const CONF: &str = "cluster_name = \"rules\"\n\
    [licenses]\n\
    matlab = 2\n\
    [[nodes]]\n\
    names = \"n[1-2]\"\n\
    cpus = 2\n\
    memory_mb = 1000\n\
    [[partitions]]\n\
    name = \"debug\"\n\
    nodes = \"ALL\"\n\
    default = true\n";

#[test]
fn what_was_made_at_run_time_outlives_the_controller() {
    let cluster = Cluster::configured(CONF);
    cluster.ok("scontrol create partitionname=extra nodes=n2 maxtime=10");
    cluster.ok("scontrol update partitionname=debug state=drain");
    cluster.ok("scontrol update nodename=n1 comment=hello availablefeatures=fast");
    let user = cluster.ok("id -un");
    let created =
        cluster.ok(&format!("scontrol create reservation starttime=now+2hours duration=60 users={user} nodes=n2"));
    assert_eq!(created, format!("Reservation created: {user}_1"));
    let shown = |what: &str| cluster.ok(&format!("scontrol show {what}"));
    let before = ["partition", "res"].map(shown);
    kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(["partition", "res"].map(shown), before);
    cluster.wait_until("scontrol show node n1", |said| said.out.contains("ActiveFeatures=fast"));
    assert!(shown("node n1").contains("Comment=hello"));
    cluster.ok("scontrol reconfigure");
    assert_eq!(cluster.ok("sinfo -h -o '%P %a'"), "debug* up");
}

#[test]
fn jobs_in_and_around_a_reservation() {
    let cluster = Cluster::configured(CONF);
    let user = cluster.ok("id -un");
    cluster.ok(&format!(
        "scontrol create reservation reservationname=mine starttime=now duration=60 users={user} nodes=n1"
    ));
    let inside = cluster.sbatch("--reservation=mine -w n1 --wrap='echo $SLURM_JOB_RESERVATION; sleep 600'");
    let outside = cluster.sbatch("-w n1 -t 10 --wrap=true");
    let elsewhere = cluster.sbatch("-n2 --wrap='sleep 600'");
    cluster.wait_state(&inside, "RUNNING");
    cluster.wait_state(&elsewhere, "RUNNING");
    assert_eq!(cluster.ok(&format!("squeue -h -j {inside},{elsewhere} -o '%v %N' | sort")), "(null) n2\nmine n1");
    cluster.wait_for(&format!("squeue -h -j {outside} -o '%T'"), "PENDING");
    let busy = cluster.run("scontrol delete reservationname=mine");
    assert_eq!(
        (busy.err.trim(), busy.code),
        ("delete_reservation reservationname=mine: Requested reservation is in use", 1)
    );
    cluster.ok(&format!("scancel {inside}"));
    cluster.wait_state(&inside, "CANCELLED");
    cluster.ok("scontrol delete reservationname=mine");
    cluster.wait_state(&outside, "COMPLETED");
    assert_eq!(cluster.run("sbatch --reservation=mine --wrap=true").code, 1);
}

#[test]
fn licences_are_given_back_when_a_job_ends() {
    let cluster = Cluster::configured(CONF);
    let first = cluster.sbatch("-L matlab:2 --wrap='while [ ! -e go ]; do sleep 0.02; done'");
    cluster.wait_state(&first, "RUNNING");
    let second = cluster.sbatch("-L matlab --wrap=true");
    cluster.wait_for(&format!("squeue -h -j {second} -o %r"), "Licenses");
    let wanted = "LicenseName=matlab\n    Total=2 Used=2 Free=0 Reserved=0 Remote=no";
    assert_eq!(cluster.ok("scontrol show licenses"), wanted);
    kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.ok("scontrol show licenses"), wanted);
    cluster.ok("touch go");
    cluster.wait_state(&second, "COMPLETED");
    assert!(cluster.ok("scontrol show licenses").contains("Used=0 Free=2"));
}

#[test]
fn counters_and_metrics_tell_what_happened() {
    // A port that was free a moment ago; nobody else on this machine is handed it so soon.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let conf = CONF.replace("[licenses]", &format!("[controller]\nmetrics_address = \"127.0.0.1:{port}\"\n[licenses]"));
    let cluster = Cluster::configured(&conf);
    let job = cluster.sbatch("--wrap=true");
    cluster.wait_state(&job, "COMPLETED");
    // An agent counts a moment after its node has registered.
    let shown = cluster.wait_until("sdiag", |said| said.out.contains("Agent count:          2\n")).out;
    for line in
        ["Jobs submitted: 1", "Jobs started:   1", "Jobs completed: 1", "Jobs canceled:  0", "Agent count:          2"]
    {
        assert!(shown.lines().any(|one| one == line), "{line} is missing:\n{shown}");
    }
    assert!(shown.contains("\tSubmit "), "{shown}");
    let metrics = get(port, "/metrics");
    for line in
        ["spur_jobs_submitted_total 1", "spur_agents_connected 2", "spur_licenses{license=\"matlab\",use=\"total\"} 2"]
    {
        assert!(metrics.lines().any(|one| one == line), "{line} is missing:\n{metrics}");
    }
    assert!(get(port, "/other").starts_with("HTTP/1.1 404"));
    cluster.ok("sdiag -r");
    assert!(cluster.ok("sdiag").contains("Jobs submitted: 0\n"));
}

fn get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
