//! Strings and expressions that users send: too long, malformed, costly, or made for terminals.
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use model::command::Blob;
use model::step::StepStream;
use model::update::JobChanges;
use model::{Command, JobId, JobKind, JobRef, JobSpec, StepSpec, codec};
use serde::Serialize;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::content::{ask, command, own_uid, refusal, submission};
use crate::cluster::{Cluster, is_root, new_dir};

const TOO_LONG: &str = "Pathname of a file, directory or other parameter too long";

fn script() -> Blob {
    Blob::of(b"#!/bin/sh\ntrue\n".to_vec())
}

fn held_job() -> JobSpec {
    JobSpec {
        name: "texts".into(),
        kind: JobKind::Batch { script: script().id },
        work_dir: "/".into(),
        stdout: Some("/dev/null".into()),
        held: true,
        ..JobSpec::default()
    }
}

/// What the controller answers to a job that was changed like this.
fn submit(head: &Cluster, change: impl FnOnce(&mut JobSpec)) -> Result<Vec<u8>, tonic::Status> {
    let mut spec = held_job();
    change(&mut spec);
    ask(head, own_uid(), "Submit", submission(&spec, &[script()]))
}

fn has_hostile(text: &str) -> bool {
    text.chars().any(|letter| letter != '\n' && letter != '\t' && model::plain_text::is_hostile(letter))
}

#[test]
fn texts_beyond_their_bounds_are_refused_at_the_door() {
    let head = Cluster::up("--nodes 1");
    let nul = |text: &str| format!("Invalid value for {text}: a NUL byte");
    assert_eq!(refusal(submit(&head, |spec| spec.name = "a\0b".into())), nul("name"));
    assert_eq!(refusal(submit(&head, |spec| spec.work_dir = "/tmp\0".into())), nul("work_dir"));
    assert_eq!(refusal(submit(&head, |spec| spec.arguments = vec!["\0".into()])), nul("arguments"));
    assert_eq!(refusal(submit(&head, |spec| spec.stdout = Some("a\0".into()))), nul("stdout"));
    assert_eq!(refusal(submit(&head, |spec| spec.comment = "x".repeat(2 << 20))), TOO_LONG);
    assert_eq!(refusal(submit(&head, |spec| spec.name = "x".repeat(1025))), TOO_LONG);
    // Short names in long lists take more memory than bytes, and are refused before they are decoded.
    let is_too_much = |said: String| said == TOO_LONG || said.contains("far more memory than it has bytes");
    assert!(is_too_much(refusal(submit(&head, |spec| spec.partitions = vec!["main".into(); 100_000]))));
    assert!(is_too_much(refusal(submit(&head, |spec| spec.size.nodes = vec!["n1".into(); 100_000]))));
    // Steps, changes of jobs, and environments have the same door.
    let job: u32 = head.sbatch("-H -o /dev/null --wrap true").parse().unwrap();
    let step = StepSpec { stdout: StepStream::File("a\0b".into()), ..StepSpec::default() };
    let create = Command::CreateStep { job: JobId(job), spec: Box::new(step), blobs: Vec::new() };
    assert_eq!(refusal(ask(&head, own_uid(), "CreateStep", command(&create))), nul("stdout"));
    let changes = JobChanges { comment: Some("x".repeat(70_000)), ..JobChanges::default() };
    let update = Command::UpdateJob { job: JobId(job).into(), changes: Box::new(changes) };
    assert_eq!(refusal(ask(&head, own_uid(), "UpdateJob", command(&update))), TOO_LONG);
    let environment = Blob::of(format!("A={}\0", "x".repeat(200_000)).into_bytes());
    let spec = JobSpec { environment: environment.id, ..held_job() };
    assert_eq!(refusal(ask(&head, own_uid(), "Submit", submission(&spec, &[script(), environment]))), TOO_LONG);
    // Nothing of it came in; what is long and still fits does, and runs.
    head.wait_for("squeue -h -o %i", &job.to_string());
    let long = head.sbatch(&format!("-o /dev/null --comment {} -J {} --wrap true", "c".repeat(1024), "n".repeat(1024)));
    head.wait_state(&long, "COMPLETED");
    let said = head.run(&format!("sbatch -o /dev/null --comment {} --wrap true", "c".repeat(1025)));
    assert!(said.code != 0 && said.err.contains(TOO_LONG) && said.err.contains("comment: 1025 bytes"), "{said:?}");
}

