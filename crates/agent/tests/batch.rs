//! Batch scripts under a real agent: output files, environment, identity, exit statuses.
mod support;

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use model::ExitStatus;
use model::agent::{ArrayFacts, Launch};
use model::command::DutyResult;
use model::hooks::Hook;
use model::spec::{OpenMode, ResourceLimit};
use support::{World, eventually};

fn spec(launch: &mut Launch) -> &mut model::JobSpec {
    Arc::make_mut(&mut launch.job_spec)
}

#[tokio::test]
async fn a_script_runs_and_its_end_is_reported() {
    let mut world = World::new().await;
    let script = world.script(7, "echo $GREETING $SLURM_JOB_ID $SPUR_JOB_ID; exit 3");
    assert_eq!(world.launch(script).await, DutyResult::Done);
    let exited = world.exit(7).await;
    assert_eq!(exited.exit, ExitStatus::exited(3));
    assert_eq!(exited.node.as_str(), "n1");
    assert_eq!(exited.launch_error, None);
    assert_eq!(world.read("slurm-7.out"), "hello 7 7\n");
    eventually("the spool to be empty", || world.spool_is_empty()).await;
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() {
    let mut world = World::new().await;
    world.launch(world.script(1, "kill -USR1 $$")).await;
    assert_eq!(world.exit(1).await.exit, ExitStatus::signaled(libc::SIGUSR1 as u8));
}

#[tokio::test]
async fn a_launch_that_comes_twice_runs_once() {
    let mut world = World::new().await;
    let launch = world.script(2, "echo once >> count");
    assert_eq!(world.launch(launch.clone()).await, DutyResult::Done);
    assert_eq!(world.launch(launch.clone()).await, DutyResult::Done);
    world.exit(2).await;
    assert_eq!(world.launch(launch).await, DutyResult::Done);
    world.launch(world.script(3, "true")).await;
    world.exit(3).await;
    assert_eq!(world.read("count"), "once\n");
}

#[tokio::test]
async fn output_goes_where_the_patterns_say() {
    let mut world = World::new().await;
    let mut launch = world.script(12, "echo out; echo err >&2; cat");
    launch.array = Some(ArrayFacts { array: model::JobId(10), task: 4, min: 4, max: 5, stride: 1, count: 2 });
    std::fs::write(world.dir.join("work/in"), "from the file\n").unwrap();
    spec(&mut launch).stdin = Some("in".into());
    spec(&mut launch).stderr = Some("%x-%A-%3a.err".into());
    world.launch(launch).await;
    assert_eq!(world.exit(12).await.exit, ExitStatus::SUCCESS);
    assert_eq!(world.read("slurm-10_4.out"), "out\nfrom the file\n");
    assert_eq!(world.read("job-10-004.err"), "err\n");
}

#[tokio::test]
async fn output_is_truncated_or_appended_to() {
    let mut world = World::new().await;
    for (job, mode, is_rerun, expected) in [
        (1, OpenMode::Default, false, "1\n"),
        (2, OpenMode::Append, false, "1\n2\n"),
        (3, OpenMode::Default, true, "1\n2\n3\n"),
        (4, OpenMode::Truncate, true, "4\n"),
    ] {
        let mut launch = world.script(job, "echo $SLURM_JOB_ID");
        launch.is_rerun = is_rerun;
        spec(&mut launch).stdout = Some("same".into());
        spec(&mut launch).open_mode = mode;
        world.launch(launch).await;
        world.exit(job).await;
        assert_eq!(world.read("same"), expected);
    }
}

#[tokio::test]
async fn both_streams_may_share_a_file() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "echo a; echo b >&2; echo c");
    spec(&mut launch).stdout = Some("both".into());
    spec(&mut launch).stderr = Some("both".into());
    world.launch(launch).await;
    world.exit(1).await;
    assert_eq!(world.read("both"), "a\nb\nc\n");
}

#[tokio::test]
async fn an_output_file_that_cannot_be_opened_is_a_launch_error() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "true");
    spec(&mut launch).stdout = Some("/no/such/dir/out".into());
    world.launch(launch).await;
    let exited = world.exit(1).await;
    assert_eq!(exited.exit, ExitStatus::signaled(53));
    let why = exited.launch_error.expect("a reason");
    assert!(why.contains("/no/such/dir/out") && why.contains("No such file or directory"), "{why}");
}

