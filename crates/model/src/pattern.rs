//! File names with placeholders, as `-o`, `-e` and `-i` take them: `slurm-%A_%4a.out`.

use std::fmt::Write;

/// The widest zero padding.
const WIDTH_MAX: usize = 10;
/// What Slurm prints as the array index of a job that is no array task.
pub const NO_TASK: u32 = 4_294_967_294;

/// What the placeholders stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternValues {
    pub job: u32,
    /// The id that all tasks of the array share.
    pub array_job: Option<u32>,
    pub array_task: Option<u32>,
    /// `0`, `batch`, `interactive` …
    pub step: Option<String>,
    /// The rank in the step.
    pub task: u32,
    /// The node's place in the job.
    pub node_index: u32,
    /// The short host name.
    pub node_name: String,
    pub user: String,
    pub job_name: String,
}

/// The file name meant; unknown placeholders stay, and one backslash anywhere keeps them all.
pub fn expand(pattern: &str, values: &PatternValues) -> String {
    if pattern.contains('\\') {
        return unescape(pattern);
    }
    let mut name = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some((text, after)) = rest.split_once('%') {
        name.push_str(text);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let width = after[..digits].parse().unwrap_or(if digits == 0 { 0 } else { WIDTH_MAX }).min(WIDTH_MAX);
        match after[digits..].chars().next() {
            Some(letter) if append(&mut name, letter, width, values) => {
                rest = &after[digits + letter.len_utf8()..];
            }
            // An unknown letter stays; Slurm drops the percent sign where a width stands before it.
            _ => {
                name.push_str(if digits == 0 { "%" } else { "" });
                rest = after;
            }
        }
    }
    name.push_str(rest);
    name
}

/// Each backslash makes way for the character behind it.
fn unescape(pattern: &str) -> String {
    let mut name = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.extend(characters.next()),
            other => name.push(other),
        }
    }
    name
}

/// Whether each task (`%t`) or each node (`%N`, `%n`) gets a file of its own.
pub fn varies_by_task(pattern: &str) -> bool {
    mentions(pattern, &['t'])
}

/// As `varies_by_task`, for nodes.
pub fn varies_by_node(pattern: &str) -> bool {
    mentions(pattern, &['N', 'n'])
}

fn mentions(pattern: &str, letters: &[char]) -> bool {
    if pattern.contains('\\') {
        return false;
    }
    let mut rest = pattern;
    while let Some((_, after)) = rest.split_once('%') {
        let after = after.trim_start_matches(|character: char| character.is_ascii_digit());
        if after.starts_with(letters) {
            return true;
        }
        rest = after.strip_prefix('%').unwrap_or(after);
    }
    false
}

/// Appends what the letter stands for; false if it stands for nothing.
fn append(name: &mut String, letter: char, width: usize, values: &PatternValues) -> bool {
    match letter {
        '%' if width == 0 => name.push('%'),
        'A' => append_number(name, values.array_job.unwrap_or(values.job), width),
        'a' => append_number(name, values.array_task.unwrap_or(NO_TASK), width),
        'b' => append_number(name, values.array_task.unwrap_or(NO_TASK) % 10, width),
        'j' => append_number(name, values.job, width),
        'J' => {
            append_number(name, values.job, width);
            if let Some(step) = values.step.as_deref().filter(|step| *step != "batch") {
                name.push('.');
                name.push_str(step);
            }
        }
        'N' => name.push_str(&values.node_name),
        'n' => append_number(name, values.node_index, width),
        's' => match values.step.as_deref().unwrap_or("batch") {
            step if step.bytes().all(|byte| byte.is_ascii_digit()) => {
                write!(name, "{step:0>width$}").expect("a String takes everything");
            }
            step => name.push_str(step),
        },
        't' => append_number(name, values.task, width),
        'u' => name.push_str(&values.user),
        'x' => name.push_str(&values.job_name),
        _ => return false,
    }
    true
}

fn append_number(name: &mut String, number: u32, width: usize) {
    write!(name, "{number:0width$}").expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> PatternValues {
        PatternValues {
            job: 128,
            array_job: Some(120),
            array_task: Some(17),
            step: Some("0".into()),
            task: 3,
            node_index: 1,
            node_name: "n2".into(),
            user: "ada".into(),
            job_name: "my job".into(),
        }
    }

    #[track_caller]
    fn check(pattern: &str, name: &str) {
        assert_eq!(expand(pattern, &values()), name);
    }

    #[test]
    fn each_letter_has_its_value() {
        check("%j %A %a %b %t %N %n %s %u %x %J", "128 120 17 7 3 n2 1 0 ada my job 128.0");
        check("job%J.out", "job128.0.out");
        check("slurm-%A_%a.out", "slurm-120_17.out");
    }

    #[test]
    fn numbers_are_padded_and_words_are_not() {
        check("job%4j.out", "job0128.out");
        check("job%2j-%2t.out", "job128-03.out");
        check("%5N-%5u-%3s", "n2-ada-000");
        check("%99999999999999999999j", "0000000128");
        check("%6J", "000128.0");
    }

    #[test]
    fn percent_and_unknown_letters_stay() {
        check("100%%j", "100%j");
        check("%q%5q%", "%q5q%");
        check("%5%", "5%");
        check("%é", "%é");
        check("", "");
    }

    #[test]
    fn a_backslash_switches_placeholders_off() {
        check("\\%j.out", "%j.out");
        check("%j\\\\%x", "%j\\%x");
    }

    #[test]
    fn a_plain_job_has_itself_as_array() {
        let values = PatternValues { job: 5, step: Some("batch".into()), ..PatternValues::default() };
        assert_eq!(expand("%A_%a %J %s", &values), "5_4294967294 5 batch");
    }

    #[test]
    fn files_of_their_own_are_recognised() {
        assert!(varies_by_task("out-%3t"));
        assert!(!varies_by_task("out-%%t"));
        assert!(!varies_by_task("out-\\%t"));
        assert!(varies_by_node("%j.%N") && varies_by_node("%n") && !varies_by_node("%j"));
    }

    proptest! {
        #[test]
        fn no_pattern_panics(text in any::<String>(), near in "[%0-9a-zA-Zé\\\\]{0,12}") {
            for text in [text, near] {
                expand(&text, &values());
                varies_by_task(&text);
            }
        }

        #[test]
        fn text_without_placeholders_is_itself(text in "[^%\\\\]*") {
            prop_assert_eq!(expand(&text, &values()), text);
        }
    }
}
