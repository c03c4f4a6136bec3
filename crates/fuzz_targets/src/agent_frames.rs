//! Frames between agent, supervisors and the servers of users' tasks, cut anywhere.
use agent::foreign_bytes::{Birth, FromServer, FromSupervisor, Incoming, ToServer, ToSupervisor, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use testkit::hostile_values::draw;

struct FrameKind {
    hear: fn(&[&[u8]]),
    draw: fn(&mut &[u8]) -> Option<Vec<u8>>,
}

/// Takes whole values as they come; a value that was taken is written as it would be read.
fn hear<T: Serialize + DeserializeOwned>(pieces: &[&[u8]]) {
    for mut incoming in [Incoming::of_users(), Incoming::default()] {
        take_all::<T>(&mut incoming, pieces);
    }
}

fn take_all<T: Serialize + DeserializeOwned>(incoming: &mut Incoming, pieces: &[&[u8]]) {
    for piece in pieces {
        incoming.push(piece);
        loop {
            match incoming.take::<T>() {
                Ok(Some(value)) => {
                    let written = encode(&value);
                    let mut again = Incoming::default();
                    again.push(&written);
                    let again = again.take::<T>().expect("it is whole").expect("it is all there");
                    assert_eq!(written, encode(&again));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

const fn kind<T: Serialize + DeserializeOwned>() -> FrameKind {
    FrameKind { hear: hear::<T>, draw: |entropy| draw::<T>(entropy).map(|value| encode(&value)) }
}

const KINDS: &[FrameKind] =
    &[kind::<FromSupervisor>(), kind::<ToSupervisor>(), kind::<Birth>(), kind::<FromServer>(), kind::<ToServer>()];

pub fn seeds() -> Vec<Vec<u8>> {
    let drawn = (0..KINDS.len()).flat_map(|at| {
        (0..8u8).filter_map(move |turn| {
            let entropy = vec![turn.wrapping_mul(37); 600];
            let frame = (KINDS[at].draw)(&mut entropy.as_slice())?;
            Some([&[at as u8, turn], frame.as_slice(), &frame].concat())
        })
    });
    let claimed = (0..KINDS.len()).map(|at| vec![at as u8, 3, 0xff, 0xff, 0xff, 0x0f, 0x81]);
    drawn.chain(claimed).filter(|seed| seed.len() < 32_768).collect()
}

pub fn run(bytes: &[u8]) {
    let Some((&[kind, cuts], frames)) = bytes.split_first_chunk() else { return };
    (KINDS[usize::from(kind) % KINDS.len()].hear)(&crate::cut(frames, cuts));
}

pub fn drawn_seeds() -> Vec<Vec<u8>> {
    let entropy = |at: usize| (0..=255u8).map(move |byte| byte.wrapping_mul(43).wrapping_add(at as u8));
    (0..KINDS.len() * 6).map(|at| [at as u8, at as u8 / 5].into_iter().chain(entropy(at)).collect()).collect()
}

/// The bytes choose the values instead of being them.
pub fn run_drawn(bytes: &[u8]) {
    let Some((&[kind, cuts], mut entropy)) = bytes.split_first_chunk() else { return };
    let kind = &KINDS[usize::from(kind) % KINDS.len()];
    let frames: Vec<u8> = std::iter::from_fn(|| (!entropy.is_empty()).then(|| (kind.draw)(&mut entropy)))
        .take(4)
        .flatten()
        .flatten()
        .collect();
    (kind.hear)(&crate::cut(&frames, cuts));
}
