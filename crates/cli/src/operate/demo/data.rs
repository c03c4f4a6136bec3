//! The part of the demo that moves data: every node gets its own copy of the input before the job starts, and its results are
//! brought back when the job has ended.
use std::fs;
use std::path::Path;

use model::JobId;
use model::pool::{BurstBufferConfig, Pool, PoolKind};

use super::stage::Stage;
use crate::context::block_on;
use crate::stage::bar::Screen;
use crate::stage::watch;

pub const NODES: u32 = 2;
const FILES: u32 = 96;
const FILE_BYTES: usize = 256 << 10;

/// Sorts nothing and needs nothing but a shell: turns every letter and notes who did it.
pub const SCRIPT: &str = r#"#!/bin/sh
#SBATCH --job-name=data
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=data.out
#DW jobdw capacity=64MiB access_mode=private pool=local
#DW stage_in type=directory source=input destination=$DW_JOB_PRIVATE/input
#DW stage_out type=directory source=$DW_JOB_PRIVATE/output destination=output-%n
srun sh -c '
    mkdir $DW_JOB_PRIVATE/output
    for file in $DW_JOB_PRIVATE/input/*; do
        tr A-Za-z N-ZA-Mn-za-m < $file > $DW_JOB_PRIVATE/output/$(basename $file)
    done
    echo "$SLURMD_NODENAME turned $(ls $DW_JOB_PRIVATE/output | wc -l) files in its own buffer"
'
"#;

/// A pool on each node; slow enough to be seen.
pub fn pools(dir: &Path) -> BurstBufferConfig {
    let pool = Pool {
        name: "local".into(),
        kind: PoolKind::Node,
        root: dir.join("pool/%n").display().to_string(),
        granularity_bytes: 1 << 20,
        total_bytes: Some(256 << 20),
        ..Pool::default()
    };
    BurstBufferConfig { pools: vec![pool], bandwidth_bytes: 16 << 20, ..BurstBufferConfig::default() }
}

pub fn tell(stage: &Stage) -> Result<(), String> {
    write_input(stage)?;
    stage.write("data.sh", SCRIPT)?;
    let job = stage.submit(&["data.sh"])?;
    stage.say_command(&format!("spur stage watch {job}"));
    let socket = stage.socket()?;
    let mut screen = Screen::new("   ");
    let followed = block_on(watch::follow(&socket, JobId(job), &mut screen, &mut false));
    followed.map_err(|error| error.to_string())?;
    let output = fs::read_to_string(stage.work("data.out")).unwrap_or_default();
    output.lines().for_each(|line| say!("   | {line}"));
    compare(stage)?;
    say!("   every byte compared: {} files came back from {NODES} nodes as they should", FILES * NODES);
    Ok(())
}

fn write_input(stage: &Stage) -> Result<(), String> {
    let dir = stage.work("input");
    fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    (0..FILES).try_for_each(|number| {
        fs::write(dir.join(format!("part-{number:03}")), input(number)).map_err(|error| error.to_string())
    })
}

/// Letters, different in every file.
fn input(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) * 2 + 1;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef\n "[(state >> 33) as usize % 34]
    };
    (0..FILE_BYTES).map(letter).collect()
}

fn turned(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => (byte - b'A' + 13) % 26 + b'A',
        b'a'..=b'z' => (byte - b'a' + 13) % 26 + b'a',
        other => other,
    }
}

fn compare(stage: &Stage) -> Result<(), String> {
    for node in 1..=NODES {
        for number in 0..FILES {
            let path = stage.work(&format!("output-n{node}")).join(format!("part-{number:03}"));
            let found = fs::read(&path).map_err(|error| format!("{}: {error}\n{}", path.display(), stage.outputs()))?;
            let expected: Vec<u8> = input(number).into_iter().map(turned).collect();
            if found != expected {
                return Err(format!("{} is not what the job computed", path.display()));
            }
        }
    }
    Ok(())
}
