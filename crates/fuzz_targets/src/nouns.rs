//! Every noun that a call may hold, from any bytes; what can be read is written and read again as the same.
use model::codec;
use serde::Serialize;

/// A noun whose name nobody needs to know.
struct FuzzedNoun {
    decode: fn(&[u8]),
    draw: fn(&mut &[u8]) -> Option<Vec<u8>>,
}

const fn noun<T: codec::Decode + Serialize + std::fmt::Debug>() -> FuzzedNoun {
    FuzzedNoun {
        decode: |bytes| {
            let Ok(value) = codec::decode::<T>(bytes) else { return };
            let written = codec::encode(&value);
            let again = codec::decode::<T>(&written).expect("what was written can be read");
            // Not compared as values: NaN is not itself.
            assert_eq!(written, codec::encode(&again));
        },
        draw: |entropy| testkit::hostile_values::draw::<T>(entropy).map(|value| codec::encode(&value)),
    }
}

const NOUNS: &[FuzzedNoun] = &[
    noun::<model::Command>(),
    noun::<model::JobSpec>(),
    noun::<model::StepSpec>(),
    noun::<model::command::Blob>(),
    noun::<model::JobRef>(),
    noun::<model::accounts::Change>(),
    noun::<model::agent::Report>(),
    noun::<model::agent::Order>(),
    noun::<model::attach::ToStep>(),
    noun::<model::audit::AuditQuery>(),
    noun::<model::ask::Question>(),
    noun::<model::history::AmendRequest>(),
    noun::<model::history::HistoryQuery>(),
    noun::<model::loudness::LoudnessChange>(),
    noun::<model::members::Wish>(),
    noun::<model::request::JobFilter>(),
    noun::<model::request::JobsPage>(),
    noun::<model::request::SignalRequest>(),
    noun::<model::staging::MirrorRequest>(),
    noun::<model::trust::JoinRequest>(),
    noun::<model::Entry>(),
];

pub fn seeds() -> Vec<Vec<u8>> {
    let drawn = NOUNS.iter().enumerate().flat_map(|(at, noun)| {
        (0..4u8).filter_map(move |turn| {
            // Bytes that are alike everywhere: absent, present, hostile.
            let entropy = vec![turn * 84; 2_000];
            Some([&[at as u8], (noun.draw)(&mut entropy.as_slice())?.as_slice()].concat())
        })
    });
    let nested = [b"\x91".repeat(40_000), b"\x81\xa4Once".repeat(8_000), b"\xdd\xff\xff\xff\xff".to_vec()];
    let nested = nested.into_iter().map(|bytes| [&[0], bytes.as_slice()].concat());
    drawn.chain(nested).filter(|seed| seed.len() < 65_536).collect()
}

pub fn run(bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        (NOUNS[usize::from(*first) % NOUNS.len()].decode)(rest);
    }
}

pub fn drawn_seeds() -> Vec<Vec<u8>> {
    (0..NOUNS.len()).map(|at| (0..=255u8).map(|byte| byte.wrapping_mul(37).wrapping_add(at as u8)).collect()).collect()
}

/// The bytes choose a noun's content instead of being it.
pub fn run_drawn(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let noun = &NOUNS[usize::from(*first) % NOUNS.len()];
    if let Some(written) = (noun.draw)(&mut rest) {
        (noun.decode)(&written);
    }
}