#[test]
fn script_that_is_run_or_leased_drains_no_node() {
    let head = Cluster::up("--nodes 1");
    let node = head.ok("sinfo -h -N -o %N");
    // The first job's script is a program, which somebody goes on running from the spool.
    let sleep = Blob::of(std::fs::read("/bin/sleep").unwrap());
    let spec = JobSpec {
        kind: JobKind::Batch { script: sleep.id },
        arguments: vec!["0".into()],
        held: false,
        uid: own_uid(),
        ..held_job()
    };
    ask(&head, own_uid(), "Submit", submission(&spec, &[sleep])).unwrap();
    head.wait_for("squeue -h -t all -o %T", "COMPLETED");
    let spooled = head.dir.join(format!("spool/{node}/slot-0/slurm_script"));
    let mut running = std::process::Command::new(&spooled).arg("600").spawn().unwrap();
    let began = Instant::now();
    let job = head.sbatch("-o /dev/null --wrap true");
    head.wait_state(&job, "COMPLETED");
    running.kill().unwrap();
    running.wait().unwrap();
    // The next script's file is leased by its owner.
    let leased = std::fs::File::open(&spooled).unwrap();
    // SAFETY: plain calls on a file of our own; without this the kernel's note that the lease is wanted would end the test.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        assert_eq!(libc::fcntl(leased.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK), 0);
    }
    let job = head.sbatch("-o /dev/null --wrap true");
    head.wait_state(&job, "COMPLETED");
    drop(leased);
    // The kernel takes a lease away after 45 seconds.
    assert!(began.elapsed() < Duration::from_secs(40));
    assert_eq!(head.ok("sinfo -h -N -o %T"), "idle");
}

/// As `Command::Cancel`, with runs of tasks that no honest client writes.
#[derive(Serialize)]
enum RawCommand {
    Cancel { jobs: Vec<RawRef>, hurry: bool },
}

#[derive(Serialize)]
struct RawRef {
    job: JobId,
    tasks: Vec<(u32, u32, u32)>,
}

