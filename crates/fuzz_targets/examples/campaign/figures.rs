//! Where a campaign keeps what it knows, and its figures.
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What became of one target.
#[derive(Default)]
pub struct Figures {
    pub seconds: f64,
    pub executions: u64,
    pub bytes: u64,
    /// Inputs that reached code no other had reached.
    pub new_inputs: u64,
    pub faults: u64,
    pub slowest_ms: u64,
    /// Places of the code that were reached in all.
    pub reached: u64,
}

impl Figures {
    pub fn add(&mut self, other: &Figures) {
        self.executions += other.executions;
        self.bytes += other.bytes;
        self.new_inputs += other.new_inputs;
        self.faults += other.faults;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        self.reached = self.reached.max(other.reached);
    }

    fn written(&self) -> String {
        let Figures { executions, bytes, new_inputs, faults, slowest_ms, reached, .. } = self;
        format!("{executions} {bytes} {new_inputs} {faults} {slowest_ms} {reached}")
    }

    fn read(text: &str) -> Option<Figures> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Figures {
            seconds: 0.0,
            executions: next()?,
            bytes: next()?,
            new_inputs: next()?,
            faults: next()?,
            slowest_ms: next()?,
            reached: next()?,
        })
    }

    pub fn told(&self) -> String {
        let Figures { seconds, executions, bytes, new_inputs, faults, slowest_ms, reached } = self;
        let rate = *executions as f64 / seconds.max(0.001);
        format!(
            "inputs={executions} seconds={seconds:.0} per_second={rate:.0} bytes={bytes} new_inputs={new_inputs} \
             reached={reached} slowest_ms={slowest_ms} faults={faults}"
        )
    }
}

/// A line behind the others.
pub fn append(log: &Path, line: &str) {
    let opened = fs::File::options().append(true).create(true).open(log);
    let written = opened.and_then(|mut file| writeln!(file, "{line}"));
    written.unwrap_or_else(|error| panic!("{}: {error}", log.display()));
}

pub struct Places {
    dir: PathBuf,
    pub log: PathBuf,
}

impl Places {
    pub fn new(dir: &Path) -> Places {
        fs::create_dir_all(dir.join("faults")).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        Places { dir: dir.into(), log: dir.join("campaign.log") }
    }

    pub fn queue(&self, target: &str) -> PathBuf {
        self.dir.join("queue").join(target)
    }

    /// Eight bytes of the number, then the input.
    pub fn now(&self) -> PathBuf {
        self.dir.join("now")
    }

    pub fn number_now(&self) -> Option<usize> {
        let bytes = fs::read(self.now()).ok()?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?) as usize)
    }

    pub fn input_now(&self) -> Vec<u8> {
        let bytes = fs::read(self.now()).unwrap_or_default();
        let Some((length, rest)) = bytes.get(8..).and_then(|rest| rest.split_first_chunk()) else { return Vec::new() };
        rest[..(u64::from_le_bytes(*length) as usize).min(rest.len())].to_vec()
    }

    fn next_file(&self, target: &str) -> PathBuf {
        self.dir.join(format!("next-{target}"))
    }

    /// The number of the next input of the target.
    pub fn next(&self, target: &str) -> usize {
        fs::read_to_string(self.next_file(target)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1)
    }

    pub fn go_on_at(&self, target: &str, number: usize) {
        drop(fs::write(self.next_file(target), number.to_string()));
    }

    pub fn leave_figures(&self, figures: &Figures) {
        drop(fs::write(self.dir.join("figures"), figures.written()));
    }

    /// The worker's own figures, if it came to write them.
    pub fn taken_figures(&self) -> Figures {
        let file = self.dir.join("figures");
        let figures = fs::read_to_string(&file).ok().and_then(|text| Figures::read(&text));
        drop(fs::remove_file(file));
        figures.unwrap_or_default()
    }

    /// Each place of the code is kept once; true if it was not known.
    pub fn keep_fault(&self, target: &str, place: &str, input: &[u8], told: &str) -> bool {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = format!("{target}--{place}").chars().map(letter).take(120).collect();
        let file = self.dir.join("faults").join(name);
        if file.exists() {
            return false;
        }
        drop((fs::write(file.with_extension("txt"), told), fs::write(&file, input)));
        append(&self.log, &format!("fault {target} {}", told.lines().next().unwrap_or_default()));
        true
    }
}
