//! Measured usage as sacct writes it. Jobs show the sum of their steps' CPU time and nothing else.
use model::time::Span;
use model::usage::{Spread, Usage};

use super::row::{Part, Row, number};
use super::units;

/// `00:01.234`, `01:02:03` from an hour on.
pub fn cpu_time(span: Span) -> String {
    let (secs, millis) = (span.secs(), span.0 / 1000 % 1000);
    let (days, hours, minutes) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes:02}:{:02}.{millis:03}", secs % 60),
        (0, _) => format!("{hours:02}:{minutes:02}:{:02}", secs % 60),
        _ => format!("{days}-{hours:02}:{minutes:02}:{:02}", secs % 60),
    }
}

/// Which CPU time: all, in user mode, or in the kernel.
pub fn cpu(row: &Row, of: fn(&Usage) -> Span) -> String {
    let total = match row.part {
        Part::Step(step) => step.usage.as_deref().map_or(Span(0), of),
        Part::Extern => Span(0),
        Part::Job => {
            let used = row.run.steps.iter().filter_map(|step| step.usage.as_deref());
            used.fold(Span(0), |sum, usage| sum + of(usage))
        }
    };
    cpu_time(total)
}

/// One measure of a step; nothing for jobs, and for steps that were not measured.
pub fn of_step<'a>(row: &Row<'a>, measure: fn(&Usage) -> &Spread) -> Option<&'a Spread> {
    let usage = row.step()?.usage.as_deref().filter(|usage| usage.is_measured())?;
    Some(measure(usage))
}

pub fn show(row: &Row, measure: fn(&Usage) -> &Spread, value: fn(&Spread) -> u64) -> String {
    of_step(row, measure).map(|spread| units::show(value(spread), 0, row.scene.options.units)).unwrap_or_default()
}

/// Bytes that passed through system calls, in megabytes with two places.
pub fn show_disk(row: &Row, measure: fn(&Usage) -> &Spread, value: fn(&Spread) -> u64) -> String {
    of_step(row, measure).map(|spread| disk(value(spread))).unwrap_or_default()
}

fn disk(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        _ => format!("{:.2}M", bytes as f64 / 1_048_576.0),
    }
}

pub fn show_secs(row: &Row, value: fn(&Spread) -> u64) -> String {
    let micros = of_step(row, |usage| &usage.cpu_micros).map(value);
    micros.map(|micros| model::duration::show(micros / 1_000_000)).unwrap_or_default()
}

pub fn node(row: &Row, measure: fn(&Usage) -> &Spread) -> String {
    of_step(row, measure).map(|spread| spread.max_node.to_string()).unwrap_or_default()
}

pub fn task(row: &Row, measure: fn(&Usage) -> &Spread) -> String {
    of_step(row, measure).map(|spread| number(spread.max_task)).unwrap_or_default()
}

/// What of a spread a TRES list shows.
#[derive(Clone, Copy)]
pub enum Of {
    Average,
    Max,
    MaxNode,
    MaxTask,
    Min,
    MinNode,
    MinTask,
    Total,
}

/// `cpu=00:00:01,fs/disk=4096,mem=1028K,pages=0,vmem=5M`
pub fn tres_in(row: &Row, of: Of) -> String {
    let Some(usage) = measured(row) else { return String::new() };
    let size = |spread: &Spread| part(spread, of, |bytes| units::show(bytes, 0, row.scene.options.units));
    let list = [
        ("cpu", part(&usage.cpu_micros, of, |micros| model::duration::show(micros / 1_000_000))),
        ("energy", part(&Spread::default(), of, |_| "0".into())),
        ("fs/disk", part(&usage.read_bytes, of, number)),
        ("mem", size(&usage.rss_bytes)),
        ("pages", part(&usage.page_faults, of, number)),
        ("vmem", size(&usage.vsize_bytes)),
    ];
    list.iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("{name}={text}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// `energy=0,fs/disk=512`
pub fn tres_out(row: &Row, of: Of) -> String {
    let Some(usage) = measured(row) else { return String::new() };
    let energy = part(&Spread::default(), of, |_| "0".into());
    let disk = part(&usage.written_bytes, of, number);
    [("energy", energy), ("fs/disk", disk)]
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("{name}={text}"))
        .collect::<Vec<_>>()
        .join(",")
}

fn measured<'a>(row: &Row<'a>) -> Option<&'a Usage> {
    row.step()?.usage.as_deref().filter(|usage| usage.is_measured())
}

fn part(spread: &Spread, of: Of, show: impl Fn(u64) -> String) -> String {
    match of {
        Of::Average => show(spread.average()),
        Of::Max => show(spread.max),
        Of::MaxNode => spread.max_node.to_string(),
        Of::MaxTask => number(spread.max_task),
        Of::Min => show(spread.min),
        Of::MinNode => spread.min_node.to_string(),
        Of::MinTask => number(spread.min_task),
        Of::Total => show(spread.total),
    }
}
