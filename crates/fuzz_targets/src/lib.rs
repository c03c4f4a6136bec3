//! What is fuzzed, one function a target: bytes in, a panic for a fault. `fuzz/` runs them for hours, `tests/seeds.rs` for seconds.
mod commands;
mod config_files;
mod expressions;
mod input_changer;
mod nouns;
mod words_of_callers;

pub use input_changer::InputChanger;

/// One thing that strangers' bytes come to.
pub struct FuzzTarget {
    pub name: &'static str,
    /// Inputs to begin with: each shows the fuzzer another way in.
    pub seeds: fn() -> Vec<Vec<u8>>,
    pub run: fn(&[u8]),
    /// Its bytes decide over values instead of being them: few of them make large ones.
    pub draws: bool,
}

pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "expressions", seeds: expressions::seeds, run: expressions::run, draws: false },
    FuzzTarget {
        name: "directives",
        seeds: expressions::directive_seeds,
        run: expressions::run_directives,
        draws: false,
    },
    FuzzTarget { name: "config_files", seeds: config_files::seeds, run: config_files::run, draws: false },
    FuzzTarget { name: "nouns", seeds: nouns::seeds, run: nouns::run, draws: false },
    FuzzTarget { name: "drawn_nouns", seeds: nouns::drawn_seeds, run: nouns::run_drawn, draws: true },
    FuzzTarget { name: "commands", seeds: commands::seeds, run: commands::run, draws: true },
    FuzzTarget { name: "words_of_callers", seeds: words_of_callers::seeds, run: words_of_callers::run, draws: false },
];

pub fn target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The first byte chooses among `n`, the rest is text; none: it is no text.
fn choice_and_text(bytes: &[u8], n: usize) -> Option<(usize, &str)> {
    let (first, rest) = bytes.split_first()?;
    Some((usize::from(*first) % n, std::str::from_utf8(rest).ok()?))
}
