//! Where `spur join` has its token from. What stands on a command line, everybody on the machine can read.
use std::fs;
use std::io::{BufRead, IsTerminal};

use crate::getopt::Parsed;

pub const VARIABLE: &str = "SPUR_JOIN_TOKEN";
const USAGE: &str = "usage: spur join [--token-file FILE], with TOKEN@HOST[:PORT] in the file or on standard input";

/// `TOKEN@HOST`, from a file, the environment, standard input, or, against better advice, the command line.
pub fn read(parsed: &Parsed) -> Result<String, String> {
    let given = match (&parsed.operands[..], parsed.value("token-file")) {
        ([], Some("-")) => from_stdin()?,
        ([], Some(file)) => fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?,
        ([], None) => match std::env::var(VARIABLE) {
            Ok(word) => word,
            Err(_) => from_stdin()?,
        },
        ([dash], None) if dash == "-" => from_stdin()?,
        ([word], None) => {
            hide(word);
            eprintln!(
                "spur join: others can read a token on a command line; better: spur join --token-file FILE, or spur join <<< TOKEN@HOST"
            );
            word.clone()
        }
        _ => return Err(USAGE.into()),
    };
    // The line that `spur token` prints may have been kept as it was.
    let word = given.split_whitespace().last().unwrap_or_default().to_owned();
    if word.is_empty() { Err(USAGE.into()) } else { Ok(word) }
}

fn from_stdin() -> Result<String, String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprint!("TOKEN@HOST: ");
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(|error| format!("cannot read the token: {error}"))?;
    Ok(line)
}

/// Takes a word out of what `/proc/PID/cmdline` shows of this process.
fn hide(word: &str) {
    let Some((start, end)) = arguments_place() else { return };
    // SAFETY: the kernel says that our own arguments are there, on the first thread's stack, and nobody else reads or writes them.
    let arguments = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    let word = word.as_bytes();
    let mut at = 0;
    while at + word.len() <= arguments.len() {
        if arguments[at..].starts_with(word) {
            arguments[at..at + word.len()].fill(b'x');
        }
        at += 1;
    }
}

/// Where the kernel finds the arguments of this process: fields 48 and 49 of `stat`.
fn arguments_place() -> Option<(usize, usize)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(45);
    let (start, end): (usize, usize) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (start > 0 && start < end).then_some((start, end))
}
