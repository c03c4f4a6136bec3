//! A tree brought over from another mover instead of from its source: so many nodes need not all read the same files of a shared
//! file system. What carries the bytes between the two sockets is nobody's concern here.
//!
//! ```text
//! receiver                                                     sender (the same user, where the tree is complete)
//!   HELLO, HAVE …, READY                                 ──▶
//!                                                        ◀──  TOTAL
//!                 for each directory, its files first:   ◀──  IN, then SAME | LINK | FILE, CHUNK DATA… CHUNK_END …, FILE_END
//!   WANT (for large files: which chunks are missing)     ──▶
//!                 after all that is below it:            ◀──  DIRECTORY
//!                                                        ◀──  END, or TROUBLE
//! ```
//! Every chunk is hashed on both sides. Files are journalled under the same keys as those copied from the source, so that whoever
//! goes on, with another peer or with the source itself, copies nothing twice.
mod line;
mod receive;
mod send;

pub use receive::receive;
pub use send::{SEND, serve, start};

/// Both ends are the same release, or do not speak to each other.
const VERSION: u64 = 1;

const HELLO: u8 = 1;
const HAVE: u8 = 2;
const READY: u8 = 3;
const TOTAL: u8 = 4;
const IN: u8 = 5;
const SAME: u8 = 6;
const LINK: u8 = 7;
const FILE: u8 = 8;
const WANT: u8 = 9;
const CHUNK: u8 = 10;
const DATA: u8 = 11;
const CHUNK_END: u8 = 12;
const FILE_END: u8 = 13;
const DIRECTORY: u8 = 14;
const END: u8 = 15;
const TROUBLE: u8 = 16;

/// Bytes of a file in one frame.
const DATA_BYTES: usize = 128 << 10;
/// Each level costs a descriptor.
const DEPTH_MAX: usize = 800;

use crate::attributes::Attribute;
use crate::pack::{self, Unpack};
use crate::plan::Where;

fn place(below: &[u8]) -> Where {
    Where { fence: Some(0), anchor: Vec::new(), below: below.to_vec() }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

fn pack_attributes(out: &mut Vec<u8>, attributes: &[Attribute]) {
    for (name, value) in attributes {
        pack::bytes(out, name);
        pack::bytes(out, value);
    }
}

/// Whatever is left of a frame.
fn unpack_attributes(unpack: &mut Unpack) -> Option<Vec<Attribute>> {
    let mut found = Vec::new();
    while !unpack.0.is_empty() {
        found.push((unpack.bytes()?.to_vec(), unpack.bytes()?.to_vec()));
    }
    Some(found)
}

/// One name in a directory, whatever the other end says.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}
