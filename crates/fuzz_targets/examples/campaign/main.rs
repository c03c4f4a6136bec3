//! Hours of fuzzing, one target after the other, round after round.
//!
//! ```text
//! campaign TARGET…|all SECONDS [--rounds N] [--dir DIR]     figures go to DIR/log, a line a target and round
//! campaign distill TARGET…|all                              the smallest inputs that show most go to corpus/
//!
//! DIR/next          where each target goes on            DIR/queue/TARGET/   inputs that showed something new
//! DIR/now           the input under way, and since when  DIR/faults/         inputs that found a fault, and how
//! ```
//! Each target runs in a process of its own: an overflowing stack, too much memory or an input without an end cost that
//! process, and the input is kept. Built as `run` says, it is led by what code an input reaches; else by chance alone.
mod coverage;
mod distill;
mod figures;
mod worker;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use figures::{Figures, Places};
use fuzz_targets::{FuzzTarget, TARGETS, target};

const USAGE: &str =
    "campaign TARGET…|all SECONDS [--rounds N] [--dir DIR], or campaign distill TARGET…|all [--dir DIR]";
/// An input that takes longer has no end.
const INPUT_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

struct Wanted {
    distills: bool,
    targets: Vec<&'static FuzzTarget>,
    seconds: u64,
    rounds: usize,
    dir: PathBuf,
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let mut wanted =
        Wanted { distills: false, targets: Vec::new(), seconds: 0, rounds: 1, dir: "target/campaign".into() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "distill" => wanted.distills = true,
            "all" => wanted.targets.extend(TARGETS),
            "--rounds" => wanted.rounds = words.next()?.parse().ok()?,
            "--dir" => wanted.dir = words.next()?.into(),
            word => match (target(word), word.parse()) {
                (Some(target), _) => wanted.targets.push(target),
                (None, Ok(seconds)) => wanted.seconds = seconds,
                (None, Err(_)) => return None,
            },
        }
    }
    (!wanted.targets.is_empty() && (wanted.distills || wanted.seconds > 0)).then_some(wanted)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, target, dir, seconds, number] = &arguments[..]
        && first == worker::WORD
    {
        return worker::run(target, dir.into(), seconds.parse().expect("seconds"), number.parse().expect("a number"));
    }
    let Some(wanted) = wanted(&arguments) else { panic!("{USAGE}") };
    if wanted.distills {
        return wanted.targets.iter().for_each(|target| distill::distill(target, &wanted.dir));
    }
    let places = Places::new(&wanted.dir);
    for round in 1..=wanted.rounds {
        for target in &wanted.targets {
            let line = in_turn(target, &wanted, &places);
            figures::append(&places.log, &format!("{} round {round} {line}", seconds_now()));
        }
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// One target for its seconds, in as many processes as it breaks.
fn in_turn(target: &FuzzTarget, wanted: &Wanted, places: &Places) -> String {
    let until = Instant::now() + Duration::from_secs(wanted.seconds);
    let mut figures = Figures::default();
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| left.as_secs() > 0) {
        let first = places.next(target.name);
        let child = Command::new(std::env::current_exe().expect("this program has a file"))
            .args([worker::WORD, target.name, &wanted.dir.display().to_string()])
            .args([left.as_secs().to_string(), first.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("this program can be started again");
        let began = Instant::now();
        let ended = watch(child, places);
        figures.seconds += began.elapsed().as_secs_f64();
        figures.add(&places.taken_figures());
        if let Some(how) = ended {
            let number = places.number_now().unwrap_or(first);
            figures.add(&Figures { executions: number.saturating_sub(first) as u64, faults: 1, ..Figures::default() });
            places.keep_fault(target.name, &how, &places.input_now(), &format!("input {number}: {how}"));
            places.go_on_at(target.name, number + 1);
        }
    }
    format!("{} {}", target.name, figures.told())
}

/// How the worker ended, if not in order.
fn watch(mut child: Child, places: &Places) -> Option<String> {
    let mut seen = (None, Instant::now());
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return (!status.success()).then(|| how(status));
        }
        let now = places.number_now();
        if now != seen.0 {
            seen = (now, Instant::now());
        }
        if seen.1.elapsed() > INPUT_PATIENCE {
            drop(child.kill());
            drop(child.wait());
            return Some("it does not end".into());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("ended with {}", status.code().unwrap_or_default()),
    }
}

/// All files of a directory.
fn contents(dir: PathBuf) -> Vec<Vec<u8>> {
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<_> = files.flatten().map(|file| file.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| fs::read(path).ok()).collect()
}
