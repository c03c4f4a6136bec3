//! Golden text: the oracle's, wherever its values can be had here.
use super::*;
use crate::fixture;

fn shown(line: &str) -> (String, i32) {
    shown_with(line, &[])
}

/// Everything on stdout, then everything on stderr, and the exit code.
fn shown_with(line: &str, environment: &[(&str, &str)]) -> (String, i32) {
    let arguments: Vec<String> = line.split_whitespace().map(|word| word.replace('~', " ")).collect();
    let environment =
        |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
    let options = match parse(&arguments, &environment) {
        Ok(Asked::Show(options)) => options,
        Ok(Asked::Print(text)) => return (text, 0),
        Err(refusal) => return (refusal.stdout + &refusal.stderr, 1),
    };
    let wanted = request(&options);
    let queue = fixture::queue();
    let is_known = |id: &model::JobRef| queue.iter().any(|job| is_meant(&id.job.into(), job));
    let unknown = wanted.jobs.iter().filter(|id| !is_known(id)).map(|id| id.job).collect();
    let mut page = JobsPage { jobs: queue, now: fixture::clock().now(), unknown, ..JobsPage::default() };
    page.jobs.retain(|job| wanted.with_finished || !job.is_over());
    let clock = Clock::new(jiff::tz::TimeZone::UTC, options.time_format.as_deref(), page.now);
    let shown = render(&options, &page, &fixture::config(), &clock);
    let lines = options.complaints.iter().map(|line| format!("squeue: {line}\n"));
    let lines = lines.chain(shown.complaints.iter().map(|line| format!("{line}\n")));
    (shown.text + &lines.collect::<String>(), i32::from(shown.failed))
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(shown(line).0, expected, "{line}");
}

