//! Submissions with all kinds of options and values: clear answers, no panic, nothing lost.
//! `SPUR_FUZZ=10000` makes as many as that.
use cli::getopt::Value;
use cli::submit::{Program, table};

use crate::commands;
use crate::stage::Stage;

const N_SUBMISSIONS: u32 = 2000;
/// All jobs are cancelled and forgotten after so many, so that the checks of the state stay quick.
const N_TOGETHER: u32 = 25;

const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "65536",
    "4294967296",
    "99999999999999999999",
    "1.5",
    "x",
    "é",
    "\u{1F600}",
    " ",
    "a b",
    "1-2",
    "2-1",
    "1:2",
    "1-3:2",
    "1,2",
    "1-5%2",
    "%",
    "%3",
    "n1",
    "n[1-4]",
    "n[1-",
    "n[4-1]",
    "nosuch",
    "debug",
    "debug,nosuch",
    "ALL",
    "NONE",
    "ALL,A=1",
    "10M",
    "1G",
    "1000000T",
    "-5G",
    "00:10",
    "1-00:00:00",
    "UNLIMITED",
    "now+1hour",
    "midnight",
    "2020-01-01",
    "USR1@10",
    "B:TERM",
    "R:1@2",
    "KILL@",
    "afterok:1",
    "afterany:1:2",
    "after:1+5",
    "singleton",
    "afterok:999",
    "afterok:1?afterany:2",
    "gpu:1",
    "gpu:x",
    "gpu:",
    "gpu:1,gpu:2",
    "fast&big",
    "[a*2]",
    "[fast|big]",
    "[fast*1&big*1]",
    "big*2",
    "(a|b)&c",
    "block:cyclic",
    "plane=2",
    "user",
    "END,FAIL",
    "out.%j.%a.%t.%N",
    "/dev/null",
    "%%",
    "'",
    "\"",
    "--",
    ":",
    "append",
    "truncate",
    "yes",
    "no",
];

/// A small generator; the same seed gives the same submissions everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

#[test]
fn any_submission_is_taken_whole_or_refused_with_a_word() {
    let n_submissions = std::env::var("SPUR_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(N_SUBMISSIONS);
    let mut dice = Dice(1);
    let mut stage = Stage::new("");
    let (mut n_taken, mut n_refused) = (0, 0);
    for number in 1..=n_submissions {
        let arguments = some_arguments(&mut dice);
        let said = commands::run(&mut stage, "sbatch", &arguments);
        let is_answer = said.contains("Usage:") || said.contains("slurm ");
        let id = said.lines().find_map(|line| line.strip_prefix("Submitted batch job "));
        let id = id.or_else(|| said.lines().last().filter(|line| line.chars().all(|sign| sign.is_ascii_digit())));
        match id.and_then(|id| id.split_whitespace().next()?.split(';').next()?.parse().ok()) {
            Some(id) => {
                assert!(stage.cluster.named(&model::JobId(id).into()).is_some(), "{arguments:?}: {said}");
                n_taken += 1;
            }
            None => {
                let is_clear = said.contains("sbatch: ") && said.contains("[exit ") && !said.contains("Internal error");
                let is_quiet =
                    said.is_empty() && arguments.iter().any(|word| word.starts_with("--quie") || word == "-Q");
                assert!(is_clear || is_answer || is_quiet, "{arguments:?}: {said:?}");
                n_refused += 1;
            }
        }
        if number % N_TOGETHER == 0 {
            let jobs = stage.cluster.jobs().map(|job| job.id.into()).collect();
            stage.command(stage.caller(), model::Command::Cancel { jobs, hurry: false }).expect("jobs are cancelled");
            stage.direct("time passes 400s");
            let left: Vec<_> = stage.cluster.jobs().map(|job| (job.id, job.phase, job.spec.buffer.clone())).collect();
            assert!(left.is_empty(), "all are cancelled and forgotten: {left:?}");
        }
    }
    assert!(n_taken > n_submissions / 20 && n_refused > n_submissions / 20, "{n_taken} taken, {n_refused} refused");
}

fn some_arguments(dice: &mut Dice) -> Vec<String> {
    let options: Vec<&table::Opt> = table::of(Program::Sbatch).collect();
    let mut arguments = Vec::new();
    for _ in 0..dice.below(4) {
        let option = dice.pick(&options);
        // Reads files of this machine, or asks for a login.
        if matches!(option.long, "export-file" | "get-user-env" | "nodefile" | "uid" | "gid") {
            continue;
        }
        let mut name = format!("--{}", option.long);
        if dice.below(10) == 0 {
            name.pop();
        }
        let value = dice.pick(VALUES).to_string();
        match (option.value, dice.below(6)) {
            (Value::None, 0) => arguments.push(format!("{name}={value}")),
            (Value::None, _) => arguments.push(name),
            (Value::Optional, 0..3) => arguments.push(name),
            (Value::Required, 0) => arguments.extend([name, value]),
            (Value::Optional | Value::Required, _) => arguments.push(format!("{name}={value}")),
        }
        if dice.below(12) == 0 {
            arguments.push(":".to_string());
        }
    }
    arguments.push("job.sh".to_string());
    arguments
}
