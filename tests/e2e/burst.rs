//! Clusters with burst buffers for the tests of them: pools below a directory of their own, data to stage in, jobs that move it in and
//! out, and the look whether anything is left.
use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, Folder};

pub struct Burst {
    pub cluster: Cluster,
    pub pools: Folder,
}

/// So many nodes with a pool each, and one shared pool; `lines` go into `[burst_buffer]`, `of_controller` into `[controller]`.
pub fn settings(n_nodes: usize, of_controller: &str, lines: &str, pools: &Path) -> String {
    format!(
        r#"
[controller]
{of_controller}
[[nodes]]
names = "n[1-{n_nodes}]"
cpus = 2
memory_mb = 1000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[burst_buffer]
{lines}
[[burst_buffer.pools]]
name = "flash"
kind = "shared"
root = "{0}/flash"
granularity = "1MiB"
total = "64MiB"
[[burst_buffer.pools]]
name = "local"
kind = "node"
root = "{0}/%n"
granularity = "1MiB"
total = "64MiB"
"#,
        pools.display()
    )
}

/// Without data.
pub fn empty(n_nodes: usize, lines: &str) -> Burst {
    let pools = Folder::new();
    let cluster = Cluster::configured(&settings(n_nodes, "", lines, &pools));
    Burst { cluster, pools }
}

/// Two nodes and forty files, with these lines in `[burst_buffer]`.
pub fn burst_with(lines: &str) -> Burst {
    let burst = empty(2, lines);
    burst.fill("input", 40, 50_000);
    burst
}

/// What must hold of burst buffers whatever a test has done.
impl Drop for Burst {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.everything_is_accounted_for();
        }
    }
}

impl Burst {
    /// Files in a directory below the working directory, no two alike.
    pub fn fill(&self, name: &str, n_files: usize, size: usize) {
        fill(&self.cluster, name, n_files, size);
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.cluster.dir.join("work").join(name), text).unwrap();
    }

    /// A job with the input staged in and out again as `back-<job>`, which then does `body`.
    pub fn submit(&self, name: &str, options: &str, pool: &str, body: &str) -> String {
        let out = if pool == "local" { "back-%j-%n" } else { "back-%j" };
        self.submit_to(name, options, pool, out, body)
    }

    /// As `submit`, staged out to somewhere else.
    pub fn submit_to(&self, name: &str, options: &str, pool: &str, out: &str, body: &str) -> String {
        let (access, variable) = match pool {
            "local" => ("private", "DW_JOB_PRIVATE"),
            _ => ("striped", "DW_JOB_STRIPED"),
        };
        let script = format!(
            "#!/bin/sh\n#SBATCH -o {name}.out {options}\n#DW jobdw capacity=8MiB access_mode={access} pool={pool}\n\
             #DW stage_in type=directory source=input destination=${variable}/in\n\
             #DW stage_out type=directory source=${variable}/in destination={out}\n{body}\n"
        );
        self.write(name, &script);
        self.cluster.sbatch(name)
    }

    pub fn wait(&self, job: &str, state: &str) {
        let line = format!("squeue -h -t all -j {job} -O BurstBufferState:.20");
        self.cluster.wait_until(&line, |said| said.out.trim() == state);
    }

    pub fn same(&self, other: &str) {
        self.cluster.ok(&format!("diff -r input {other}"));
    }

    pub fn has(&self, name: &str) -> bool {
        self.cluster.dir.join("work").join(name).exists()
    }

    /// Where the private data of a job's first buffer lies.
    pub fn private(&self, node: &str, job: &str) -> PathBuf {
        self.pools.join(format!("{node}/jobs/{job}.1/private"))
    }

    /// Pools have given out what buffers hold; every directory and every mover is of a buffer that there is.
    fn everything_is_accounted_for(&self) {
        let homes = || -> Vec<String> {
            let roots = fs::read_dir(&*self.pools).into_iter().flatten().flatten();
            let homes = roots.flat_map(|root| fs::read_dir(root.path().join("jobs")).into_iter().flatten().flatten());
            homes.map(|home| home.file_name().to_string_lossy().into_owned()).collect()
        };
        let values = |text: &str, key: &str| -> Vec<String> {
            let key = format!("\"{key}\":");
            let value = |rest: &str| rest.split([',', '}', '\n']).next().unwrap_or_default().trim().to_owned();
            text.split(key.as_str()).skip(1).map(value).collect()
        };
        let sum =
            |text: &str, key: &str| values(text, key).iter().map(|value| value.parse::<u64>().unwrap()).sum::<u64>();
        let (found, n_movers) = (homes(), movers(&self.pools).len());
        // What is being removed meanwhile is looked for again.
        self.cluster.wait_until("scontrol show burst --json", |said| {
            let known = values(&said.out, "job_id");
            let is_known = |home: &String| known.iter().any(|job| home.split('.').next() == Some(job.as_str()));
            said.code == 0
                && sum(&said.out, "used_space") == sum(&said.out, "size")
                && (found.iter().all(is_known) || homes().iter().all(is_known))
                && (n_movers == 0 || !known.is_empty() || movers(&self.pools).is_empty())
        });
    }

    /// No buffer, no directory, no record, no part file, no mover.
    pub fn nothing_is_left(&self) {
        self.cluster.wait_until("scontrol show burst", |said| {
            said.out.contains("TotalSpace=") && !said.out.contains("Allocated Buffers")
        });
        for root in ["flash", "n1", "n2", "n3", "n4"] {
            for part in ["jobs", ".spur", ".trash"] {
                let left: Vec<_> = fs::read_dir(self.pools.join(root).join(part)).into_iter().flatten().collect();
                assert!(left.is_empty(), "{root}/{part}: {left:?}");
            }
        }
        let parts = self.cluster.ok("find . -name '.*.part'");
        assert_eq!(parts, "");
        assert_eq!(movers(&self.pools), [] as [i32; 0]);
    }
}

pub fn fill(cluster: &Cluster, name: &str, n_files: usize, size: usize) {
    let dir = cluster.dir.join("work").join(name);
    fs::create_dir_all(&dir).unwrap();
    for number in 0..n_files {
        let bytes: Vec<u8> = (0..size).map(|index| ((index * 7 + number * 31) % 251) as u8).collect();
        fs::write(dir.join(format!("f{number}")), bytes).unwrap();
    }
}

/// The movers that have something open below a directory.
pub fn movers(below: &Path) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        name.starts_with("spurmover")
            && open.into_iter().any(|fd| fs::read_link(fd.path()).is_ok_and(|path| path.starts_with(below)))
    };
    pids.filter(is_one).collect()
}

/// Numbers below what is asked for, the same in every run; others with `STAGING_SEED`.
pub fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let wished: u64 = std::env::var("STAGING_SEED").ok().map_or(0, |text| text.parse().expect("a number"));
    let mut dice = (seed ^ wished.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
    move |sides| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    }
}
