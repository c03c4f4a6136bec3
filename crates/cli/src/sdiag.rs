//! `sdiag`: what the controller has done, and how long it took.
use std::fmt::Write;

use model::Timestamp;
use model::diagnosis::{Calls, Diagnosis, MailCounts, Placements};

use crate::context;
use crate::getopt::{Flag, Operands, Value, flag, parse};
use crate::json;
use crate::output::print;
use crate::trouble::{Trouble, connect};
use crate::version;
use crate::zone::Clock;

pub const FLAGS: &[Flag] = &[
    flag("all", Some('a'), Value::None),
    flag("cluster", Some('M'), Value::Required),
    flag("clusters", None, Value::Required),
    flag("help", Some('h'), Value::None),
    flag("json", None, Value::Optional),
    flag("no-trunc", None, Value::None),
    flag("reset", Some('r'), Value::None),
    flag("sort-by-id", Some('i'), Value::None),
    flag("sort-by-time", Some('t'), Value::None),
    flag("sort-by-time2", Some('T'), Value::None),
    flag("usage", None, Value::None),
    flag("version", Some('V'), Value::None),
    flag("yaml", None, Value::Optional),
];

pub const HELP: &str = "\
Usage: sdiag [OPTIONS]
  -a, --all             all statistics (the default)
  -r, --reset           set the counters back (administrators)
  -i, --sort-by-id      calls sorted by their names
  -M, --clusters=NAME   the cluster to ask; only the configured one is known
  -t, --sort-by-time    calls sorted by the time they took
  -T, --sort-by-time2   calls sorted by the time each took
      --no-trunc        no difference: no line is cut
      --json[=PARSER]   JSON
      --yaml[=PARSER]   YAML

Help options:
  -h, --help            this text
      --usage           a short text
  -V, --version         the version
";

/// How calls are sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Count,
    Name,
    Time,
    MeanTime,
}

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("sdiag: {problem}\nTry \"sdiag --help\" for more information");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") { HELP } else { "Usage: sdiag [-ariTt]\n" });
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    if let Some(name) = parsed.value("cluster").or(parsed.value("clusters"))
        && !context::cluster().is_ok_and(|own| own.cluster_name == name)
    {
        eprintln!("sdiag: error: '{name}' can't be reached now, or it is an invalid entry for --cluster.");
        return 1;
    }
    let shape = match json::begin("sdiag", &parsed) {
        Ok(shape) => shape,
        Err(code) => return code,
    };
    let order = match () {
        () if parsed.has("sort-by-time2") => Order::MeanTime,
        () if parsed.has("sort-by-time") => Order::Time,
        () if parsed.has("sort-by-id") => Order::Name,
        () => Order::Count,
    };
    let outcome = context::ask(async {
        let (_, mut controller) = connect().await?;
        if parsed.has("reset") {
            controller.reset_statistics().await?;
            return Ok("Reset scheduling statistics\n".to_string());
        }
        let diagnosis = controller.diagnose().await?;
        if parsed.has("json") || parsed.has("yaml") {
            let config = controller.configuration().await?.config;
            let text = json::statistics(json::settled(shape, &config), &config.cluster_name, &diagnosis);
            return Ok(if parsed.has("yaml") { json::yaml(&text) } else { text });
        }
        let clock = Clock::local(None, diagnosis.now);
        Ok::<String, Trouble>(render(diagnosis, &clock, order))
    });
    match outcome {
        Ok(text) => {
            print(&text);
            0
        }
        Err(Trouble::NoCluster(text)) => {
            eprintln!("sdiag: error: {text}");
            1
        }
        Err(Trouble::Call(text)) => {
            let call = if parsed.has("reset") { "slurm_reset_statistics" } else { "slurm_get_statistics" };
            eprintln!("{call}: {text}");
            1
        }
    }
}

