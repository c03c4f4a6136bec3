//! What `sacct` reads and prints, without a cluster.
use model::amount::Amount;
use model::config::Config;
use model::history::{JobRecord, RunHistory, StepRecord};
use model::spec::TimeLimit;
use model::{ExitStatus, JobId, StepId, Timestamp};

use crate::viewer::Asked;
use crate::zone::Clock;

use super::{layout, options, row};

const NOW: u64 = 1_794_744_000; // 2026-11-15T12:00:00Z

fn asked(line: &str) -> Result<options::Options, String> {
    let arguments: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_string).collect();
    match options::parse(&arguments, &|_| None, &Clock::utc(Timestamp::from_secs(NOW))) {
        Ok(Asked::Show(options)) => Ok(*options),
        Ok(Asked::Print(text)) => Err(text),
        Err(refusal) => Err(refusal.stderr),
    }
}

fn run() -> RunHistory {
    let at = |secs: u64| Some(Timestamp::from_secs(NOW - 100 + secs));
    let held = Amount { n_nodes: 1, n_cpus: 2, n_tasks: 2, memory_mb: 1024, ..Default::default() };
    let job = JobRecord {
        job: JobId(12),
        attempt: 1,
        name: "a_long_job_name".into(),
        user: "ada".into(),
        partition: "main".into(),
        state: "CANCELLED".into(),
        cancelled_by: Some(0),
        submitted: at(0).unwrap(),
        eligible: at(1),
        started: at(3),
        ended: at(13),
        time_limit: Some(TimeLimit::Secs(90)),
        asked: held.clone(),
        held: held.clone(),
        nodes: "n1".into(),
        is_batch: true,
        has_extern: true,
        ..Default::default()
    };
    let step = |step, name: &str, state: &str| StepRecord {
        job: JobId(12),
        step,
        name: name.into(),
        state: state.into(),
        exit: ExitStatus::signaled(15),
        started: at(3),
        ended: at(14),
        held: held.clone(),
        nodes: "n1".into(),
        ..Default::default()
    };
    let steps = vec![step(StepId::Batch, "batch", "CANCELLED"), step(StepId::Number(0), "sleep", "COMPLETED")];
    RunHistory { job, steps, ..Default::default() }
}

fn shown(line: &str) -> String {
    shown_of(&run(), line)
}

fn shown_of(run: &RunHistory, line: &str) -> String {
    let options = asked(line).unwrap();
    let clock = Clock::utc(Timestamp::from_secs(NOW));
    let config = Config::default();
    let accounts = model::accounts::Accounts::default();
    let scene = row::Scene { clock: &clock, config: &config, options: &options, accounts: &accounts };
    let mut text = String::new();
    layout::heading(&options.layout, &mut text);
    row::rows(run, &scene, |row| layout::row(&options.layout, row, &mut text));
    text
}

#[test]
fn the_time_that_passed_is_what_lies_between_the_times_that_are_shown() {
    let mut run = run();
    run.steps[1].started = Some(Timestamp(NOW * 1_000_000 + 900_000));
    run.steps[1].ended = Some(Timestamp((NOW + 32) * 1_000_000 + 100_000));
    let text = shown_of(&run, "-n -P -o JobID,Start,End,Elapsed");
    let line = text.lines().find(|line| line.starts_with("12.0|")).unwrap();
    assert_eq!(line, "12.0|2026-11-15T12:00:00|2026-11-15T12:00:32|00:00:32");
}

#[test]
fn what_was_suspended_is_no_part_of_the_time_that_passed() {
    // Started at 0, suspended from 3 to 12 and from 20 on; ended from outside at 60, so for its users at 20.
    let at = |secs: u64| Timestamp::from_secs(NOW - 100 + secs);
    let pause = |from, until| model::job::Pause { from: at(from), until: at(until) };
    let times = |job: JobRecord, options: &str| {
        let run = RunHistory { job: JobRecord { job: JobId(7), ..job }, ..Default::default() };
        let text = shown_of(&run, &format!("-X -n -P -o Elapsed,Suspended {options}"));
        text.trim().to_string()
    };
    let job = JobRecord { started: Some(at(0)), suspended_since: None, ..Default::default() };
    let seconds = model::time::Span::from_secs;
    let again =
        JobRecord { suspended_since: Some(at(20)), pauses: vec![pause(3, 12)], suspended: seconds(9), ..job.clone() };
    assert_eq!(times(again, ""), "00:00:11|00:01:29");
    let ended = JobRecord {
        ended: Some(at(20)),
        pauses: vec![pause(3, 12), pause(20, 60)],
        suspended: seconds(49),
        ..job.clone()
    };
    assert_eq!(times(ended, ""), "00:00:11|00:00:49");
    let resumed = JobRecord { pauses: vec![pause(3, 12)], suspended: seconds(9), ..job };
    assert_eq!(times(resumed, ""), "00:01:31|00:00:09");
}

#[test]
fn the_default_table_is_slurms() {
    let expected = "\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode 
------------ ---------- ---------- ---------- ---------- ---------- -------- 
12           a_long_jo+       main                     2 CANCELLED+      0:0 
12.batch          batch                                2  CANCELLED     0:15 
12.extern        extern                                2  COMPLETED      0:0 
12.0              sleep                                2  COMPLETED     0:15 
";
    assert_eq!(shown(""), expected);
}

