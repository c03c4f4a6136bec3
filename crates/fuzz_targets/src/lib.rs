//! What is fuzzed, one function a target: bytes in, a panic for a fault. `tests/seeds.rs` runs each for seconds,
//! `examples/campaign` for hours; inputs that showed something new are kept in `corpus/`.
mod agent_frames;
mod backups;
mod brief_calls;
mod call_bodies;
mod call_table;
mod commands;
mod config_files;
mod event_loop;
mod expressions;
mod input_changer;
mod journal_files;
mod journals;
mod kept_corpus;
mod memory_disk;
mod nouns;
mod pmi_messages;
mod script_values;
mod tls_gate;
mod words_of_callers;

pub use call_table::calls_with_a_row;
pub use input_changer::InputChanger;
pub use kept_corpus::{corpus_dir, kept};

/// One thing that strangers' bytes come to.
pub struct FuzzTarget {
    pub name: &'static str,
    /// Inputs to begin with: each shows the fuzzer another way in.
    pub seeds: fn() -> Vec<Vec<u8>>,
    pub run: fn(&[u8]),
    /// Its bytes decide over values instead of being them: few of them make large ones.
    pub draws: bool,
    /// Changed inputs in the suite, which takes seconds.
    pub n_in_suite: usize,
}

const N_IN_SUITE: usize = 1_500;
/// Where an input makes large values.
const N_OF_LARGE: usize = 300;

impl FuzzTarget {
    const fn of_bytes(name: &'static str, seeds: fn() -> Vec<Vec<u8>>, run: fn(&[u8])) -> FuzzTarget {
        FuzzTarget { name, seeds, run, draws: false, n_in_suite: N_IN_SUITE }
    }

    const fn of_choices(name: &'static str, seeds: fn() -> Vec<Vec<u8>>, run: fn(&[u8])) -> FuzzTarget {
        FuzzTarget { name, seeds, run, draws: true, n_in_suite: N_IN_SUITE }
    }

    const fn of_large_values(self) -> FuzzTarget {
        FuzzTarget { n_in_suite: N_OF_LARGE, ..self }
    }

    /// The seeds, and what the corpus keeps.
    pub fn inputs(&self) -> Vec<Vec<u8>> {
        let mut inputs = (self.seeds)();
        inputs.extend(kept(self.name).into_iter().map(|(_, input)| input));
        inputs
    }
}

pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget::of_bytes("expressions", expressions::seeds, expressions::run),
    FuzzTarget::of_bytes("directives", expressions::directive_seeds, expressions::run_directives),
    FuzzTarget::of_bytes("config_files", config_files::seeds, config_files::run),
    FuzzTarget::of_bytes("nouns", nouns::seeds, nouns::run),
    FuzzTarget::of_choices("drawn_nouns", nouns::drawn_seeds, nouns::run_drawn),
    FuzzTarget::of_choices("commands", commands::seeds, commands::run),
    FuzzTarget::of_bytes("words_of_callers", words_of_callers::seeds, words_of_callers::run),
    FuzzTarget::of_bytes("brief_requests", brief_calls::request_seeds, brief_calls::run_requests),
    FuzzTarget::of_bytes("brief_answers", brief_calls::answer_seeds, brief_calls::run_answers),
    FuzzTarget::of_bytes("call_bodies", call_bodies::seeds, call_bodies::run),
    FuzzTarget::of_choices("drawn_call_bodies", call_bodies::drawn_seeds, call_bodies::run_drawn).of_large_values(),
    FuzzTarget::of_bytes("tls_gate", tls_gate::seeds, tls_gate::run),
    FuzzTarget::of_bytes("journals", journals::seeds, journals::run),
    FuzzTarget::of_bytes("backups", backups::seeds, backups::run),
    FuzzTarget::of_bytes("agent_frames", agent_frames::seeds, agent_frames::run),
    FuzzTarget::of_choices("drawn_agent_frames", agent_frames::drawn_seeds, agent_frames::run_drawn).of_large_values(),
    FuzzTarget::of_bytes("script_values", script_values::seeds, script_values::run),
    FuzzTarget::of_bytes("pmi_messages", pmi_messages::seeds, pmi_messages::run),
];

pub fn target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The first byte chooses among `n`, the rest is text; none: it is no text.
fn choice_and_text(bytes: &[u8], n: usize) -> Option<(usize, &str)> {
    let (first, rest) = bytes.split_first()?;
    Some((usize::from(*first) % n, std::str::from_utf8(rest).ok()?))
}

/// The bytes in pieces whose lengths a number decides; zero: in one piece.
fn cut(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut pieces, mut rest, mut turn) = (Vec::new(), bytes, u32::from(seed));
    while seed > 0 && !rest.is_empty() {
        turn = turn.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        // Most cuts are early: heads are read there.
        let most = if turn & 0x100 == 0 { 8 } else { 4_096 };
        let (piece, after) = rest.split_at(((turn >> 16) as usize % most + 1).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}
