//! Numbers that nobody can guess.
use ring::rand::{SecureRandom, SystemRandom};

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}