fn render(mut diagnosis: Diagnosis, clock: &Clock, order: Order) -> String {
    let mut out = String::new();
    let moment = |at: Timestamp| format!("{} ({})", clock.at(at).banner(), at.secs());
    let stars = "*".repeat(55);
    let jobs = &diagnosis.jobs;
    let cycles = &diagnosis.cycles;
    let mean = |total: u64, count: u64| total.checked_div(count).unwrap_or(0);
    let minutes = ((diagnosis.now - diagnosis.since).secs() / 60).max(1);
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes any text");
    line(stars.clone());
    line(format!("sdiag output at {}", moment(diagnosis.now)));
    line(format!("Data since      {}", moment(diagnosis.since)));
    line(stars);
    line("Server thread count:  1".into());
    line("Agent queue size:     0".into());
    line(format!("Agent count:          {}", diagnosis.n_agents));
    line("Agent thread count:   0".into());
    line("DBD Agent queue size: 0\n".into());
    line(format!("Jobs submitted: {}", jobs.submitted));
    line(format!("Jobs started:   {}", jobs.started));
    line(format!("Jobs completed: {}", jobs.completed));
    line(format!("Jobs canceled:  {}", jobs.canceled));
    line(format!("Jobs failed:    {}\n", jobs.failed));
    line(format!("Job states ts:  {}", moment(diagnosis.now)));
    line(format!("Jobs pending:   {}", diagnosis.n_pending));
    line(format!("Jobs running:   {}", diagnosis.n_running));
    // Slurm has no such line; there is one when there are such jobs.
    if diagnosis.n_suspended > 0 {
        line(format!("Jobs suspended: {}", diagnosis.n_suspended));
    }
    line(String::new());
    line("Main schedule statistics (microseconds):".into());
    line(format!("\tLast cycle:   {}", cycles.last_micros));
    line(format!("\tMax cycle:    {}", cycles.max_micros));
    line(format!("\tTotal cycles: {}", cycles.n_cycles));
    if cycles.n_cycles > 0 {
        line(format!("\tMean cycle:   {}", mean(cycles.total_micros, cycles.n_cycles)));
        line(format!("\tMean depth cycle:  {}", mean(cycles.total_queue_length, cycles.n_cycles)));
    }
    line(format!("\tCycles per minute: {}", cycles.n_cycles / minutes));
    line(format!("\tLast queue length: {}\n", cycles.last_queue_length));
    line("Backfilling stats".into());
    line(format!("\tTotal backfilled jobs (since last slurm start): {}", cycles.n_backfilled_ever));
    line(format!("\tTotal backfilled jobs (since last stats cycle start): {}", cycles.n_backfilled));
    line("\tTotal backfilled heterogeneous job components: 0".into());
    line(format!("\tTotal cycles: {}", cycles.n_cycles));
    line(format!("\tLast cycle when: {}", cycles.last_at.map_or("N/A".into(), moment)));
    line(format!("\tLast cycle: {}", cycles.last_micros));
    line(format!("\tMax cycle:  {}", cycles.max_micros));
    // Every job in the queue is looked at, so depth and length are one.
    let mean_length = mean(cycles.total_queue_length, cycles.n_cycles);
    if cycles.n_cycles > 0 {
        line(format!("\tMean cycle: {}", mean(cycles.total_micros, cycles.n_cycles)));
    }
    line(format!("\tLast depth cycle: {}", cycles.last_queue_length));
    line(format!("\tLast depth cycle (try sched): {}", cycles.last_queue_length));
    if cycles.n_cycles > 0 {
        line(format!("\tDepth Mean: {mean_length}"));
        line(format!("\tDepth Mean (try depth): {mean_length}"));
    }
    line(format!("\tLast queue length: {}", cycles.last_queue_length));
    if cycles.n_cycles > 0 {
        line(format!("\tQueue length mean: {mean_length}"));
    }
    line(String::new());
    placements(&diagnosis.placements).into_iter().for_each(&mut line);
    mails(&diagnosis.mails).into_iter().for_each(&mut line);
    // As the one about mails: Slurm has no such line.
    if diagnosis.n_limited > 0 {
        line(format!("Calls put off by the limit of calls: {}\n", diagnosis.n_limited));
    }
    line(calls(&mut diagnosis, order));
    line("Pending RPC statistics\n\tNo pending RPCs".into());
    out
}

