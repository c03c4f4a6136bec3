//! The Standard Workload Format of the Parallel Workloads Archive: eighteen numbers a line, comments with `;`.
use crate::workload::{Problem, Request, Workload};

/// The fields we read, by their position in a line.
mod field {
    pub const NUMBER: usize = 0;
    pub const SUBMITTED: usize = 1;
    pub const RUN_TIME: usize = 3;
    pub const CPUS_HELD: usize = 4;
    pub const CPUS_ASKED: usize = 7;
    pub const TIME_ASKED: usize = 8;
    /// Kilobytes a processor.
    pub const MEMORY_ASKED: usize = 9;
    pub const USER: usize = 11;
    pub const GROUP: usize = 12;
    pub const PARTITION: usize = 15;
    pub const N_FIELDS: usize = 18;
}

/// What is not known is -1.
const UNKNOWN: f64 = -1.0;

pub fn parse(text: &str) -> Result<Workload, Problem> {
    let mut workload = Workload::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix(';') {
            header(comment, &mut workload);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match request(line).map_err(|text| Problem { line: index + 1, text })? {
            Some(request) => workload.requests.push(request),
            None => workload.n_left_out += 1,
        }
    }
    Ok(workload)
}

/// `; MaxProcs: 128`
fn header(comment: &str, workload: &mut Workload) {
    let Some((key, value)) = comment.split_once(':') else { return };
    let number = || value.split_whitespace().next()?.parse().ok();
    match key.trim() {
        "MaxProcs" => workload.n_cpus = number(),
        "MaxNodes" => workload.n_nodes = number(),
        _ => (),
    }
}

fn request(line: &str) -> Result<Option<Request>, String> {
    let fields: Result<Vec<f64>, String> = line
        .split_whitespace()
        .map(|word| word.parse::<f64>().map_err(|_| format!("{word:?} is not a number")))
        .collect();
    let fields = fields?;
    if fields.len() != field::N_FIELDS {
        return Err(format!("{} fields, not the {} of the Standard Workload Format", fields.len(), field::N_FIELDS));
    }
    if let Some(wrong) = fields.iter().find(|number| !number.is_finite() || **number < UNKNOWN) {
        return Err(format!("{wrong} is neither a measure nor -1"));
    }
    let known = |field: usize| (fields[field] > 0.0).then_some(fields[field]);
    let Some(n_cpus) = known(field::CPUS_ASKED).or(known(field::CPUS_HELD)) else { return Ok(None) };
    let Some(run_time) = known(field::RUN_TIME) else { return Ok(None) };
    let run_time = run_time.ceil() as u64;
    Ok(Some(Request {
        name: format!("{}", fields[field::NUMBER]),
        submitted: fields[field::SUBMITTED].max(0.0) as u64,
        n_cpus: n_cpus as u32,
        n_nodes: None,
        memory_mb_per_cpu: known(field::MEMORY_ASKED).map(|kb| (kb / 1024.0).ceil() as u64),
        run_time,
        limit: known(field::TIME_ASKED).map_or(run_time, |secs| secs as u64).max(1),
        user: format!("{}", fields[field::USER]),
        account: format!("{}", fields[field::GROUP]),
        partition: known(field::PARTITION).map_or(String::new(), |number| format!("{number}")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_requests() {
        let text = "; Version: 2.2\n; MaxProcs: 128\n\n 7 100 3 50.4 4 -1 -1 8 60 2048 1 5 2 -1 1 3 -1 -1\n8 101 -1 -1 -1 -1 -1 4 60 -1 5 5 2 -1 1 -1 -1 -1\n";
        let workload = parse(text).unwrap();
        assert_eq!((workload.n_cpus, workload.n_left_out), (Some(128), 1));
        let request = &workload.requests[0];
        assert_eq!((request.name.as_str(), request.n_cpus, request.run_time, request.limit), ("7", 8, 51, 60));
        assert_eq!((request.memory_mb_per_cpu, request.partition.as_str()), (Some(2), "3"));
    }

    #[test]
    fn what_is_no_workload_is_refused_with_its_line() {
        let problem = parse("1 2 3\n").unwrap_err();
        assert_eq!(problem.to_string(), "line 1: 3 fields, not the 18 of the Standard Workload Format");
        let problem = parse("; x\n1 0 0 nan 4 0 0 4 1 0 1 1 1 1 1 1 1 1\n").unwrap_err();
        assert_eq!(problem.to_string(), "line 2: NaN is neither a measure nor -1");
    }
}
