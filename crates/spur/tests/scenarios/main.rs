//! Golden transcripts: what a user could have typed, on the real parsing, state, scheduler and rendering; no process, no socket.
//!
//! A scenario is a text file in `tests/scenarios/`:
//! ```text
//! ## prose
//! | a line of spur.conf (before anything else; without any there are four nodes of eight CPUs)
//! # a stage direction: `time passes 60s`, `n1 is lost`, `n1 comes back`, `job 3 exits 1`, `as bob`, `as root`
//! $ a command
//! ```
//! What stands under a command is its output. `BLESS=1` writes the present output into the files.
use std::path::{Path, PathBuf};

mod commands;
mod fuzz;
mod stage;

use stage::Stage;

#[test]
fn every_transcript_is_what_the_commands_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("there are scenarios").map(|entry| entry.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let blesses = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for file in files {
        let expected = std::fs::read_to_string(&file).expect("a readable scenario");
        let played = play(&expected);
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        if played == expected {
            continue;
        }
        if blesses {
            std::fs::write(&file, played).expect("a writable scenario");
        } else {
            wrong.push(format!("{name}:\n{}", difference(&expected, &played)));
        }
    }
    assert!(wrong.is_empty(), "run with BLESS=1 if this is meant to be so:\n{}", wrong.join("\n"));
}

/// The transcript with the output that comes now.
fn play(scenario: &str) -> String {
    let is_written = |line: &&str| ["## ", "| ", "# ", "$ "].iter().any(|mark| line.starts_with(mark));
    let written: Vec<&str> = scenario.lines().filter(is_written).collect();
    let conf: String =
        written.iter().filter_map(|line| line.strip_prefix("| ")).map(|line| format!("{line}\n")).collect();
    let mut stage = Stage::new(&conf);
    let mut out = String::new();
    let mut was_prose = true;
    for line in written {
        let is_prose = line.starts_with("## ");
        if is_prose && !was_prose {
            out.push('\n');
        }
        was_prose = is_prose;
        out.push_str(line);
        out.push('\n');
        if let Some(direction) = line.strip_prefix("# ") {
            stage.direct(direction);
        } else if let Some(command) = line.strip_prefix("$ ") {
            out.push_str(&commands::type_in(&mut stage, command));
        }
    }
    out
}

/// The first lines that differ.
fn difference(expected: &str, played: &str) -> String {
    let mut lines = expected.lines().zip(played.lines()).enumerate();
    match lines.find(|(_, (before, now))| before != now) {
        Some((at, (before, now))) => format!("  line {}\n  - {before}\n  + {now}", at + 1),
        None => format!("  {} lines were written, {} came", expected.lines().count(), played.lines().count()),
    }
}
