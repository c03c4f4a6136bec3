//! `#PBS` and `#BSUB` lines: what scripts that were written for other systems ask for, as options of sbatch. Which letters count, and what
//! for, is what a 22.05 makes of them; all that it passes over is passed over here too.
use super::problem::Line;
use super::{Problem, directives};
use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};

const PBS: &[Flag] = &[
    flag("begin", Some('a'), Value::Required),
    flag("account", Some('A'), Value::Required),
    flag("", Some('c'), Value::Required),
    flag("", Some('C'), Value::Required),
    flag("error", Some('e'), Value::Required),
    flag("hold", Some('h'), Value::None),
    flag("", Some('I'), Value::None),
    flag("", Some('j'), Value::Required),
    flag("array", Some('J'), Value::Required),
    flag("", Some('k'), Value::Required),
    flag("resources", Some('l'), Value::Required),
    flag("mails", Some('m'), Value::Required),
    flag("mail-user", Some('M'), Value::Required),
    flag("job-name", Some('N'), Value::Required),
    flag("output", Some('o'), Value::Required),
    flag("nice", Some('p'), Value::Required),
    flag("partition", Some('q'), Value::Required),
    flag("", Some('r'), Value::Required),
    flag("", Some('S'), Value::Required),
    flag("array", Some('t'), Value::Required),
    flag("", Some('u'), Value::Required),
    flag("export", Some('v'), Value::Required),
    flag("", Some('V'), Value::None),
    flag("attributes", Some('W'), Value::Required),
    flag("", Some('z'), Value::None),
];

const BSUB: &[Flag] = &[
    flag("chdir", Some('c'), Value::Required),
    flag("error", Some('e'), Value::Required),
    flag("job-name", Some('J'), Value::Required),
    flag("hosts", Some('m'), Value::Required),
    flag("kilobytes", Some('M'), Value::Required),
    flag("tasks", Some('n'), Value::Required),
    flag("output", Some('o'), Value::Required),
    flag("partition", Some('q'), Value::Required),
    flag("time", Some('W'), Value::Required),
    flag("exclusive", Some('x'), Value::None),
];

/// What a script asks for in such lines.
#[derive(Debug, Default, PartialEq)]
pub struct Foreign {
    /// Options of sbatch, as words.
    pub words: Vec<String>,
    /// `-W umask=`
    pub umask: Option<u32>,
}

/// `name` is the script's, for messages.
pub fn read(name: &str, script: &str) -> Result<Foreign, Problem> {
    let mut foreign = Foreign::default();
    for (number, line) in directives::comments(script) {
        let words = |magic: &str| directives::words(name, number, line, magic);
        if let Some(words) = words("#PBS")? {
            for (long, value) in options(PBS, &words)?.options {
                foreign.of_pbs(long, &value.unwrap_or_default())?;
            }
        } else if let Some(words) = words("#BSUB")? {
            let words: Vec<String> =
                words.into_iter().map(|word| if word == "-cwd" { "-c".into() } else { word }).collect();
            for (long, value) in options(BSUB, &words)?.options {
                foreign.of_bsub(long, value.as_deref());
            }
        }
    }
    Ok(foreign)
}

fn options(flags: &[Flag], words: &[String]) -> Result<Parsed, Problem> {
    let unknown = |text| {
        let lines = vec![Line::Plain(text), Line::Error("Unrecognized command line parameter ?".to_string())];
        Problem { lines, code: 1 }
    };
    let parsed = getopt::parse(flags, Operands::Mixed, words).map_err(unknown)?;
    match parsed.operands.first() {
        Some(stray) => Err(Problem::error(format!("Invalid argument: {stray}"))),
        None => Ok(parsed),
    }
}

impl Foreign {
    fn say(&mut self, long: &str, value: impl std::fmt::Display) {
        self.words.push(format!("--{long}={value}"));
    }

    fn of_pbs(&mut self, long: &str, value: &str) -> Result<(), Problem> {
        match long {
            "" => {}
            "hold" => self.words.push("--hold".to_string()),
            "resources" => value.split(',').for_each(|item| self.resource(item)),
            "mails" => self.say("mail-type", mail_types(value)),
            "attributes" => {
                for attribute in value.split(',') {
                    self.attribute(attribute)?;
                }
            }
            _ => self.say(long, value),
        }
        Ok(())
    }

    /// One item of `-l`.
    fn resource(&mut self, item: &str) {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        match name {
            "nodes" => self.nodes(value),
            "select" => self.select(value),
            "ncpus" => self.say("mincpus", value),
            "walltime" | "cput" => self.say("time", value),
            "mem" => self.say("mem", size(value)),
            "file" => self.say("tmp", size(value)),
            "nice" => self.say("nice", value),
            "mppnodes" => self.say("nodelist", value),
            "naccelerators" => self.say("gres", format_args!("gpu:{value}")),
            "accelerator" if value.eq_ignore_ascii_case("true") => self.say("gres", "gpu:1"),
            "proc" => self.say("constraint", value),
            _ => {}
        }
    }

    /// `2:ppn=4`, `n1:ppn=2+n2:ppn=2`, `3+ppn=2`
    fn nodes(&mut self, value: &str) {
        let (mut n_nodes, mut n_tasks, mut group, mut names) = (0_u32, 0_u32, 1_u32, Vec::new());
        for piece in value.split(['+', ':']).filter(|piece| !piece.is_empty()) {
            if let Some(each) = piece.strip_prefix("ppn=").and_then(|each| each.parse::<u32>().ok()) {
                n_tasks = n_tasks.saturating_add(group.saturating_mul(each));
            } else if let Ok(count) = piece.parse::<u32>() {
                (n_nodes, group) = (n_nodes.saturating_add(count), count);
            } else {
                names.push(piece);
                group = 1;
            }
        }
        if n_nodes > 0 {
            self.say("nodes", n_nodes);
        }
        if !names.is_empty() {
            self.say("nodelist", names.join(","));
        }
        if n_tasks > 0 {
            self.say("ntasks", n_tasks);
        }
    }