#[tokio::test]
async fn a_node_that_cannot_write_scripts_says_that_it_is_at_fault() {
    let mut world = World::new().await;
    std::fs::write(world.dir.join("spool/slot-0"), "no directory").unwrap();
    world.launch(world.script(1, "echo ran > ran")).await;
    let exited = world.exit(1).await;
    assert!(exited.launch_error.is_some_and(|why| why.starts_with("cannot write the script")));
    assert_eq!(exited.drained_for, "batch job complete failure");
    assert!(!world.dir.join("work/ran").exists());
}

#[tokio::test]
async fn a_missing_work_dir_falls_back_to_tmp() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "pwd");
    let out = world.dir.join("work/out").display().to_string();
    spec(&mut launch).work_dir = "/no/such/dir".into();
    spec(&mut launch).stdout = Some(out);
    world.launch(launch).await;
    assert_eq!(world.exit(1).await.exit, ExitStatus::SUCCESS);
    let note =
        "slurmstepd: error: couldn't chdir to `/no/such/dir': No such file or directory: going to /tmp instead\n";
    assert_eq!(world.read("out"), format!("{note}{note}/tmp\n"));
}

#[tokio::test]
async fn a_bad_interpreter_is_named() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "");
    launch.script = b"#!/no/such/interp -x\n".to_vec();
    world.launch(launch).await;
    assert_eq!(world.exit(1).await.exit, ExitStatus::exited(2));
    let note = "slurmstepd: error: execve(): bad interpreter(/no/such/interp): No such file or directory\n";
    assert_eq!(world.read("slurm-1.out"), note);
}

#[tokio::test]
async fn the_script_gets_arguments_limits_and_umask() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "echo \"$2\" $#; ulimit -n; umask; basename $0; touch made");
    spec(&mut launch).arguments = vec!["a b".into(), "c d".into()];
    spec(&mut launch).limits = vec![ResourceLimit { resource: libc::RLIMIT_NOFILE, soft: 123, hard: 456 }];
    spec(&mut launch).umask = Some(0o027);
    world.launch(launch).await;
    world.exit(1).await;
    assert_eq!(world.read("slurm-1.out"), "c d 2\n123\n0027\nslurm_script\n");
    assert_eq!(std::fs::metadata(world.dir.join("work/made")).unwrap().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn the_environment_is_the_submitters_with_slurms_variables() {
    let mut world = World::new().await;
    let mut launch = world.script(5, "env");
    launch.environment = b"PATH=/usr/bin:/bin\0SLURM_ARRAY_TASK_ID=9\0SLURM_SUBMIT_DIR=/sub\0MULTI=a\nb=c\0".to_vec();
    launch.restarts = 2;
    spec(&mut launch).size.n_tasks = Some(4);
    world.launch(launch).await;
    world.exit(5).await;
    let output = world.read("slurm-5.out");
    for line in [
        "SLURM_JOB_ID=5",
        "SLURM_JOBID=5",
        "SPUR_JOB_ID=5",
        "SLURM_JOB_NAME=job",
        "SLURM_JOB_NODELIST=n1",
        "SLURM_NNODES=1",
        "SLURM_NTASKS=4",
        "SLURM_NPROCS=4",
        "SPUR_NTASKS=4",
        "SLURM_PROCID=0",
        "SLURM_JOB_PARTITION=debug",
        "SLURM_CLUSTER_NAME=test",
        "SLURM_SUBMIT_DIR=/sub",
        "SPUR_SUBMIT_DIR=/sub",
        "SLURMD_NODENAME=n1",
        "SLURM_RESTART_COUNT=2",
        "ENVIRONMENT=BATCH",
        "MULTI=a",
        "b=c",
    ] {
        assert!(output.lines().any(|each| each == line), "{line} is missing in\n{output}");
    }
    assert!(!output.contains("SLURM_ARRAY_TASK_ID"), "{output}");
    assert!(!output.contains("SLURM_CPUS_PER_TASK"), "{output}");
}

#[tokio::test]
async fn the_script_has_a_session_of_its_own_and_no_foreign_descriptors() {
    let mut world = World::new().await;
    world.launch(world.script(1, "cut -d' ' -f1,5,6 /proc/$$/stat; ls /proc/$$/fd; echo $SLURM_TASK_PID")).await;
    world.exit(1).await;
    let output = world.read("slurm-1.out");
    let lines: Vec<&str> = output.lines().collect();
    let ids: Vec<&str> = lines[0].split(' ').collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{output}");
    assert_eq!(lines.last(), Some(&ids[0]));
    // 0, 1, 2, and the script that the shell reads.
    assert!(lines[1..lines.len() - 1].len() <= 4, "{output}");
}

#[tokio::test]
async fn another_user_runs_as_itself_or_not_at_all() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "id -u; id -g; id -G");
    // SAFETY: cannot fail.
    let own_uid = unsafe { libc::geteuid() };
    spec(&mut launch).uid = if own_uid == 65534 { 65533 } else { 65534 };
    spec(&mut launch).gid = 65534;
    spec(&mut launch).user = "nobody".into();
    let work = world.dir.join("work");
    std::fs::set_permissions(&work, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(world.launch(launch).await, DutyResult::Done);
    let exited = world.exit(1).await;
    if own_uid == 0 {
        assert_eq!(exited.exit, ExitStatus::SUCCESS);
        assert_eq!(world.read("slurm-1.out"), "65534\n65534\n65534\n");
        assert_eq!(std::fs::metadata(work.join("slurm-1.out")).unwrap().uid(), 65534);
    } else {
        assert!(exited.launch_error.is_some_and(|why| why.contains("cannot run jobs of uid")));
    }
}

