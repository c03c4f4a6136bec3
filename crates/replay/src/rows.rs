//! What `sacct --parsable2 --allusers --format=…` prints: names in the first line, a job in each of the others.
use model::calendar::{LocalTime, UTC, Zone};
use model::duration::{self, Limit};
use model::size;

use crate::workload::{Problem, Request, Workload};

/// Columns by the names of sacct, whatever their order; those that are missing are empty.
struct Columns<'a> {
    names: Vec<&'a str>,
}

impl Columns<'_> {
    fn value<'a>(&self, cells: &[&'a str], names: &[&str]) -> &'a str {
        let position = |name: &&str| self.names.iter().position(|known| known.eq_ignore_ascii_case(name));
        let values = names.iter().filter_map(position).filter_map(|at| cells.get(at).copied());
        values.map(str::trim).find(|value| !value.is_empty()).unwrap_or("")
    }
}

pub fn parse(text: &str) -> Result<Workload, Problem> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, head) = lines.next().unwrap_or((0, ""));
    let columns = Columns { names: head.split('|').map(str::trim).collect() };
    for needed in
        [&["JobID", "JobIDRaw"][..], &["Submit"], &["ElapsedRaw", "Elapsed"], &["AllocCPUS", "NCPUS", "ReqCPUS"]]
    {
        if !columns.names.iter().any(|name| needed.iter().any(|known| known.eq_ignore_ascii_case(name))) {
            let text = format!("there is no column {}; ask sacct for {FORMAT}", needed.join(" or "));
            return Err(Problem { line: 1, text });
        }
    }
    let mut workload = Workload::default();
    for (index, line) in lines {
        let cells: Vec<&str> = line.split('|').collect();
        match request(&columns, &cells).map_err(|text| Problem { line: index + 1, text })? {
            Some(request) => workload.requests.push(request),
            None => workload.n_left_out += 1,
        }
    }
    Ok(workload)
}

const FORMAT: &str = "JobID,User,Account,Partition,Submit,Elapsed,Timelimit,AllocCPUS,NNodes";

fn request(columns: &Columns, cells: &[&str]) -> Result<Option<Request>, String> {
    let value = |names: &[&str]| columns.value(cells, names);
    let name = value(&["JobID", "JobIDRaw"]);
    // Steps, and tasks that never became a job of their own.
    if name.is_empty() || name.contains('.') || name.contains('[') {
        return Ok(None);
    }
    let Some(submitted) = moment(value(&["Submit"]))? else { return Ok(None) };
    let run_time = span(value(&["ElapsedRaw", "Elapsed"]))?.unwrap_or(0);
    let n_cpus: u32 = value(&["AllocCPUS", "NCPUS", "ReqCPUS"]).parse().unwrap_or(0);
    if run_time == 0 || n_cpus == 0 {
        return Ok(None);
    }
    let limit = match value(&["TimelimitRaw"]).parse::<u64>() {
        Ok(minutes) => Some(minutes * 60),
        Err(_) => span(value(&["Timelimit"]))?,
    };
    Ok(Some(Request {
        name: name.into(),
        submitted,
        n_cpus,
        n_nodes: value(&["NNodes", "AllocNodes"]).parse().ok().filter(|n_nodes| *n_nodes > 0),
        memory_mb_per_cpu: memory_per_cpu(value(&["ReqMem"]), n_cpus),
        run_time,
        limit: limit.unwrap_or(run_time).max(1),
        user: value(&["User"]).into(),
        account: value(&["Account"]).into(),
        partition: value(&["Partition"]).into(),
    }))
}

/// `2026-11-16T03:50:29`, or seconds since the epoch. Only differences count, so the zone does not matter.
fn moment(text: &str) -> Result<Option<u64>, String> {
    if matches!(text, "" | "Unknown" | "None" | "N/A") {
        return Ok(None);
    }
    if let Ok(secs) = text.parse() {
        return Ok(Some(secs));
    }
    let wrong = || format!("{text:?} is no time");
    let numbers = |text: &str, separator: char| -> Option<Vec<u16>> {
        text.split(separator).map(|part| part.parse().ok()).collect()
    };
    let (date, time) = text.split_once('T').ok_or_else(wrong)?;
    let (Some(date), Some(time)) = (numbers(date, '-'), numbers(time, ':')) else { return Err(wrong()) };
    match (&date[..], &time[..]) {
        (&[year @ 1970..=9999, month @ 1..=12, day @ 1..=31], &[hour @ 0..24, minute @ 0..60, second @ 0..=60]) => {
            let (month, day, hour) = (month as u8, day as u8, hour as u8);
            let (minute, second) = (minute as u8, second as u8);
            let local = LocalTime { year: i64::from(year), month, day, hour, minute, second };
            Ok(Some(UTC.to_unix(local) as u64))
        }
        _ => Err(wrong()),
    }
}

/// `1-02:03:04`, `03:04.500`, or whole seconds. None: there is none.
fn span(text: &str) -> Result<Option<u64>, String> {
    if matches!(text, "" | "Partition_Limit" | "INVALID") {
        return Ok(None);
    }
    if let Ok(secs) = text.parse() {
        return Ok(Some(secs));
    }
    let whole = text.split('.').next().unwrap_or_default();
    duration::parse(whole).map(Limit::seconds).ok_or_else(|| format!("{text:?} is no length of time"))
}

/// `4G` for the job, `512Mc` a CPU; `4Gn` (a node) is taken as for the job.
fn memory_per_cpu(text: &str, n_cpus: u32) -> Option<u64> {
    let (amount, is_per_cpu) = match text.strip_suffix('c') {
        Some(amount) => (amount, true),
        None => (text.strip_suffix('n').unwrap_or(text), false),
    };
    let mb = size::parse_megabytes(amount).filter(|mb| *mb > 0)?;
    Some(if is_per_cpu { mb } else { mb.div_ceil(u64::from(n_cpus)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_sacct_become_requests() {
        let text = "User|JobID|Submit|Elapsed|Timelimit|AllocCPUS|NNodes|Partition|ReqMem\n\
            ann|10|2024-02-29T23:59:59|1-00:00:01|2-00:00:00|8|2|long|16G\n\
            |10.batch|2024-02-29T23:59:59|1-00:00:01||8|2||\n\
            bob|11|2024-03-01T00:00:04|00:00:00|01:00:00|0|0|long|1G\n";
        let workload = parse(text).unwrap();
        let request = &workload.requests[0];
        assert_eq!((workload.requests.len(), workload.n_left_out), (1, 2));
        assert_eq!((request.run_time, request.limit, request.n_nodes), (86_401, 172_800, Some(2)));
        assert_eq!(request.memory_mb_per_cpu, Some(2048));
    }

    #[test]
    fn days_follow_each_other() {
        assert_eq!(moment("1970-01-01T00:00:00").unwrap(), Some(0));
        assert_eq!(moment("2000-03-01T00:00:00").unwrap(), Some(951_868_800));
        let before = moment("2024-02-29T23:59:59").unwrap().unwrap();
        assert_eq!(moment("2024-03-01T00:00:00").unwrap(), Some(before + 1));
        assert!(moment("2024-13-01T00:00:00").is_err());
    }

    #[test]
    fn a_missing_column_is_named() {
        let problem = parse("JobID|Submit\n1|x\n").unwrap_err();
        assert!(problem.text.starts_with("there is no column ElapsedRaw or Elapsed"), "{problem}");
    }
}
