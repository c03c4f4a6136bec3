//! What reading a user's expression may cost: counted, not timed. Every parser is given hostile texts of 64 KB, and texts made of
//! its own words; none may ask for more memory, or more often, than stands in its row.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use model::pattern::{PatternValues, expand};
use model::pool::BurstBufferConfig;
use model::{
    CpuSet, decode_work, dependency, directive, duration, feature_sets, features, gres, hostlist, license, ranges, size,
};
use proptest::prelude::*;

/// Counts what this thread asks for.
struct CountingAllocator;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static PIECES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        let _ = PIECES.try_with(|pieces| pieces.set(pieces.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const TEXT_BYTES: usize = 64 << 10;
const MIB: usize = 1 << 20;

/// A parser, what it may ask for in all, and words of its language.
type ParserRow = (&'static str, fn(&str), usize, usize, &'static [&'static str]);

const FEATURES: &[&str] = &["a", "&", "|", "(", ")", "!", "[", "]", "*2", ","];

const PARSERS: &[ParserRow] = &[
    ("array", arrays, 64 * MIB, 200_000, &["0-4000000", ":2", ":3", ":1999", "1-3999999", ",", "0", "%5", "["]),
    (
        "hosts",
        |text| drop(hostlist::expand(text)),
        400 * MIB,
        6_000_000,
        &["n[0-65535]", "[0-9999]", "[0-9]", "a", ",", "[0-4000000000]", "{"],
    ),
    ("CPUs", |text| drop(text.parse::<CpuSet>()), MIB, 1000, &["0-65535", ",", "65535", "0", "-"]),
    ("CPU mask", |text| drop(CpuSet::parse_mask(text)), MIB, 1000, &["0x", "F", "0", "1"]),
    ("features", |text| drop(features::parse(text)), 32 * MIB, 300_000, FEATURES),
    ("counted features", |text| drop(feature_sets::parse(text)), 64 * MIB, 300_000, FEATURES),
    (
        "dependency",
        |text| drop(dependency::parse(text)),
        16 * MIB,
        200_000,
        &["afterok:", "1_[0-9999]", ":", ",", "?", "5", "1_[0-4000000:2]", "["],
    ),
    ("gres", |text| drop(gres::parse_list(text)), 32 * MIB, 300_000, &["gpu", ":", "a100", "4", "1K", ","]),
    ("licenses", |text| drop(license::parse(text)), MIB, 10_000, &["a", "b1", ":", "4", ",", ";", "|"]),
    ("time", durations, MIB, 1000, &["1", "-", ":", "99999999999"]),
    ("sizes", sizes, MIB, 1000, &["1", "G", "TiB"]),
    ("file name", patterns, 192 * MIB, 1000, &["%x", "%99999999999j", "%%", "\\", "%"]),
    (
        "directives",
        directives,
        64 * MIB,
        2_000_000,
        &["#DW ", "#BB ", "jobdw ", "capacity=1G ", "stage_in ", "source=/a ", "\n", "\\\n"],
    ),
];

fn arrays(text: &str) {
    drop(ranges::parse_array(text).map(|(tasks, _)| tasks.show_within(64)));
}

fn durations(text: &str) {
    let _ = duration::parse(text);
}

fn sizes(text: &str) {
    let _ = (size::parse_megabytes(text), size::parse_amount(text));
}

fn patterns(text: &str) {
    drop(expand(text, &PatternValues { job_name: "n".repeat(1024), ..PatternValues::default() }));
}

fn directives(text: &str) {
    let sources = directive::Sources { script: text, option: text, file: text };
    drop(directive::request(&BurstBufferConfig::default(), sources, &|_| true));
}

#[track_caller]
fn check((name, run, most_bytes, most_pieces, _): &ParserRow, text: &str) {
    let (bytes, pieces) = (BYTES.get(), PIECES.get());
    run(text);
    let (bytes, pieces) = (BYTES.get() - bytes, PIECES.get() - pieces);
    let shown: String = text.chars().take(60).collect();
    assert!(bytes <= *most_bytes, "{name}: {shown}… asks for {bytes} bytes");
    assert!(pieces <= *most_pieces, "{name}: {shown}… asks {pieces} times");
}

fn repeated(words: &str) -> String {
    words.repeat(TEXT_BYTES / words.len())
}

#[test]
fn no_parser_takes_more_than_its_row_allows() {
    let crossing: String = (2..4000).map(|step| format!("{step}-4000000:{step},")).collect();
    let names: String = (0..9_000).map(|number| format!("l{number},")).collect();
    for row in PARSERS {
        for text in [&crossing, &names, &repeated("("), &repeated("!"), &repeated("["), &repeated("]"), &repeated(",")]
        {
            check(row, &text[..text.len().min(TEXT_BYTES)]);
        }
        for first in row.4 {
            check(row, &repeated(first));
            for second in row.4 {
                check(row, &repeated(&format!("{first}{second}")));
                check(row, &format!("{first}{}", repeated(&format!("{second},"))));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_mixture_of_words_takes_more(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..24),
        n_bytes in 1..TEXT_BYTES,
    ) {
        for row in PARSERS {
            let text: String = picks.iter().map(|pick| *pick.get(row.4)).collect();
            check(row, &text.repeat(n_bytes.div_ceil(text.len())));
        }
    }
}

#[test]
fn message_that_expands_is_bounded_as_a_whole() {
    let bytes = model::codec::encode(&vec!["0-65535"; 9000]);
    let before = BYTES.get();
    let decoded = decode_work::within(decode_work::MESSAGE_MOST, || model::codec::decode::<Vec<CpuSet>>(&bytes));
    assert!(decoded.is_err());
    assert!(BYTES.get() - before < 16 * MIB, "{} bytes", BYTES.get() - before);
}
