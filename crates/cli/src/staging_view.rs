//! Data on its way to or from a job's burst buffer, all nodes together.
use model::staging::{Direction, Home, NodeProgress};
use model::{BufferPhase, Job, duration, hostlist, size};

/// What all agents of one job have moved, and have to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    pub phase: &'static str,
    pub n_files: u64,
    pub n_files_total: u64,
    pub n_bytes: u64,
    pub n_bytes_total: u64,
    pub bytes_per_second: u64,
    pub is_stalled: bool,
}

impl Total {
    /// None while nothing of the job's data moves, or nobody has told of it.
    pub fn of(job: &Job, progress: &[NodeProgress]) -> Option<Total> {
        let (phase, direction) = match job.buffer? {
            BufferPhase::StagingIn => ("stage-in", Direction::In),
            BufferPhase::PreRun | BufferPhase::Revoked => ("pre-run", Direction::In),
            BufferPhase::StagingOut => ("stage-out", Direction::Out),
            _ => return None,
        };
        let is_its = |one: &&NodeProgress| {
            let is_home = matches!(&one.progress.home, Some(Home::Job { job: of, .. }) if *of == job.id);
            is_home && one.progress.direction == direction
        };
        let mut total = Total { phase, ..Default::default() };
        let mut n_known = 0;
        for one in progress.iter().filter(is_its) {
            n_known += 1;
            total.n_files += one.progress.n_files;
            total.n_files_total += one.progress.n_files_total;
            total.n_bytes += one.progress.n_bytes;
            total.n_bytes_total += one.progress.n_bytes_total;
            total.bytes_per_second += one.progress.bytes_per_second;
            total.is_stalled |= one.is_stalled;
        }
        (n_known > 0).then_some(total)
    }

    /// `stage-in 3/12 files 1.5GiB/4GiB (37%) 210MiB/s eta=0:00:12`
    pub fn show(&self) -> String {
        let bytes = size::show_rounded_bytes;
        // Of files where there are no bytes.
        let by_files = (self.n_files * 100).checked_div(self.n_files_total).unwrap_or(0);
        let percent = (self.n_bytes * 100).checked_div(self.n_bytes_total).unwrap_or(by_files).min(100);
        let stalled = if self.is_stalled { " stalled" } else { "" };
        format!(
            "{} {}/{} files {}/{} ({percent}%) {} eta={}{stalled}",
            self.phase,
            self.n_files,
            self.n_files_total,
            bytes(self.n_bytes),
            bytes(self.n_bytes_total),
            self.rate(),
            self.time_left(),
        )
    }

    pub fn rate(&self) -> String {
        format!("{}/s", size::show_rounded_bytes(self.bytes_per_second))
    }

    pub fn time_left(&self) -> String {
        let (files, bytes) = ((self.n_files, self.n_files_total), (self.n_bytes, self.n_bytes_total));
        match seconds_left(files, bytes, self.bytes_per_second) {
            Some(secs) => {
                let text = duration::show(secs);
                text.strip_prefix('0').map_or(text.clone(), str::to_owned)
            }
            None => "unknown".into(),
        }
    }
}

/// By the bytes of the last seconds, if those say anything: while crowds of small files are made, hardly a byte moves, and the large
/// ones that come after them do not take the days that such a pace would need. Both pairs: so many of so many.
pub fn seconds_left(files: (u64, u64), bytes: (u64, u64), bytes_per_second: u64) -> Option<u64> {
    const CRAWLING: u64 = 64 << 10;
    let is_ahead = u128::from(files.0) * u128::from(bytes.1) > u128::from(bytes.0) * u128::from(files.1);
    if bytes_per_second < CRAWLING && is_ahead {
        return None;
    }
    bytes.1.saturating_sub(bytes.0).checked_div(bytes_per_second)
}

/// What keeps data on its way out from arriving, as far as agents tell: their trouble, or that nothing is heard of them.
pub fn obstacle(job: &Job, progress: &[NodeProgress]) -> Option<String> {
    let is_its = |one: &&NodeProgress| {
        let is_home = matches!(&one.progress.home, Some(Home::Job { job: of, .. }) if *of == job.id);
        is_home && one.progress.direction == Direction::Out
    };
    let silent: Vec<&str> =
        progress.iter().filter(is_its).filter(|one| one.is_stalled).map(|one| one.node.as_str()).collect();
    if !silent.is_empty() {
        return Some(format!("waiting for {}", hostlist::compress(silent)));
    }
    let waits = |one: &&NodeProgress| one.progress.error.ends_with(WAITS_FOR_SPACE);
    progress.iter().filter(is_its).find(waits).map(|one| one.progress.error.clone())
}

/// Of what stands in the way only this lasts; other troubles are tried again within a minute.
const WAITS_FOR_SPACE: &str = "waiting for space";

#[cfg(test)]
mod tests {
    use model::JobId;
    use model::staging::{Access, Progress};

    use super::*;

    #[test]
    fn crowds_of_small_files_say_nothing_about_the_time_that_bytes_take() {
        let total = |n_files, n_bytes, bytes_per_second| Total {
            n_files,
            n_files_total: 100_000,
            n_bytes,
            n_bytes_total: 200 << 20,
            bytes_per_second,
            ..Default::default()
        };
        assert_eq!(total(42_000, 7_000, 874).time_left(), "unknown");
        assert_eq!(total(99_999, 100 << 20, 10 << 20).time_left(), "0:00:10");
        assert_eq!(total(10_000, 100 << 20, 1 << 10).time_left(), "1-04:26:40", "held to a pace, not to files");
    }

    #[test]
    fn nodes_add_up() {
        let job = Job { id: JobId(7), buffer: Some(BufferPhase::StagingIn), ..Default::default() };
        let one = |node: &str, n_bytes: u64| NodeProgress {
            node: node.into(),
            progress: Progress {
                home: Some(Home::Job { job: JobId(7), epoch: 1, access: Access::Private }),
                n_files: 1,
                n_files_total: 4,
                n_bytes,
                n_bytes_total: 2 << 30,
                bytes_per_second: 256 << 20,
                ..Default::default()
            },
            is_stalled: false,
        };
        let total = Total::of(&job, &[one("n1", 1 << 30), one("n2", 512 << 20)]).unwrap();
        assert_eq!(total.show(), "stage-in 2/8 files 1.5GiB/4GiB (37%) 512MiB/s eta=0:00:05");
        assert_eq!(Total::of(&Job { buffer: Some(BufferPhase::InUse), ..job.clone() }, &[one("n1", 1)]), None);
        let out = |node: &str, error: &str, is_stalled| {
            let mut one = one(node, 1);
            one.is_stalled = is_stalled;
            one.progress = Progress { direction: Direction::Out, error: error.into(), ..one.progress };
            one
        };
        assert_eq!(obstacle(&job, &[one("n1", 1), out("n2", "once more", false)]), None);
        let full = "cannot write /full/x: No space left on device; waiting for space";
        assert_eq!(obstacle(&job, &[out("n1", full, false)]).as_deref(), Some(full));
        let silent = [out("n1", full, false), out("n2", "", true), out("n3", "", true)];
        assert_eq!(obstacle(&job, &silent).as_deref(), Some("waiting for n[2-3]"));
    }
}
