//! The hash of a file: xxh3 of 128 bits over each chunk, and over the chunks' hashes when there are several, so that chunks may
//! be copied, checked and resumed apart.
use std::sync::OnceLock;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub struct ChunkHash(Box<Xxh3>);

impl ChunkHash {
    pub fn new() -> Self {
        ChunkHash(Box::new(Xxh3::new()))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn update_zeros(&mut self, mut n_bytes: u64) {
        while n_bytes > 0 {
            let length = n_bytes.min(ZEROS.len() as u64);
            self.0.update(&ZEROS[..length as usize]);
            n_bytes -= length;
        }
    }

    pub fn finish(&self) -> u128 {
        self.0.digest128()
    }
}

pub fn combine(chunks: &[u128]) -> u128 {
    match chunks {
        [one] => *one,
        several => xxh3_128(&several.iter().flat_map(|chunk| chunk.to_le_bytes()).collect::<Vec<u8>>()),
    }
}

/// Of a whole chunk that is a hole; computed once.
pub fn of_hole(chunk_bytes: u64) -> u128 {
    static KNOWN: OnceLock<(u64, u128)> = OnceLock::new();
    let compute = || {
        let mut hash = ChunkHash::new();
        hash.update_zeros(chunk_bytes);
        hash.finish()
    };
    let (bytes, hash) = *KNOWN.get_or_init(|| (chunk_bytes, compute()));
    if bytes == chunk_bytes { hash } else { compute() }
}