    /// `2:ncpus=4:mem=1gb`
    fn select(&mut self, value: &str) {
        for piece in value.split(':') {
            match piece.split_once('=') {
                None => self.say("nodes", piece),
                Some(("ncpus", count)) => self.say("mincpus", count),
                Some(("mem", amount)) => self.say("mem", size(amount)),
                Some(_) => {}
            }
        }
    }

    /// One item of `-W`.
    fn attribute(&mut self, item: &str) -> Result<(), Problem> {
        match item.split_once('=') {
            Some(("depend", condition)) => self.say("dependency", condition),
            Some(("umask", mask)) => {
                let mask = u32::from_str_radix(mask, 8).ok().filter(|mask| *mask <= 0o777);
                self.umask = Some(mask.ok_or_else(|| Problem::error(format!("Invalid umask: {item}")))?);
            }
            _ => {}
        }
        Ok(())
    }

    fn of_bsub(&mut self, long: &str, value: Option<&str>) {
        match (long, value) {
            (_, None) => self.words.push(format!("--{long}")),
            ("hosts", Some(value)) => {
                self.say("nodelist", value.split_whitespace().collect::<Vec<_>>().join(","));
            }
            // Kilobytes; what is no number is refused as sbatch refuses it.
            ("kilobytes", Some(value)) => match value.parse::<u64>() {
                Ok(count) => self.say("mem-per-cpu", count.div_ceil(1024)),
                Err(_) => self.say("mem-per-cpu", value),
            },
            ("tasks", Some(value)) => self.say("ntasks", value.rsplit(',').next().unwrap_or(value)),
            (_, Some(value)) => self.say(long, value),
        }
    }
}

/// `100mb` is `100m` here.
fn size(value: &str) -> &str {
    let is_unit = |unit: &str| unit.len() == 2 && "kmgt".contains(&unit[..1].to_ascii_lowercase());
    let digits = value.trim_end_matches(|letter: char| !letter.is_ascii_digit()).len();
    match value[digits..].ends_with(['b', 'B']) && is_unit(&value[digits..]) {
        true => &value[..value.len() - 1],
        false => value,
    }
}

/// `abe`: when it aborts, begins, ends.
fn mail_types(letters: &str) -> String {
    let types = [('a', "FAIL"), ('b', "BEGIN"), ('e', "END"), ('n', "NONE")];
    let wanted = types.iter().filter(|(letter, _)| letters.contains(*letter)).map(|(_, word)| *word);
    wanted.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let said = match read("x.sh", &format!("#!/bin/sh\n{line}\nsleep 1\n#PBS -N late\n")) {
            Ok(foreign) => foreign.words.join(" "),
            Err(problem) => problem.show(crate::submit::Program::Sbatch),
        };
        assert_eq!(said, expected, "{line}");
    }

    #[test]
    fn resources_of_pbs_are_options_of_sbatch() {
        check("#PBS -l nodes=3+ppn=2,mem=1024mb", "--nodes=3 --ntasks=6 --mem=1024m");
        check("#PBS -l nodes=2:ppn=2", "--nodes=2 --ntasks=4");
        check("#PBS -l nodes=n1:ppn=2+n2:ppn=2", "--nodelist=n1,n2 --ntasks=4");
        check("#PBS -l select=2:ncpus=2:mem=100mb", "--nodes=2 --mincpus=2 --mem=100m");
        check("#PBS -l nodes=1,walltime=5:00", "--nodes=1 --time=5:00");
        check("#PBS -l mem=100mw,file=10mb,nice=5,pmem=1gb", "--mem=100mw --tmp=10m --nice=5");
        check("#PBS -l naccelerators=2,proc=x", "--gres=gpu:2 --constraint=x");
    }

    #[test]
    fn letters_of_pbs_are_options_of_sbatch() {
        check("#PBS -Na -q long -j oe -r n -V", "--job-name=a --partition=long");
        check("#PBS -m abe -M joe@site -h", "--mail-type=FAIL,BEGIN,END --mail-user=joe@site --hold");
        check("#PBS -W depend=afterok:1,umask=077", "--dependency=afterok:1");
        assert_eq!(read("x.sh", "#PBS -W umask=077\n").unwrap().umask, Some(0o77));
        check("#PBS -x", "sbatch: invalid option -- 'x'\nsbatch: error: Unrecognized command line parameter ?\n");
        check("#PBS stray", "sbatch: error: Invalid argument: stray\n");
        check("# PBS -N a\n#PBSX -N b\n #PBS -N c", "");
    }

    #[test]
    fn letters_of_bsub_are_options_of_sbatch() {
        check("#BSUB -o/dev/null -e/tmp/err -m\"n1 n2\"", "--output=/dev/null --error=/tmp/err --nodelist=n1,n2");
        check("#BSUB -Jx -M4097 -W1 -x -qlong", "--job-name=x --mem-per-cpu=5 --time=1 --exclusive --partition=long");
        check("#BSUB -n 1,3 -cwd /tmp", "--ntasks=3 --chdir=/tmp");
        check("#BSUB -P y", "sbatch: invalid option -- 'P'\nsbatch: error: Unrecognized command line parameter ?\n");
    }
}
