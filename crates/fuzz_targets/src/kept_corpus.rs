//! Inputs that once showed something new, and every input that found a fault: small files in `corpus/TARGET/`.
use std::fs;
use std::path::PathBuf;

pub fn corpus_dir(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// By their names, in order.
pub fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(files) = fs::read_dir(corpus_dir(target)) else { return Vec::new() };
    let read = |file: fs::DirEntry| Some((file.file_name().into_string().ok()?, fs::read(file.path()).ok()?));
    let mut inputs: Vec<_> = files.flatten().filter_map(read).collect();
    inputs.sort();
    inputs
}