#[test]
fn fields_have_the_width_and_side_asked_for() {
    assert_eq!(
        shown("-X -o jobid%6,state%-16,timelimit,elap,reqtres%40 -n"),
        "    12 CANCELLED by 0     00:02:00   00:00:10            billing=2,cpu=2,mem=1G,node=1 \n"
    );
    assert_eq!(shown("-X -P -o JobID,State,ReqMem --units=K"), "JobID|State|ReqMem\n12|CANCELLED by 0|1048576K\n");
    assert_eq!(shown("-X -p -o JobID,User,Reserved --delimiter=^"), "JobID^User^Reserved^\n12^ada^00:00:02^\n");
    assert_eq!(shown("-j 12.batch -n -P -o jobid"), "12.batch\n");
    assert_eq!(shown("-j 12.extern,12.0 -n -P -o jobid"), "12.extern\n12.0\n");
}

#[test]
fn the_size_of_segments_is_told_of_jobs_that_have_some() {
    let with = RunHistory { job: JobRecord { segment: 4, ..run().job }, ..run() };
    assert_eq!(shown_of(&with, "-X -n -P -o jobid,segmentsize"), "12|4\n");
    assert_eq!(shown("-X -P -o JobID,SegmentSize"), "JobID|SegmentSize\n12|\n");
}

#[test]
fn every_listed_field_can_be_asked_for() {
    let names = super::help::fields();
    let names: Vec<&str> = names.split_whitespace().collect();
    assert!(names.len() > 100);
    let options = asked(&format!("-o {}", names.join(","))).unwrap();
    assert_eq!(options.layout.columns.iter().map(|column| column.field.name).collect::<Vec<_>>(), names);
    let everything = shown("-o ALL -P -n");
    assert!(everything.lines().all(|line| line.split('|').count() == names.len()));
}

#[test]
fn the_time_looked_at_depends_on_what_else_is_asked() {
    let check = |line: &str, after: Option<u64>, before: Option<u64>| {
        let query = asked(line).unwrap().query;
        let secs = |moment: Option<Timestamp>| moment.map(Timestamp::secs);
        assert_eq!((secs(query.after), secs(query.before)), (after, before), "{line}");
    };
    let midnight = NOW - 12 * 3600;
    check("", Some(midnight), None);
    check("-j 12", None, None);
    check("-s F", Some(NOW), None);
    check("-s F -S now-60", Some(NOW - 60), Some(NOW - 60));
    check("-s F -S now-60 -E now", Some(NOW - 60), Some(NOW));
    check("-S 2026-11-14", Some(NOW - 36 * 3600), None);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let check = |line: &str, expected: &str| assert_eq!(asked(line).unwrap_err(), expected, "{line}");
    check("-o jobid,foo", "sacct: error: Invalid field requested: \"foo\"\n");
    check("-j abc", "sacct: fatal: Bad job/step specified: abc\n");
    check("-s XX", "sacct: fatal: unrecognized job state value 'XX'\n");
    check("-S bad", "Invalid time specification (pos=0): bad\n");
    check("--foo", "sacct: unrecognized option '--foo'\n");
    let needs_jobs = "When requesting job scripts you must also request specific jobs with the '-j' option.";
    check("-B", &format!("sacct: fatal: {needs_jobs}\n"));
    check("-j 1.abc", "sacct: fatal: Bad step specified: 1\n");
    check("1", "sacct: error: Unknown arguments:\nsacct: error:  1\n");
}

#[test]
fn seff_tells_what_a_job_made_use_of() {
    let mut run = run();
    let shown = |run: &RunHistory| super::seff::report(run, "spur", 2, 10);
    let told = shown(&run);
    assert!(
        told.starts_with("Job ID: 12\nCluster: spur\nUser/Group: ada/\nState: CANCELLED (exit code 0)\n"),
        "{told}"
    );
    assert!(told.contains("Nodes: 1\nCores per node: 2\nCPU Utilized: 00:00:00\n"), "{told}");
    assert!(
        told.contains("CPU Efficiency: 0.00% of 00:00:20 core-walltime\nJob Wall-clock time: 00:00:10\n"),
        "{told}"
    );
    let usage = |secs: u64, megabytes: u64, n_tasks: u32| {
        let rss_bytes = model::usage::Spread { max: megabytes << 20, ..Default::default() };
        let user_cpu = model::time::Span::from_secs(secs);
        Some(Box::new(model::usage::Usage { user_cpu, rss_bytes, n_tasks, ..Default::default() }))
    };
    run.steps[0].usage = usage(4, 256, 1);
    run.steps[1].usage = usage(1, 100, 2);
    let told = shown(&run);
    assert!(told.contains("CPU Utilized: 00:00:05\nCPU Efficiency: 25.00% of"), "{told}");
    assert!(told.ends_with("Memory Utilized: 256.00 MB\nMemory Efficiency: 25.00% of 1.00 GB\n"), "{told}");
    run.steps[1].usage = usage(1, 512, 2);
    run.job.memory = model::spec::Memory::PerCpuMb(1024);
    run.job.state = "RUNNING".into();
    let told = shown(&run);
    assert!(
        told.contains(
            "Memory Utilized: 1.00 GB (estimated maximum)\nMemory Efficiency: 50.00% of 2.00 GB (1.00 GB/core)\n"
        ),
        "{told}"
    );
    assert!(told.ends_with("WARNING: Efficiency statistics may be misleading for RUNNING jobs.\n"), "{told}");
    run.job.state = "PENDING".into();
    assert!(shown(&run).ends_with("Efficiency not available for jobs in the PENDING state.\n"));
}
