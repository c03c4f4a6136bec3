//! The fuzz targets for a few seconds: their seeds, and changes of them that a number decides. `SPUR_FUZZ` says how many.
//!
//! No input may make its target hold much memory: what an input costs has to do with its length.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fuzz_targets::{FuzzTarget, InputChanger, TARGETS, target};

/// Changed inputs of each target.
const N_CHANGED: usize = 1_500;
/// What a target may hold at once, whatever its input of at most 64 KB says.
const HELD_BYTES_MAX: isize = 96 << 20;
/// Where a byte can stand for a list of thousands.
const HELD_BYTES_MAX_OF_DRAWN: isize = 1 << 30;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct CountedMemory;

fn count(change: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for CountedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static MEMORY: CountedMemory = CountedMemory;

fn run(target: &FuzzTarget, input: &[u8]) {
    MOST.set(HELD.get());
    let before = HELD.get();
    (target.run)(input);
    let most = MOST.get() - before;
    let bound = if target.draws { HELD_BYTES_MAX_OF_DRAWN } else { HELD_BYTES_MAX };
    assert!(most <= bound, "{}: {most} bytes for an input of {}: {input:.80?}", target.name, input.len());
}

fn survives(name: &str) {
    let target = target(name).expect("a target of this name");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    for seed in &seeds {
        run(target, seed);
    }
    let n_changed = std::env::var("SPUR_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(N_CHANGED);
    for number in 1..=n_changed {
        run(target, &InputChanger::of(number).changed(&seeds));
    }
}

macro_rules! targets {
    ($($test:ident $name:literal),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                survives($name);
            }
        )*

        #[test]
        fn every_target_is_run_for_seconds() {
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), [$($name),*]);
        }
    };
}

targets! {
    expressions_take_any_text "expressions",
    directives_take_any_text "directives",
    config_files_take_any_text "config_files",
    nouns_take_any_bytes "nouns",
    drawn_nouns_are_read_as_written "drawn_nouns",
    commands_break_no_invariant "commands",
    words_of_callers_are_not_believed "words_of_callers",
}