/// How well jobs are placed on the network. Slurm tells nothing of it; there is a paragraph where there is a network.
fn placements(placements: &Placements) -> Vec<String> {
    let unit = match placements.plugin.as_str() {
        "" => return Vec::new(),
        "topology/block" => "Base blocks",
        _ => "Leaf switches",
    };
    let ratio = placements.n_units as f64 / placements.n_units_fewest.max(1) as f64;
    let mut lines = vec![
        format!("Placement statistics ({})", placements.plugin),
        format!("\tTotal placements: {}", placements.n_placed),
    ];
    if placements.n_placed > 0 {
        lines.push(format!("\t{unit} used: {}", placements.n_units));
        lines.push(format!("\t{unit} needed at least: {}", placements.n_units_fewest));
        lines.push(format!("\tMean ratio: {ratio:.3}"));
    }
    lines.push(format!("\tFragmentation: {}\n", placements.fragmentation));
    lines
}

/// Slurm tells nothing of mails; there is a paragraph once there was one.
fn mails(mails: &MailCounts) -> Vec<String> {
    if *mails == MailCounts::default() {
        return Vec::new();
    }
    vec![
        "Mail statistics".into(),
        format!("\tMails sent:    {}", mails.n_sent),
        format!("\tMails failed:  {}", mails.n_failed),
        format!("\tMails dropped: {}", mails.n_dropped),
        format!("\tMails waiting: {}\n", mails.n_waiting),
    ]
}

fn calls(diagnosis: &mut Diagnosis, order: Order) -> String {
    sort(&mut diagnosis.by_call, order);
    sort(&mut diagnosis.by_user, order);
    let mut out = "Remote Procedure Call statistics by message type\n".to_string();
    for calls in &diagnosis.by_call {
        out.push_str(&format!("\t{:<40}( {:>4}) {}\n", calls.name, calls.id, counts(calls)));
    }
    out.push_str("\nRemote Procedure Call statistics by user\n");
    for calls in &diagnosis.by_user {
        out.push_str(&format!("\t{:<16}({:>8}) {}\n", calls.name, calls.id, counts(calls)));
    }
    out
}

/// The same calls as `sacctmgr list stats` shows them: whoever keeps the accounts answers everything else too.
pub fn accounting(mut diagnosis: Diagnosis, clock: &Clock) -> String {
    let moment = |at: Timestamp| format!("{} ({})", clock.at(at).banner(), at.secs());
    let stars = "*".repeat(67);
    let (now, since) = (moment(diagnosis.now), moment(diagnosis.since));
    let calls = calls(&mut diagnosis, Order::Count);
    format!(
        "{stars}\nsacctmgr show stats output at {now}\nData since                    {since}\nAll statistics are in microseconds\n{stars}\n\n{calls}"
    )
}

fn counts(calls: &Calls) -> String {
    let mean = calls.total_micros.checked_div(calls.count).unwrap_or(0);
    format!("count:{:<6} ave_time:{mean:<6} total_time:{}", calls.count, calls.total_micros)
}

fn sort(calls: &mut [Calls], order: Order) {
    calls.sort_by_key(|one| {
        let largest = match order {
            Order::Count => one.count,
            Order::Name => 0,
            Order::Time => one.total_micros,
            Order::MeanTime => one.total_micros.checked_div(one.count).unwrap_or(0),
        };
        (std::cmp::Reverse(largest), one.name.clone())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_sorted_as_asked() {
        let one =
            |name: &str, count, total_micros| Calls { name: name.into(), count, total_micros, ..Default::default() };
        let all = [one("a", 1, 90), one("b", 9, 50), one("c", 5, 100)];
        for (order, wanted) in
            [(Order::Count, "bca"), (Order::Name, "abc"), (Order::Time, "cab"), (Order::MeanTime, "acb")]
        {
            let mut calls = all.to_vec();
            sort(&mut calls, order);
            assert_eq!(calls.iter().map(|one| one.name.as_str()).collect::<String>(), wanted);
        }
    }

    #[test]
    fn a_controller_that_has_done_nothing_divides_by_nothing() {
        let text = render(Diagnosis::default(), &Clock::utc(Timestamp(0)), Order::Count);
        assert!(text.contains("Total cycles: 0\n") && text.contains("Jobs submitted: 0\n"), "{text}");
    }
}