#[test]
fn crossing_strides_keep_nobody_waiting() {
    let head = Cluster::up("--nodes 1");
    let tasks: Vec<(u32, u32, u32)> = (2..60).map(|step| (step, 4_000_000, step)).collect();
    let cancel = RawCommand::Cancel { jobs: vec![RawRef { job: JobId(1), tasks }], hurry: false };
    let body = super::contract::written(&[(1, super::contract::FieldContent::Bytes(codec::encode(&cancel)))]);
    let began = Instant::now();
    let said = refusal(ask(&head, own_uid(), "Cancel", body.clone()));
    assert!(said.contains("too costly"), "{said}");
    // Clients that hang up leave nothing behind that would have to be worked off.
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid: own_uid(), gid: own_uid() };
    on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        for _ in 0..8 {
            let call = caller.call("/spur.v1.Controller/Cancel", body.clone(), false);
            let _ = tokio::time::timeout(Duration::from_millis(5), call).await;
        }
    });
    head.ok("scontrol ping");
    head.ok("squeue");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // The same for what is written on the command line, and for tasks that would each be looked up.
    let strides: Vec<String> = (2..60).map(|step| format!("{step}-4000000:{step}")).collect();
    let said = head.run(&format!("sbatch -H --array={} --wrap true", strides.join(",")));
    assert!(said.code != 0 && said.err.contains("Invalid job array specification"), "{said:?}");
    let job: u32 = head.sbatch("-H -o /dev/null --array=0-3999999:2 --wrap true").parse().unwrap();
    let every =
        JobRef { job: JobId(job), tasks: Some(model::ranges::parse_array("0-3999999:2").unwrap().0), component: None };
    let hold = Command::Hold { jobs: vec![every; 2], by_user: true };
    assert_eq!(refusal(ask(&head, own_uid(), "Hold", command(&hold))), TOO_LONG);
    // What is honest is done, however many tasks there are.
    let began = Instant::now();
    head.ok(&format!("scontrol hold {job}_[0-4000]"));
    head.ok(&format!("scancel {job}"));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn names_forge_neither_rows_nor_terminals() {
    let head = Cluster::up("--nodes 1");
    let name = "x\u{1b}[2J\n99999 main forged root R\t0:00\u{9b}31m\u{202e}";
    let change = |spec: &mut JobSpec| {
        spec.name = name.into();
        spec.comment = "c\r\n\u{1b}]0;title\u{7}\u{2028}".into();
        spec.work_dir = "/\u{1b}[31m\nlog".into();
        spec.stdout = Some("/tmp/\u{1b}[1m".into());
        spec.arguments = vec!["\u{1b}[5m".into()];
        spec.submit_line = "sbatch \u{1b}[6m\nsecond".into();
    };
    submit(&head, change).unwrap();
    let job = head.ok("squeue -h -o %i");
    let commands = [
        format!("squeue -h -j {job}"),
        format!("squeue -h -j {job} -o '%j|%k|%Z|%o|%i'"),
        format!("squeue -h -j {job} -O name:200,comment:200,workdir:200,stdout:200"),
        format!("scontrol show job {job}"),
        format!("scontrol -o show job {job}"),
        format!("sacct -nP -j {job} -o jobid,jobname,comment,workdir,submitline"),
        format!("sacct -n -j {job} -o jobid,jobname%80"),
        "sprio -h".into(),
        format!("spur why {job}"),
        "spur audit --all".into(),
        "sinfo".into(),
        "sdiag".into(),
        format!("squeue --json -j {job}"),
        format!("sacct --json -j {job}"),
        // What a user types is quoted as plainly.
        "squeue -u $'\\e[2J'".into(),
        "scontrol show job $'\\e[2J'".into(),
        "scontrol update jobid=$'1\\e[2J' comment=x".into(),
        "sbatch --nonsense$'\\e[2J'".into(),
        "scancel $'\\e[2J'".into(),
        "sacctmgr show user $'\\e[2J'".into(),
    ];
    for line in &commands {
        let said = head.run(line);
        assert!(!has_hostile(&said.out) && !has_hostile(&said.err), "{line}: {said:?}");
    }
    for line in &commands[..2] {
        assert_eq!(head.ok(line).lines().count(), 1, "{line}");
    }
    assert_eq!(head.ok(&commands[5]).lines().count(), 1);
    assert!(
        head.ok(&commands[1]).starts_with("x\\u001b[2J\\n99999 main forged root R\\t0:00\\u009b31m\\u202e|c\\r\\n")
    );
    // Programs read the name itself.
    let json: serde_json::Value = serde_json::from_str(&head.ok(&commands[12])).unwrap();
    assert_eq!(json["jobs"][0]["name"], name);
    // So is what the daemons log.
    head.run("scontrol update jobid=4711 comment=$'\\e[2J'");
    head.ok(&format!("scancel {job}"));
    for file in std::fs::read_dir(head.dir.join("log")).unwrap().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(!has_hostile(&text) && !text.lines().any(|line| line.starts_with("99999")), "{text}");
    }
}

/// In a shell's quotes: a line end, a tab, an escape, and a mark that turns the direction of writing.
const HOSTILE: &str = "$'x\\e[2J\\n99999\\tmain\\u202eforged'";
/// The same, as it is shown.
const SHOWN: &str = "x\\u001b[2J\\n99999\\tmain\\u202eforged";