#[tokio::test]
async fn a_hundred_launches_at_once_all_end() {
    let mut world = World::new().await;
    for job in 1..=100 {
        let number = world.number();
        let launch = Box::new(world.script(job, "exit $((SLURM_JOB_ID % 7))"));
        world.order(model::agent::Order::Launch { number, launch });
    }
    for job in 1..=100u32 {
        assert_eq!(world.exit(job).await.exit, ExitStatus::exited((job % 7) as u8));
    }
}

#[tokio::test]
async fn what_a_script_used_is_reported() {
    let mut world = World::new().await;
    let script = "head -c 8000000 /dev/zero | cat >copy; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    world.launch(world.script(1, script)).await;
    let usage = world.exit(1).await.usage.expect("it was measured");
    assert_eq!(usage.n_tasks, 1);
    assert!(usage.total_cpu().0 > 5_000, "{usage:?}");
    assert_eq!(usage.cpu_micros.total, usage.total_cpu().0);
    assert!((8_000_000..40_000_000).contains(&usage.written_bytes.total), "{usage:?}");
    assert!(usage.read_bytes.total >= 8_000_000, "{usage:?}");
}

#[tokio::test]
async fn the_most_memory_is_known_however_short_it_was_used() {
    let mut world = World::new().await;
    // A shell that holds 60 MB for a moment.
    world.launch(world.script(1, "x=$(head -c 60000000 /dev/zero | tr '\\0' x); exit 0")).await;
    let usage = world.exit(1).await.usage.expect("it was measured");
    assert!(usage.rss_bytes.max > 55_000_000, "{usage:?}");
}

#[tokio::test]
async fn words_that_no_program_can_be_told_are_the_jobs_fault() {
    let mut world = World::new().await;
    for (job, entry) in [(1, format!("SLURM_JOB_COMMENT={}", "x".repeat(1 << 20))), (2, "SLURM_JOB_NAME=a\0b".into())] {
        let mut launch = world.script(job, "echo ran > ran");
        let programs = vec!["/bin/true".to_owned()];
        launch.prolog = Some(Box::new(Hook { programs, environment: vec![entry], ..Hook::default() }));
        let answer = world.launch(launch).await;
        assert!(matches!(&answer, DutyResult::Failed { why, .. } if why.contains("too long")), "{answer:?}");
    }
    let mut launch = world.script(3, "echo ran > ran");
    spec(&mut launch).stdout = Some("a\0b".into());
    world.launch(launch).await;
    let exited = world.exit(3).await;
    assert!(exited.launch_error.is_some() && exited.drained_for.is_empty(), "{exited:?}");
    assert!(!world.dir.join("work/ran").exists());
}
