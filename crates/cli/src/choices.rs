//! Lists of what options take, as completion scripts and people read them: `--helpformat`, `--helpstate`, `--helpreason`.

/// So many to a line, each as wide, with a blank between two.
pub fn in_columns<'a>(words: impl Iterator<Item = &'a str>, n_columns: usize, width: usize) -> String {
    let words: Vec<String> = words.map(|word| format!("{word:<width$}")).collect();
    words.chunks(n_columns).map(|line| line.join(" ") + "\n").collect()
}

/// Fields of `--format=`, as `%i`.
pub fn letters(letters: impl Iterator<Item = char>) -> String {
    let words: Vec<String> = letters.filter(|letter| *letter != '\0').map(|letter| format!("%{letter}    ")).collect();
    words.chunks(4).map(|line| line.concat() + "\n").collect()
}

/// Fields of `--Format=`.
pub fn names(names: &[&str]) -> String {
    names.chunks(4).map(|line| line.iter().map(|name| format!("{name:<19} ")).collect::<String>() + "\n").collect()
}

/// One to a line, in small letters.
pub fn lines<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| word.to_lowercase() + "\n").collect()
}