#[test]
fn the_default_table_is_slurms() {
    check(
        "",
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
       499_[3-6%2]     debug   runarr     root PD       0:00      1 (JobArrayTaskLimit)
               502     debug   bigger     root PD       0:00      8 (Resources)
               504     debug      dep     root PD       0:00      1 (Dependency)
               507     debug    begin     root PD       0:00      1 (BeginTime)
               506     debug     held     root PD       0:00      1 (JobHeldUser)
               496     debug  running     root  R       0:05      1 n1
               497     debug twonodes     root  R       0:05      2 n[1-2]
             499_1     debug   runarr     root  R       0:05      1 n2
             499_2     debug   runarr     root  R       0:05      1 n2
               500     debug  nobodys   nobody  R       0:05      1 n2
               524     debug     susp     root  S       0:03      1 n2
508_[10,12,14,16,1      down downpart     root PD       0:00      1 (PartitionDown)
               510   limited longname     root PD       0:00      1 (PartitionNodeLimit)
               509     short  toolong     root PD       0:00      1 (PartitionTimeLimit)
",
    );
}

#[test]
fn the_long_table_has_a_date_and_limits() {
    check(
        "-l -j 496,499,510",
        "Sun Nov 15 22:01:12 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
       499_[3-6%2]     debug   runarr     root  PENDING       0:00 UNLIMITED      1 (JobArrayTaskLimit)
               496     debug  running     root  RUNNING       0:05   1:00:00      1 n1
             499_1     debug   runarr     root  RUNNING       0:05 UNLIMITED      1 n2
             499_2     debug   runarr     root  RUNNING       0:05 UNLIMITED      1 n2
               510   limited longname     root  PENDING       0:00 2-00:00:00      1 (PartitionNodeLimit)
",
    );
}

#[test]
fn filters_choose() {
    check("-h -u nobody", "               500     debug  nobodys   nobody  R       0:05      1 n2\n");
    check("-h -t F -o %i", "516\n");
    check("-h -t CA,F -o %i|%t|%R|", "516|F|(NonZeroExitCode)|\n518|CA||\n");
    check("-h -j 499_5 -o %i", "499_5\n");
    check("-h -j 508_[10,12] -o %i", "508_10\n508_12\n");
    check("-h -j 499 -r -o %i", "499_3\n499_4\n499_5\n499_6\n499_1\n499_2\n");
    check("-h -j 521 -o %i|%A|%F|%K", "499_1|521|499|1\n");
    check("-h -j 516 -o %i", "");
    check("-h -w n[1,3] -o %i", "496\n497\n");
    check("-h -n running -o %i", "496\n");
    check("-h -n RUNNING -o %i", "496\n");
    check("-h -A acct -o %i", "497\n");
    check("-h -A Acct -o %i", "497\n");
    check("-h -A acct --only-job-state -o %i|%t", "497|R\n");
    check("-h -p short,limited -o %i", "510\n509\n");
    check("-h -t suspended -o %i", "524\n");
    check("-h -L x", "");
    check("-h -t S,pd -p debug -o %i -S i", "499_[3-6%2]\n502\n504\n506\n507\n524\n");
    check("-h -o %i --start -p debug", "507\n499_[3-6%2]\n502\n504\n506\n");
    check("-h -j~496 -o %i", "496\n");
}

#[test]
fn what_is_unknown_or_wrong_is_told_as_slurm_tells_it() {
    assert_eq!(shown("-j 999999"), ("slurm_load_jobs error: Invalid job id specified\n".into(), 1));
    assert_eq!(shown("-h -j 496,999999 -o %i"), ("496\n".into(), 0));
    assert_eq!(shown("-h -j 999999,999998"), (String::new(), 0));
    assert_eq!(shown("-j x"), ("squeue: error: Invalid job id: x\n".into(), 1));
    assert_eq!(shown("-h -u nosuchuser"), ("squeue: error: Invalid user: nosuchuser\n\n".into(), 0));
    assert_eq!(shown("-w nosuch"), ("squeue: error: Invalid node name nosuch\n".into(), 1));
    assert_eq!(shown("-i x"), ("squeue: error: --iterate=x\n\n".into(), 1));
    assert_eq!(shown("-s 497"), ("squeue: error: Invalid job_step id: 497.??\n".into(), 1));
    assert_eq!(
        shown("--nosuch"),
        ("squeue: unrecognized option '--nosuch'\nTry \"squeue --help\" for more information\n".into(), 1)
    );
    assert_eq!(shown("-t nosuch").0.lines().next(), Some("squeue: error: Invalid job state specified: nosuch"));
    // Nobody is ever in it here.
    assert_eq!(shown("-h -t launch_failed,EXPEDITING"), (String::new(), 0));
    assert_eq!(shown("-h -S n!"), ("squeue: error: Invalid sort specification: !\n".into(), 1));
    assert_eq!(shown("-h -S i,s"), ("squeue: error: Invalid sort specification: s\n".into(), 1), "it has no order");
    let (usage, code) = shown("-j 496 497");
    assert!(code == 1 && usage.starts_with("Usage: squeue [-A account]"));
    assert!(usage.ends_with("squeue: error: Unrecognized option: 497\n"));
}

#[test]
fn letters_have_their_values() {
    let values = |letter: &str| shown(&format!("-h -t all -j 496,497,499,504,516 -o %i|%{letter}|")).0;
    for (letter, expected) in [
        ("a", "516|(null)|499_[3-6%2]|(null)|504|(null)|496|(null)|497|acct|499_1|(null)|499_2|(null)|"),
        ("B", "516|n/a|499_[3-6%2]|n/a|504|n/a|496|n1|497|n1|499_1|n2|499_2|n2|"),
        ("c", "516|1|499_[3-6%2]|1|504|1|496|1|497|2|499_1|1|499_2|1|"),
        ("C", "516|1|499_[3-6%2]|1|504|1|496|1|497|11|499_1|1|499_2|1|"),
        (
            "e",
            "516|2026-11-15T22:01:07|499_[3-6%2]|N/A|504|N/A|496|2026-11-15T23:01:07|497|NONE|499_1|NONE|499_2|NONE|",
        ),
        ("K", "516|N/A|499_[3-6%2]|3-6%2|504|N/A|496|N/A|497|N/A|499_1|1|499_2|2|"),
        (
            "L",
            "516|UNLIMITED|499_[3-6%2]|UNLIMITED|504|UNLIMITED|496|59:55|497|UNLIMITED|499_1|UNLIMITED|499_2|UNLIMITED|",
        ),
        (
            "r",
            "516|NonZeroExitCode|499_[3-6%2]|JobArrayTaskLimit|504|Dependency|496|None|497|None|499_1|None|499_2|None|",
        ),
        ("N", "516||499_[3-6%2]||504||496|n1|497|n[1-2]|499_1|n2|499_2|n2|"),
    ] {
        assert_eq!(values(letter).replace('\n', ""), expected, "{letter}");
    }
    check("-h -j 504 -o %E", "afterok:496(unfulfilled),afterany:497(unfulfilled)\n");
    check("-h -j 496 -o %p|%Q", "0.99998464062810|4294901327\n");
    check("-h -j 507 -o %S|%e|%V|%L|%M", "2026-11-15T23:01:07|NONE|2026-11-15T22:01:07|UNLIMITED|0:00\n");
    let all = shown("-j 496 -o %all").0;
    assert_eq!(
        all.lines().nth(1).unwrap(),
        "(null)|N/A|1|0|2026-11-15T23:01:07|(null)|root|OK|496|running|a comment|1:00:00|100M||\
         /work/oracle/w/job.sh one two|0.99998464062810|(null)|None||R|root|(null)|(null)||0|*:*:*|496|n1|1|1|(null)|496|\
         0|*|*|*|N/A|59:55|0:05|n1|0|debug|4294901327|n1|2026-11-15T22:01:07|RUNNING|0|2026-11-15T22:01:07|(null)|N/A|\
         (null)|/work/oracle/w"
    );
}

#[test]
fn formats_pad_cut_and_keep_literals() {
    for (format, expected) in [
        ("%10i|%5j|%.5j|", "JOBID     |NAME | NAME|\n496       |runni|runni|\n"),
        ("%.3j|%3j|", "NAM|NAM|\nrun|run|\n"),
        ("abc", "abc\nabc\n"),
        ("%", "\n\n"),
        ("%%i|%%T", "JOBID|STATE\n496|RUNNING\n"),
        ("%i%%", "JOBID\n496\n"),
        ("%.i", "JOBID\n496\n"),
        ("%.0i", "JOBID\n496\n"),
        ("\"%i\",\"%j\"", "\"JOBID\",\"NAME\"\n\"496\",\"running\"\n"),
        ("%i<><>~%T", "JOBID<><> STATE\n496<><> RUNNING\n"),
        ("%ij", "JOBIDj\n496j\n"),
        ("%.1N|%1N|%.1R|%.1M|%.1l|", "NODELIST|N|NODELIST(REASON)|T|T|\nn1|n|n1|0:05|1:00:00|\n"),
        ("%2a|%.2a|%7a|", "AC|AC|ACCOUNT|\n  |(n|(null) |\n"),
        ("%5%", "%5\n%5\nsqueue: error: Invalid job format specification: \n"),
        ("%!", "%!\n%!\nsqueue: error: Invalid job format specification: !\n"),
        ("%-5i", "%-5i\n%-5i\nsqueue: error: Invalid job format specification: -\n"),
    ] {
        check(&format!("-j 496 -o {format}"), expected);
    }
    check("-h -j496 -o~%T", " RUNNING\n");
}

#[test]
fn long_formats_take_names_widths_and_suffixes() {
    for (format, expected) in [
        ("jobid", "JOBID               \n496                 \n"),
        ("jobid:10,name:5", "JOBID     NAME \n496       runni\n"),
        ("jobid:.10,name:.30", "     JOBID                          NAME\n       496                       running\n"),
        ("name:###x###", "NAME###x###\nrunning###x###\n"),
        ("jobid:,,name:;", "JOBIDNAME;\n496running;\n"),
        ("jobid:5name", "JOBIDname\n496  name\n"),
        ("StateCompact:.3,Reason:12x", " STREASON      x\n  RNone        x\n"),
        (
            "jobid,nosuch",
            "JOBID               \n496                 \nsqueue: error: Invalid job format specification: nosuch\n",
        ),
        (
            "STDOUT:|,STDERR:|,Command:|",
            "STDOUT|STDERR|COMMAND|\n/work/oracle/w/out.%j|/work/oracle/w/err.%j|/work/oracle/w/job.sh one two|\n",
        ),
        ("tres-alloc:|", "TRES_ALLOC|\ncpu=1,mem=100M,node=1,billing=1|\n"),
    ] {
        check(&format!("-j 496 -O {format}"), expected);
    }
}

#[test]
fn the_environment_speaks_unless_the_options_do() {
    let with = |line: &str, name: &str, value: &str| shown_with(line, &[(name, value)]).0;
    assert_eq!(with("-j 496", "SQUEUE_FORMAT", "%i %j"), "JOBID NAME\n496 running\n");
    assert_eq!(with("-j 496 -o %T", "SQUEUE_FORMAT", "%i"), "STATE\nRUNNING\n");
    assert_eq!(with("-j 496", "SQUEUE_FORMAT2", "jobid:10,name:5"), "JOBID     NAME \n496       runni\n");
    assert_eq!(with("-h -o %i -j 516", "SQUEUE_STATES", "all"), "516\n");
    assert_eq!(with("-h -o %i", "SQUEUE_USERS", "nobody"), "500\n");
    assert_eq!(with("-h -o %i -p debug -t PD", "SQUEUE_SORT", "-i"), "507\n506\n504\n502\n499_[3-6%2]\n");
    assert_eq!(with("-h -j 496 -o %S", "SLURM_TIME_FORMAT", "relative"), "22:01:07\n");
    assert_eq!(
        with("-h -j 496 -o %S", "SLURM_TIME_FORMAT", "bad"),
        "2026-11-15T22:01:07\nsqueue: error: invalid SLURM_TIME_FORMAT = 'bad'\n"
    );
    assert!(shown("-o %i -O jobid").0.contains("-O (--Format) is incompatible with -o (--format)"));
    assert!(shown("-l -o %i").0.contains("Options -o(--format) and -l(--long) are mutually exclusive"));
}

#[test]
fn steps_include_the_batch_scripts() {
    check(
        "-s -p debug",
        "         STEPID     NAME PARTITION     USER      TIME NODELIST
      496.batch    batch     debug     root      0:05 n1
      497.batch    batch     debug     root      0:05 n1
      500.batch    batch     debug   nobody      0:05 n2
    499_1.batch    batch     debug     root      0:05 n2
    499_2.batch    batch     debug     root      0:05 n2
      524.batch    batch     debug     root      0:03 n2
",
    );
}

#[test]
fn json_has_every_field_that_clients_read() {
    let read: serde_json::Value = serde_json::from_str(&shown("--json=v0.0.38 -j 496").0).expect("it is JSON");
    assert_eq!(read["meta"]["Slurm"]["release"], "22.05.8");
    let [job] = &read["jobs"].as_array().expect("a list")[..] else { panic!("one job") };
    assert_eq!(job["job_id"], 496);
    assert_eq!(job["job_state"], "RUNNING");
    assert_eq!(job["nodes"], "n1");
    assert_eq!(job["time_limit"], 60);
    assert_eq!(job["user_name"], "root");
    assert_eq!(job["array_task_id"], serde_json::Value::Null);
    assert_eq!(job["job_resources"]["allocated_nodes"][0]["nodename"], "n1");
}

#[test]
fn without_a_name_documents_are_shaped_as_current_clients_expect() {
    let read: serde_json::Value = serde_json::from_str(&shown("--json -j 496").0).expect("it is JSON");
    assert_eq!(read["meta"]["plugin"]["data_parser"], "data_parser/v0.0.43");
    assert_eq!(read["jobs"][0]["job_state"][0], "RUNNING");
    assert_eq!(read["jobs"][0]["time_limit"]["number"], 60);
    let mut config = fixture::config();
    config.controller.data_parser = model::data_parser::DataParser::parse("v0.0.38").expect("a name");
    let Ok(Asked::Show(options)) = parse(&["--json".into()], &|_| None) else { panic!("it shows") };
    let text = render(&options, &JobsPage::default(), &config, &fixture::clock()).text;
    assert!(text.contains("openapi/v0.0.38"), "the cluster has chosen otherwise");
}

#[test]
fn fifty_thousand_jobs_are_rendered_at_once() {
    let mut jobs = Vec::with_capacity(50_000);
    for id in 1..=50_000 {
        jobs.push(fixture::pending(id, "many", "debug", model::Reason::Priority));
    }
    let page = JobsPage { jobs, now: fixture::clock().now(), ..JobsPage::default() };
    let Ok(Asked::Show(options)) = parse(&[], &|_| None) else { panic!("it shows") };
    let text = render(&options, &page, &fixture::config(), &fixture::clock()).text;
    assert_eq!(text.lines().count(), 50_001);
}

/// Recorded on a Slurm 22.05.8 (`tests/golden/columns.txt`).
#[test]
fn every_column_of_slurm_is_here_under_its_heading() {
    let rows =
        include_str!("../../../../tests/golden/columns.txt").lines().filter_map(|line| line.strip_prefix("squeue\t"));
    let mut wrong = Vec::new();
    let mut n_rows = 0;
    for (key, heading) in rows.filter_map(|row| row.split_once('\t')).filter(|(_, heading)| *heading != "-") {
        n_rows += 1;
        let column = match key.strip_prefix('%').and_then(|letter| letter.chars().next()) {
            Some(letter) => COLUMNS.iter().find(|column| column.letter == letter),
            None => COLUMNS.iter().find(|column| column.name.eq_ignore_ascii_case(key)),
        };
        match column {
            Some(column) if heading == "?" || column.title == heading => {}
            Some(column) => wrong.push(format!("{key}: {} instead of {heading}", column.title)),
            None => wrong.push(format!("{key}: missing")),
        }
    }
    assert!(n_rows > 40 && wrong.is_empty(), "{n_rows} rows, wrong:\n{}", wrong.join("\n"));
}

#[test]
fn the_rows_of_each_partition_go_by_its_tier() {
    let listed = |tiers: (u32, u32), line: &str| {
        let mut config = fixture::config();
        for partition in &mut config.partitions {
            match partition.name.as_str() {
                "debug" => partition.priority_tier = tiers.0,
                "short" => partition.priority_tier = tiers.1,
                _ => (),
            }
        }
        let mut waiting = fixture::pending(7, "both", "debug", model::Reason::Priority);
        std::sync::Arc::make_mut(&mut waiting.spec).partitions = vec!["debug".into(), "short".into()];
        let mut running = fixture::running(8, "runs", &[("n1", 1)]);
        std::sync::Arc::make_mut(&mut running.spec).partitions = vec!["debug".into(), "short".into()];
        let page = JobsPage { jobs: vec![waiting, running], now: fixture::clock().now(), ..JobsPage::default() };
        let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let Ok(Asked::Show(options)) = parse(&arguments, &|_| None) else { panic!("{line}") };
        render(&options, &page, &config, &fixture::clock()).text.replace('\n', " ")
    };
    assert_eq!(listed((1, 2), "-P -h -S p,i -t PD -o %i:%P"), "7:debug 7:short ");
    assert_eq!(listed((2, 1), "-P -h -S p,i -t PD -o %i:%P"), "7:short 7:debug ");
    assert_eq!(listed((2, 1), "-P -h -t R -o %i:%P"), "8:debug ", "one that runs has one partition");
    assert_eq!(listed((2, 1), "-h -t PD -o %i:%P"), "7:debug,short ");
}

/// As a 22.05 had them (`tests/golden/orders.txt` has more): whoever started last first, those of the same second and the tasks of
/// an array as they came; then those that have no start, the latest first.
#[test]
fn rows_that_no_key_tells_apart_come_as_slurm_has_them() {
    let at = |id: u32, secs: u64| {
        let mut job = fixture::running(id, "same", &[("n1", 1)]);
        job.started = Some(model::Timestamp::from_secs(fixture::clock().now().secs() - secs));
        job
    };
    let held = |id: u32| fixture::pending(id, "same", "debug", model::Reason::JobHeldUser);
    let jobs = vec![at(1, 5), at(2, 9), held(3), at(4, 5), held(5)];
    let page = JobsPage { jobs, now: fixture::clock().now(), ..JobsPage::default() };
    for (sort, expected) in [
        ("j", "1 4 2 5 3"),
        ("-j", "1 4 2 5 3"),
        ("S", "2 1 4 3 5"),
        ("-S", "1 4 2 3 5"),
        ("N", "1 4 2 3 5"),
        ("-N", "5 3 1 4 2"),
        ("c", "1 4 2 5 3"),
        ("t", "5 3 1 4 2"),
    ] {
        let arguments = ["-h", "-o", "%i", "-S", sort].map(str::to_string);
        let Ok(Asked::Show(options)) = parse(&arguments, &|_| None) else { panic!("{sort}") };
        let shown = render(&options, &page, &fixture::config(), &fixture::clock()).text;
        assert_eq!(shown.split_whitespace().collect::<Vec<_>>().join(" "), expected, "-S {sort}");
    }
}
