//! kill -9 at any moment: nothing acknowledged is lost, nothing appears twice.
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::cluster::{Cluster, kill_9};

/// The journal's own tests kill far more often; here the whole path from `sbatch` to `squeue` is under fire.
const KILLS: u32 = 12;

#[test]
fn no_acknowledged_submission_is_lost_when_the_controller_is_killed() {
    let cluster = Cluster::up("--nodes 1");
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (cluster, acknowledged, stop) = (&cluster, acknowledged.clone(), &stop);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let said = cluster.run(&format!("sbatch --parsable -H -J c{client}x{number} --wrap=true"));
                    if said.code == 0 {
                        acknowledged.lock().unwrap().push((said.out.trim().to_string(), format!("c{client}x{number}")));
                    }
                }
            });
        }
        // Also when a restart fails, so that the clients end and the failure is told.
        let _stop = StopOnDrop(&stop);
        for kill in 0..KILLS {
            std::thread::sleep(Duration::from_millis(40 + u64::from(kill * 37 % 90)));
            // However slow the machine is, something gets through.
            cluster.wait_until("true", |_| acknowledged.lock().unwrap().len() as u32 > kill + 1);
            kill_9(cluster.controller_pid());
            cluster.start("");
        }
    });
    let listed = cluster.ok("squeue -h -o '%i %j'");
    let listed: Vec<(String, String)> = listed
        .lines()
        .map(|line| line.trim().split_once(' ').unwrap())
        .map(|(id, name)| (id.to_string(), name.trim().to_string()))
        .collect();
    let unique: BTreeSet<&String> = listed.iter().map(|(_, name)| name).collect();
    assert_eq!(unique.len(), listed.len(), "a submission appears twice");
    let listed: BTreeSet<(String, String)> = listed.into_iter().collect();
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() as u32 > KILLS, "too few submissions got through: {}", acknowledged.len());
    for submission in acknowledged.iter() {
        assert!(listed.contains(submission), "{submission:?} was acknowledged and is lost");
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
