//! The structures of libpmix's interface, versions 3 to 5, and lists of them built from Rust's values.
use std::ffi::{CString, c_char, c_void};

pub const NAMESPACE_BYTES: usize = 256;
const KEY_BYTES: usize = 512;
/// All ranks of a namespace.
pub const WILDCARD: u32 = u32::MAX - 1;

/// Kinds of values (`pmix_data_type_t`).
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT16: u16 = 13;
const UINT32: u16 = 14;
const INFO: u16 = 24;
const DATA_ARRAY: u16 = 39;
const PROC_RANK: u16 = 40;
pub const REGEX: u16 = 49;
pub const TEXT: u16 = STRING;

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pub namespace: [c_char; NAMESPACE_BYTES],
    pub rank: u32,
}

/// `pmix_data_array_t`
#[repr(C)]
pub struct Array {
    kind: u16,
    size: usize,
    items: *mut c_void,
}

/// The union in `pmix_value_t`; its largest member has two pointers and a byte.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    flag: bool,
    string: *mut c_char,
    uint16: u16,
    uint32: u32,
    array: *mut Array,
    room: [u64; 3],
}

/// `pmix_value_t`
#[repr(C)]
pub struct Value {
    pub kind: u16,
    pub data: Data,
}

/// `pmix_info_t`
#[repr(C)]
pub struct Info {
    key: [c_char; KEY_BYTES],
    flags: u32,
    pub value: Value,
}

impl Process {
    pub fn new(namespace: &str, rank: u32) -> Self {
        let mut name = [0; NAMESPACE_BYTES];
        fill(&mut name, namespace);
        Process { namespace: name, rank }
    }
}

/// As much as fits, with a NUL behind it.
fn fill(room: &mut [c_char], text: &str) {
    let length = text.len().min(room.len() - 1);
    for (to, from) in room.iter_mut().zip(&text.as_bytes()[..length]) {
        *to = *from as c_char;
    }
}

/// A list of named values, with all that they point to.
#[derive(Default)]
pub struct Infos {
    infos: Vec<Info>,
    texts: Vec<CString>,
    /// Boxes, because the list points to them and may move.
    #[allow(clippy::vec_box, reason = "the addresses must stay")]
    inner: Vec<Box<(Array, Infos)>>,
}

impl Infos {
    pub fn text(&mut self, key: &str, text: &str) {
        // A NUL in a name would end it early anyway.
        let text = CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default();
        let string = text.as_ptr().cast_mut();
        self.texts.push(text);
        self.push(key, STRING, Data { string });
    }

    pub fn number(&mut self, key: &str, uint32: u32) {
        self.push(key, UINT32, Data { uint32 });
    }

    pub fn small(&mut self, key: &str, uint16: u16) {
        self.push(key, UINT16, Data { uint16 });
    }

    pub fn rank(&mut self, key: &str, uint32: u32) {
        self.push(key, PROC_RANK, Data { uint32 });
    }

    pub fn flag(&mut self, key: &str, flag: bool) {
        self.push(key, BOOL, Data { flag });
    }

    pub fn list(&mut self, key: &str, infos: Infos) {
        let mut inner = Box::new((Array { kind: INFO, size: infos.infos.len(), items: std::ptr::null_mut() }, infos));
        inner.0.items = inner.1.infos.as_mut_ptr().cast();
        let array = &raw mut inner.0;
        self.inner.push(inner);
        self.push(key, DATA_ARRAY, Data { array });
    }

    /// One whose value is filled in by the library.
    pub fn empty(&mut self, key: &str) -> &mut Value {
        self.push(key, 0, Data { room: [0; 3] });
        &mut self.infos.last_mut().expect("just pushed").value
    }

    fn push(&mut self, key: &str, kind: u16, data: Data) {
        let mut name = [0; KEY_BYTES];
        fill(&mut name, key);
        // The rest of the union is zero, whatever member was set.
        let mut whole = Data { room: [0; 3] };
        // SAFETY: plain bytes are copied; every member lies within `room`.
        unsafe {
            let size = match kind {
                BOOL => size_of::<bool>(),
                UINT16 => size_of::<u16>(),
                UINT32 | PROC_RANK => size_of::<u32>(),
                STRING | DATA_ARRAY => size_of::<*mut c_void>(),
                _ => 0,
            };
            std::ptr::copy_nonoverlapping((&raw const data).cast::<u8>(), (&raw mut whole).cast::<u8>(), size);
        }
        self.infos.push(Info { key: name, flags: 0, value: Value { kind, data: whole } });
    }

    pub fn len(&self) -> usize {
        self.infos.len()
    }

    pub fn as_mut_ptr(&mut self) -> *mut Info {
        self.infos.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_large_as_the_librarys() {
        assert_eq!(size_of::<Process>(), 260);
        assert_eq!(size_of::<Array>(), 24);
        assert_eq!(size_of::<Value>(), 32);
        assert_eq!(size_of::<Info>(), 552);
        assert_eq!(std::mem::offset_of!(Info, value), 520);
    }

    #[test]
    fn names_that_are_too_long_are_cut_and_ended() {
        let process = Process::new(&"n".repeat(400), 3);
        assert_eq!((process.namespace[254], process.namespace[255]), (b'n' as c_char, 0));
    }
}
