//! What is asked while leaders die: signals are heard once, long answers go on where they broke off.
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use accounting::Batch;
use model::history::JobRecord;
use model::{JobId, Timestamp};

use crate::cluster::{Cluster, kill_9};
use crate::failover::{leader, pid_of};

const N_ROWS: u32 = 6_000;

/// History of jobs that were there before.
fn fill(cluster: &Cluster) {
    let file = cluster.dir.join("state/history.sqlite");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let record = |id: u32| JobRecord {
        job: JobId(id),
        attempt: 1,
        submitted: Timestamp::from_secs(1_700_000_000 + u64::from(id)),
        name: format!("a-name-that-is-quite-long-{id}"),
        user: "root".into(),
        state: "COMPLETED".into(),
        eligible: Some(Timestamp::from_secs(1_700_000_000 + u64::from(id))),
        started: Some(Timestamp::from_secs(1_700_000_000 + u64::from(id))),
        ended: Some(Timestamp::from_secs(1_700_000_001 + u64::from(id))),
        ..Default::default()
    };
    runtime.block_on(async {
        let store = accounting::open(file.to_str().unwrap()).await.unwrap();
        let batch = Batch { jobs: (1..=N_ROWS).map(record).collect(), ..Default::default() };
        store.write(batch).await.unwrap();
    });
}

#[test]
fn a_list_goes_on_when_the_controller_that_tells_it_dies() {
    let cluster = Cluster::up("--nodes 1 --controllers 3");
    fill(&cluster);
    let mut sacct = cluster.shell("sacct -a -n -P -X -S 2020-01-01 -o JobID,JobName,State");
    let mut sacct = sacct.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(sacct.stdout.take().unwrap());
    let mut text = String::new();
    rows.read_line(&mut text).unwrap();
    // Nobody reads the rest yet, so most of it is still to be told.
    kill_9(pid_of(&cluster, leader(&cluster)));
    rows.read_to_string(&mut text).unwrap();
    let output = sacct.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ids: Vec<u32> = text.lines().map(|line| line.split('|').next().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, (1..=N_ROWS).collect::<Vec<u32>>(), "each once, in order");
    cluster.start("");
}

#[test]
fn a_signal_is_heard_once_whoever_passes_it_on() {
    let cluster = Cluster::up("--nodes 1 --cpus 8 --controllers 3");
    let script = "trap 'echo heard >> signals' USR1; touch ready; while [ ! -e go ]; do sleep 0.02; done";
    let job = cluster.sbatch(&format!("-o /dev/null --wrap '{}'", script.replace('\'', "'\\''")));
    cluster.wait_file("ready", |_| true);
    cluster.wait_state(&job, "RUNNING");
    let is_enough = AtomicBool::new(false);
    let n_sent = std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            let mut n_sent = 0;
            while !is_enough.load(Ordering::Relaxed) || n_sent == 0 {
                cluster.ok(&format!("scancel -b -s USR1 {job}"));
                n_sent += 1;
                // Signals of one kind that come too close are one signal.
                cluster.wait_file("signals", |text| text.lines().count() >= n_sent);
            }
            n_sent
        });
        for _ in 0..3 {
            kill_9(pid_of(&cluster, leader(&cluster)));
            cluster.start("");
        }
        is_enough.store(true, Ordering::Relaxed);
        user.join().unwrap()
    });
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file("signals").lines().count(), n_sent, "as often as it was asked for");
}