#[test]
fn names_of_others_forge_nothing_in_any_command() {
    let head = Cluster::up("--nodes 1");
    let line = format!("-J {HOSTILE} --comment {HOSTILE} -o /dev/null --wrap 'srun sleep 600'");
    let job = head.sbatch(&line);
    head.wait_until("squeue -h -s", |said| said.out.contains(".0"));
    let commands = [
        "squeue -h -s".to_owned(),
        format!("squeue -h -s -j {job} -o '%i|%j|%P|%u'"),
        format!("squeue -h -s -j {job} -O stepid:20,stepname:80"),
        format!("scontrol show step {job}.0"),
        format!("scontrol -o show step {job}"),
        format!("sstat -n -P -a -j {job}"),
        format!("sstat -n -P -j {job}.0 --format=jobid,nodelist,maxrss"),
        format!("seff {job}"),
        format!("strigger --set -j {job} --fini -p /bin/true{HOSTILE}"),
        "strigger --get".into(),
        format!("strigger --get -j {job}"),
        "sreport -n -P cluster utilization".into(),
        "sreport -n -P job sizesbyaccount".into(),
        "sreport -n -P user top".into(),
        format!("sreport cluster nonsense{HOSTILE}"),
        format!("spur stage {job}"),
        "spur topo".into(),
        "spur topo place -N 1".into(),
        format!("spur why {job}"),
        "spur audit --all".into(),
        "spur status".into(),
        format!("scontrol show job {job} -d"),
        format!("scontrol listpids {job}"),
        format!("sprio -h -j {job}"),
        format!("sattach {job}{HOSTILE}"),
        format!("sbcast -j {job} /etc/hosts /tmp/{HOSTILE}/x"),
        format!("sgather -j {job} /tmp/{HOSTILE}/x /tmp/y"),
        format!("srun --jobid={job} -J {HOSTILE} --nonsense={HOSTILE}"),
        format!("salloc -p {HOSTILE} true"),
        format!("sbatch -p {HOSTILE} --wrap true"),
        format!("sbatch -A {HOSTILE} --wrap true"),
        format!("sbatch -w {HOSTILE} --wrap true"),
        format!("sbatch -C {HOSTILE} --wrap true"),
        format!("sbatch --bb {HOSTILE} --wrap true"),
        format!("sbatch --reservation {HOSTILE} --wrap true"),
        format!("scontrol update jobid={job} partition={HOSTILE}"),
        format!("scontrol update nodename={HOSTILE} state=drain reason={HOSTILE}"),
        format!("scontrol hold jobname={HOSTILE}x"),
        format!("scancel -v -n {HOSTILE}x"),
        format!("sacctmgr -i add account {HOSTILE}"),
        format!("sacctmgr -i modify user {HOSTILE} set qos=x"),
    ];
    for line in &commands {
        let said = head.run(line);
        let is_forged = |text: &str| text.lines().any(|line| line.starts_with("99999"));
        assert!(!has_hostile(&said.out) && !has_hostile(&said.err), "{line}: {said:?}");
        // A user's own words may have lines.
        let is_own = line.contains(HOSTILE);
        assert!(is_own || !is_forged(&said.out) && !is_forged(&said.err), "{line}: {said:?}");
    }
    // Whoever is asked whether to cancel sees one line, which is what it seems to be.
    let asked = head.run(&format!("echo n | scancel -i {job}"));
    assert_eq!(asked.out, format!("Cancel job_id={job} name={SHOWN} partition=main [y/n]? "), "{asked:?}");
    // The name is found by itself, and by nothing else.
    let other = head.sbatch("-H -J other -o /dev/null --wrap true");
    head.ok(&format!("scancel -n {HOSTILE}"));
    head.wait_for("squeue -h -o %i", &other);
}

#[test]
fn private_cluster_hears_its_owner_and_root_only() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster { dir: new_dir() };
    let dir = head.dir.display();
    let as_owner = "setpriv --reuid=1 --regid=1 --clear-groups env HOME=/tmp";
    let as_stranger = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp";
    head.ok(&format!("chown 1:1 {dir} && {as_owner} spur up --nodes 1 --dir {dir}"));
    let job = head.ok(&format!("{as_owner} sbatch --parsable -H -D / -o /dev/null --comment secret --wrap true"));
    for line in [
        "sbatch -D / -o /dev/null --wrap true".to_owned(),
        "srun -D / true".into(),
        "squeue".into(),
        format!("scontrol show job {job}"),
        format!("scancel {job}"),
        format!("scontrol update jobid={job} comment=mine"),
        "sacct".into(),
        "scontrol shutdown".into(),
    ] {
        let said = head.run(&format!("{as_stranger} {line}"));
        assert!(said.code != 0 && said.err.contains("private cluster of daemon"), "{line}: {said:?}");
        assert!(!said.out.contains("secret"), "{line}: {said:?}");
    }
    assert!(head.ok(&format!("{as_stranger} scontrol ping")).contains("UP"));
    assert_eq!(head.ok("squeue -h -o '%i %T %k'"), format!("{job} PENDING secret"));
    head.ok(&format!("{as_owner} scontrol release {job}"));
    head.wait_state(&job, "COMPLETED");
}
