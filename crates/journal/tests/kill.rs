//! kill -9 at random moments, on a real process and a real disk: all that was acknowledged is there, once.

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use journal::{Journal, Options};
use support::disk::Random;
use support::{Memory, TempDir};

const KILLS: u64 = 150;
const DIR: &str = "JOURNAL_KILL_TEST_DIR";
const LIFE: &str = "JOURNAL_KILL_TEST_LIFE";

fn options(dir: &Path) -> Options {
    Options { segment_bytes: 20_000, snapshot_every_entries: 300, keep_batches: 16, ..Options::new(dir, 1) }
}

/// Not a test by itself: the process that is killed. It proposes from eight tasks and prints each acknowledgement.
#[test]
fn victim() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let life = std::env::var(LIFE).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async move {
        let journal = Journal::open(options(Path::new(&dir)), Memory::default()).await.unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (journal, life) = (journal.clone(), life.clone());
                tokio::spawn(async move {
                    for n in 0u64.. {
                        let entry = format!("{life}.{task}.{n}");
                        journal.propose(entry.clone().into_bytes()).await.unwrap();
                        println!("acknowledged {entry}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn killed_at_random_moments_it_keeps_what_it_acknowledged() {
    let dir = TempDir::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut random = Random(u64::from(std::process::id()));
    let mut acknowledged: HashSet<String> = HashSet::new();
    let begin = Instant::now();
    for life in 0..KILLS {
        let patience = Duration::from_micros(random.below(25_000));
        acknowledged.extend(run_and_kill(dir.path(), life, patience));
        check(&runtime, dir.path(), &acknowledged, life);
    }
    println!("{KILLS} kills, {} acknowledgements, {:?}", acknowledged.len(), begin.elapsed());
    assert!(acknowledged.len() as u64 > KILLS, "the victims got something done");
}

fn run_and_kill(dir: &Path, life: u64, patience: Duration) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--nocapture"])
        .env(DIR, dir)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let (first, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for line in lines.map_while(Result::ok) {
            if let Some((_, entry)) = line.split_once("acknowledged ") {
                acknowledged.push(entry.to_string());
                let _ = first.send(());
            }
        }
        acknowledged
    });
    // Every third victim dies while it is opening.
    let is_told = life % 3 == 2 || told.recv_timeout(Duration::from_secs(60)).is_ok();
    if !is_told {
        let _ = victim.kill();
        let output = victim.wait_with_output().unwrap();
        panic!("victim {life} acknowledged nothing: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::thread::sleep(patience);
    victim.kill().unwrap();
    victim.wait().unwrap();
    reader.join().unwrap()
}

fn check(runtime: &tokio::runtime::Runtime, dir: &Path, acknowledged: &HashSet<String>, life: u64) {
    let (machine, seen) = Memory::new();
    runtime.block_on(async {
        let journal = Journal::open(options(dir), machine).await.unwrap();
        journal.shutdown().await;
    });
    let seen = seen.lock().unwrap();
    let found: HashSet<String> = seen.entries.iter().map(|entry| String::from_utf8(entry.clone()).unwrap()).collect();
    assert_eq!(found.len(), seen.entries.len(), "an entry appears twice after kill {life}");
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "lost after kill {life}: {lost:?}");
}
