//! The fuzz targets for a few seconds: their seeds, the kept corpus, and changes of both that a number decides. `SPUR_FUZZ`
//! says how many.
//!
//! No input may make its target hold much memory: what an input costs has to do with its length.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fuzz_targets::{FuzzTarget, InputChanger, TARGETS, target};

/// What a target may hold at once, whatever its input of at most 64 KB says.
const HELD_BYTES_MAX: isize = 96 << 20;
/// Where a byte can stand for a list of thousands.
const HELD_BYTES_MAX_OF_DRAWN: isize = 1 << 30;

/// Of all targets together.
const CORPUS_BYTES_MAX: usize = 200 << 10;

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
    let seeds = target.inputs();
    assert!(!seeds.is_empty());
    for seed in &seeds {
        run(target, seed);
    }
    let n_changed = std::env::var("SPUR_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(target.n_in_suite);
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
    brief_requests_of_any_bytes_are_answered "brief_requests",
    brief_answers_of_any_bytes_are_read "brief_answers",
    call_bodies_stay_within_their_bounds "call_bodies",
    drawn_call_bodies_are_read_as_written "drawn_call_bodies",
    tls_gate_lets_in_who_was_signed "tls_gate",
    journals_of_any_content_are_opened_or_refused "journals",
    backups_of_any_content_are_taken_or_refused "backups",
    agent_frames_take_any_bytes "agent_frames",
    drawn_agent_frames_are_read_as_written "drawn_agent_frames",
    script_values_of_any_text_are_taken_or_refused "script_values",
    pmi_messages_of_any_program_are_answered "pmi_messages",
}

#[test]
fn call_table_has_a_row_for_every_call() {
    let contract = include_str!("../../../proto/spur.proto");
    let mut calls: Vec<_> =
        contract.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next()).collect();
    let mut rows: Vec<_> = fuzz_targets::calls_with_a_row().collect();
    calls.sort_unstable();
    rows.sort_unstable();
    assert_eq!(rows, calls, "crates/fuzz_targets/src/call_table.rs: CALLS");
}

#[test]
fn kept_corpus_is_small_and_of_known_targets() {
    let corpus = fuzz_targets::corpus_dir("").read_dir().expect("crates/fuzz_targets/corpus");
    for entry in corpus.flatten() {
        let name = entry.file_name().into_string().expect("a name");
        assert!(target(&name).is_some(), "{name} is no target");
    }
    let kept = TARGETS.iter().flat_map(|target| fuzz_targets::kept(target.name));
    let n_bytes: usize = kept.map(|(_, input)| input.len()).sum();
    assert!(n_bytes <= CORPUS_BYTES_MAX, "the corpus has {n_bytes} bytes");
}
