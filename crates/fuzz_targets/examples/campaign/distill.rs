//! The smallest inputs of a queue that show most of what it shows, for the kept corpus.
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fuzz_targets::{FuzzTarget, TARGETS, corpus_dir};

use crate::contents;
use crate::coverage::Reached;
use crate::figures::Places;

/// Of all targets together; a third is left for inputs that find faults.
const ALL_BYTES: usize = 130 << 10;

/// Small ones first; each must reach what neither the seeds nor the kept ones reach.
pub fn distill(target: &FuzzTarget, dir: &Path) {
    let mut reached = Reached::new();
    let mut run = |input: &[u8]| {
        // Faults are told by the campaign.
        drop(catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
        reached.is_news()
    };
    for input in target.inputs() {
        run(&input);
    }
    let mut inputs = contents(Places::new(dir).queue(target.name));
    inputs.sort_by_key(Vec::len);
    let mut n_left = ALL_BYTES / TARGETS.len();
    let (mut n_kept, corpus) = (0, corpus_dir(target.name));
    fs::create_dir_all(&corpus).expect("the corpus can be written");
    for input in inputs {
        if input.len() <= n_left && run(&input) {
            let sum = input
                .iter()
                .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
            fs::write(corpus.join(format!("{sum:016x}")), &input).expect("the corpus can be written");
            n_left -= input.len();
            n_kept += 1;
        }
    }
    println!("{}: {n_kept} inputs kept in {}", target.name, corpus.display());
}
