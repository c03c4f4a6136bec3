//! Proposals a second at 1, 4, 64 and 512 proposers, next to what the disk alone can do.
//!
//! `cargo run -p journal --example throughput [directory]`

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journal::{Journal, Machine, Options};

const ENTRY_BYTES: usize = 400;
const SPAN: Duration = Duration::from_secs(2);

struct Count(u64);

impl Machine for Count {
    type Reply = u64;

    fn apply(&mut self, index: u64, _: &[u8]) -> Result<u64, String> {
        self.0 = index;
        Ok(index)
    }

    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
        let count = self.0;
        Box::new(move || count.to_le_bytes().to_vec())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(snapshot.try_into().map_err(|_| "a count has eight bytes")?);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = base.join(format!("journal-throughput-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    println!("disk alone, {ENTRY_BYTES} bytes and one fdatasync each");
    println!("  appending      {}", syncs(&dir.join("appended"), 0)?);
    println!("  filled ahead   {}", syncs(&dir.join("filled"), 64 << 20)?);
    println!("journal, {ENTRY_BYTES} bytes an entry");
    for n_proposers in [1, 4, 64, 512] {
        println!("  {n_proposers:>3} proposers  {}", proposals(&dir.join(n_proposers.to_string()), n_proposers).await?);
    }
    println!("opening again");
    for n_proposers in [1, 512] {
        let begin = Instant::now();
        let machine = Count(0);
        let journal = Journal::open(Options::new(dir.join(n_proposers.to_string()), 1), machine).await?;
        let n_entries = journal.propose(Vec::new()).await?;
        println!("  after {n_entries} entries by {n_proposers:>3} proposers  {:?}", begin.elapsed());
        journal.shutdown().await;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn syncs(path: &Path, filled: usize) -> std::io::Result<String> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all_at(&vec![0; filled], 0)?;
    file.sync_all()?;
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < SPAN {
        let start = Instant::now();
        file.write_all_at(&[1; ENTRY_BYTES], (times.len() * ENTRY_BYTES) as u64)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    Ok(describe(times, begin.elapsed()))
}

async fn proposals(dir: &Path, n_proposers: usize) -> Result<String, Box<dyn std::error::Error>> {
    let journal = Journal::open(Options::new(dir, 1), Count(0)).await?;
    let begin = Instant::now();
    let proposers: Vec<_> = (0..n_proposers)
        .map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while begin.elapsed() < SPAN {
                    let start = Instant::now();
                    journal.propose(vec![7; ENTRY_BYTES]).await.expect("nothing fails here");
                    times.push(start.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for proposer in proposers {
        times.extend(proposer.await?);
    }
    let result = describe(times, begin.elapsed());
    journal.shutdown().await;
    Ok(result)
}

fn describe(mut times: Vec<Duration>, span: Duration) -> String {
    times.sort_unstable();
    let rate = times.len() as f64 / span.as_secs_f64();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    format!("{rate:>8.0}/s   p50 {:>6} µs   p99 {:>6} µs", p50.as_micros(), p99.as_micros())
}
