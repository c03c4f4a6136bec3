//! Output with its task's number before each line (`srun -l`).

/// So wide is the number where there are so many tasks.
pub fn width(n_tasks: u32) -> usize {
    n_tasks.saturating_sub(1).to_string().len()
}

/// Every line with its task in front; a labelled line always ends.
pub fn lines(width: usize, rank: u32, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + data.len() / 8 + 16);
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(format!("{rank:>width$}: ").as_bytes());
        out.extend_from_slice(line);
    }
    if !out.is_empty() && out.last() != Some(&b'\n') {
        out.push(b'\n');
    }
    out
}
