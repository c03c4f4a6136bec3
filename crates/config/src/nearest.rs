//! The known name that a misspelt one was probably meant to be.

/// The nearest of `known`, when it is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    let ranked = known.into_iter().map(|name| (rank(&word, &name.to_lowercase()), name));
    ranked.filter(|(rank, _)| *rank <= allowed).min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

/// How far apart two names are; one that only lacks or adds whole words at an end is near.
fn rank(word: &str, name: &str) -> usize {
    let (short, long) = if word.len() < name.len() { (word, name) } else { (name, word) };
    let is_part = short.len() >= 3 && (long.starts_with(short) || long.ends_with(short));
    if is_part { 1 } else { edits(word, name) }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        let known = ["names", "cpus", "memory_mb", "gres", "features", "weight", "cores_per_socket"];
        let find = |word| nearest(word, known);
        assert_eq!(find("memroy_mb"), Some("memory_mb"));
        assert_eq!(find("memory"), Some("memory_mb"));
        assert_eq!(find("CPUs"), Some("cpus"));
        assert_eq!(find("name"), Some("names"));
        assert_eq!(find("feature"), Some("features"));
        assert_eq!(find("cores-per-socket"), Some("cores_per_socket"));
        assert_eq!(find("banana"), None);
    }
}
