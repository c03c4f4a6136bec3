//! What one user may cost all others: watchers, mails, calls a second, and the room on the controller's disk.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::command::Blob;
use model::request::JobFilter;
use model::spec::{Mail, MailKind};
use model::{Command, JobId, JobKind, JobSpec, codec};
use tonic::Code;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, Said, is_root};

const NOBODY: u32 = 65_534;
const LIMITED: Option<Code> = Some(Code::ResourceExhausted);

fn local(head: &Cluster, uid: u32) -> Entrance {
    Entrance::Local { socket: head.dir.join("run/controller.sock"), uid, gid: uid }
}

fn everything() -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(&JobFilter::default())))])
}

/// A cluster of one node whose file has these lines at the end of `[controller]`.
fn with_controller_lines(lines: &str) -> Cluster {
    Cluster::configured(&format!("[controller]\n{lines}\n[[nodes]]\nnames = \"n1\"\ncpus = 8\nmemory_mb = 1000\n"))
}

/// Submits so many held jobs of this spec, several at a time.
async fn submit_held(socket: PathBuf, spec: JobSpec, n_jobs: usize) -> Vec<JobId> {
    let script = Blob::of(b"#!/bin/sh\ntrue\n".to_vec());
    let spec = JobSpec { kind: JobKind::Batch { script: script.id }, work_dir: "/".into(), held: true, ..spec };
    let controller = wire::Controller::connect(&socket).await.unwrap();
    let mut submitting = tokio::task::JoinSet::new();
    for lane in 0..10 {
        let (mut controller, spec, script) = (controller.clone(), spec.clone(), script.clone());
        submitting.spawn(async move {
            let mut jobs = Vec::new();
            for _ in (lane..n_jobs).step_by(10) {
                jobs.push(controller.submit(&spec, std::slice::from_ref(&script)).await.unwrap());
            }
            jobs
        });
    }
    submitting.join_all().await.concat()
}

fn program(head_dir: &std::path::Path, name: &str, text: &str) -> PathBuf {
    let file = head_dir.join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn mails_are_sent_a_few_at_a_time() {
    const N_MAILS: usize = 40;
    let folder = crate::cluster::Folder::new();
    let text = format!(
        "#!/bin/sh\ncd {}\ntouch running.$$\nls running.* | wc -l >> at_once\nsleep 0.1\nrm running.$$\n",
        folder.display()
    );
    let mail = program(&folder, "mail", &text);
    let head = with_controller_lines(&format!("mail_program = \"{}\"", mail.display()));
    let socket = head.dir.join("run/controller.sock");
    cancel_all_mailed(&socket, N_MAILS);
    head.wait_until("sdiag", |said| said.out.contains(&format!("Mails sent:    {N_MAILS}\n")));
    let at_once = fs::read_to_string(folder.join("at_once")).unwrap();
    let most = at_once.lines().filter_map(|line| line.trim().parse::<usize>().ok()).max().unwrap();
    assert!((1..=4).contains(&most), "{most} mail programs at once");
}

/// So many jobs end in one entry of the log, each with a mail.
fn cancel_all_mailed(socket: &std::path::Path, n_jobs: usize) {
    let socket = socket.to_owned();
    on_own_thread(async move {
        let mail = Mail { kinds: vec![MailKind::End], to: "ada".into(), ..Mail::default() };
        let jobs = submit_held(socket.clone(), JobSpec { mail: Some(mail), ..JobSpec::default() }, n_jobs).await;
        let cancel = Command::Cancel { jobs: jobs.into_iter().map(Into::into).collect(), hurry: false };
        wire::Controller::connect(&socket).await.unwrap().command_each(cancel).await.unwrap();
    });
}

#[test]
fn mails_that_do_not_get_away_are_counted_and_dropped() {
    const N_MAILS: usize = 600;
    let folder = crate::cluster::Folder::new();
    let mail = program(&folder, "mail", "#!/bin/sh\nexec sleep 600\n");
    let head = with_controller_lines(&format!("mail_program = \"{}\"", mail.display()));
    cancel_all_mailed(&head.dir.join("run/controller.sock"), N_MAILS);
    let count = |said: &Said, name: &str| -> usize {
        let line = said.out.lines().find(|line| line.contains(name)).unwrap_or_default();
        line.split(':').nth(1).and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    // Four are being sent.
    let is_all = |said: &Said| count(said, "Mails dropped") + count(said, "Mails waiting") + 4 == N_MAILS;
    let said = head.wait_until("sdiag", is_all);
    assert!(count(&said, "Mails dropped") > 0 && count(&said, "Mails waiting") <= 500, "{}", said.out);
    assert_eq!(head.logs().matches("mails are dropped").count(), 1, "{}", head.logs());
    head.ok("scontrol ping");
}

#[test]
fn watchers_of_everything_slow_nobody_down() {
    const N_JOBS: usize = 2000;
    const N_WATCHERS: usize = 30;
    let head = Cluster::up("--nodes 1");
    let socket = head.dir.join("run/controller.sock");
    let spec = JobSpec { comment: "c".repeat(1000), ..JobSpec::default() };
    let jobs = on_own_thread(submit_held(socket.clone(), spec, N_JOBS));
    let pid = head.controller_pid();
    let before = resident_mib(pid);
    let (watching, changing) = (local(&head, 0), socket.clone());
    let (slowest, n_refused) = on_own_thread(async move {
        let caller = RawCaller::open(&watching, &[]).await;
        let mut streams = Vec::new();
        for _ in 0..N_WATCHERS {
            streams.push(caller.open_stream("/spur.v1.Controller/WatchJobs", everything()).await.unwrap());
        }
        // Half of them read what they get; the others never do.
        let readers: Vec<_> = streams
            .drain(..N_WATCHERS / 2)
            .map(|mut stream| tokio::spawn(async move { while let Ok(Some(_)) = stream.message().await {} }))
            .collect();
        let mut controller = wire::Controller::connect(&changing).await.unwrap();
        let mut slowest = Duration::ZERO;
        for job in jobs.iter().take(200) {
            let release = Command::Cancel { jobs: vec![(*job).into()], hurry: false };
            controller.command_each(release).await.unwrap();
            let begun = Instant::now();
            controller.ping().await.unwrap();
            slowest = slowest.max(begun.elapsed());
        }
        readers.iter().for_each(tokio::task::JoinHandle::abort);
        (slowest, 0)
    });
    assert_eq!(n_refused, 0);
    let grown = resident_mib(pid).saturating_sub(before);
    eprintln!("slowest ping {slowest:?}, {grown} MiB more");
    assert!(slowest < Duration::from_secs(1), "a ping took {slowest:?}");
    assert!(grown < 150, "{grown} MiB for watchers");
}

pub(super) fn resident_mib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn user_has_a_bounded_number_of_watchers_of_everything() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let entrance = local(&head, NOBODY);
    on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut open = Vec::new();
        let refused = loop {
            match caller.open_stream("/spur.v1.Controller/WatchJobs", everything()).await {
                Ok(mut stream) => {
                    stream.message().await.unwrap();
                    open.push(stream);
                }
                Err(status) => break status,
            }
            assert!(open.len() < 100, "a hundred watchers of everything");
        };
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        // One that is closed makes room for another.
        open.pop();
        let give_up = Instant::now() + Duration::from_secs(20);
        while caller.open_stream("/spur.v1.Controller/WatchJobs", everything()).await.is_err() {
            assert!(Instant::now() < give_up, "the place of a watcher that has gone stays taken");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    // Others watch as before.
    head.ok("sbatch --wait -o /dev/null --wrap true");
}

#[test]
fn calls_of_a_user_are_limited_and_commands_wait() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = with_controller_lines("call_limit = true\ncall_bucket_size = 5\ncall_refill_rate = 4");
    let entrance = local(&head, NOBODY);
    let answers = on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut answers = Vec::new();
        for _ in 0..40 {
            answers.push(caller.call("/spur.v1.Controller/Ping", Vec::new(), false).await.map_err(|why| why.code()));
        }
        answers
    });
    let n_heard = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!((5..30).contains(&n_heard), "{n_heard} of 40 calls were heard");
    assert!(answers.iter().flat_map(|answer| answer.as_ref().err()).all(|code| *code == Code::ResourceExhausted));
    // Commands of the same user come back until they are heard.
    for _ in 0..8 {
        head.ok("setpriv --reuid=65534 --regid=65534 --clear-groups squeue -h");
    }
    // Root is not limited.
    for _ in 0..20 {
        head.ok("scontrol ping");
    }
    let said = head.ok("sdiag");
    assert!(said.contains("Calls put off by the limit of calls: "), "{said}");
}

#[test]
fn submissions_of_a_user_are_limited_by_the_minute() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = with_controller_lines("submissions_per_minute = 3");
    let entrance = local(&head, NOBODY);
    let codes = on_own_thread(async move {
        let script = Blob::of(b"#!/bin/sh\ntrue\n".to_vec());
        let spec = JobSpec {
            kind: JobKind::Batch { script: script.id },
            work_dir: "/".into(),
            held: true,
            ..JobSpec::default()
        };
        let body = written(&[
            (1, FieldContent::Bytes(codec::encode(&spec))),
            (2, FieldContent::Bytes(codec::encode(&script))),
        ]);
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut codes = Vec::new();
        for _ in 0..6 {
            let answer = caller.call("/spur.v1.Controller/Submit", body.clone(), false).await;
            codes.push(answer.err().map(|status| status.code()));
        }
        codes
    });
    assert_eq!(codes, [None, None, None, LIMITED, LIMITED, LIMITED]);
    assert_eq!(head.ok("squeue -h -u nobody | wc -l"), "3");
}

#[test]
fn full_disk_refuses_changes_until_there_is_room() {
    if !is_root() {
        eprintln!("skipped: only root can make a small disk");
        return;
    }
    let head = Cluster { dir: crate::cluster::new_dir() };
    let (dir, state) = (head.dir.display(), head.dir.join("state"));
    fs::create_dir_all(&state).unwrap();
    let up = format!("mount -t tmpfs -o size=48m,mode=755 none {} && spur up --dir {dir} --nodes 1", state.display());
    let said = head.run(&format!("unshare --mount --propagation private sh -c '{up}'"));
    if said.code != 0 && (said.err.contains("unshare") || said.err.contains("mount")) {
        eprintln!("skipped: no disk can be mounted here: {}", said.err);
        return;
    }
    assert_eq!(said.code, 0, "{said:?}");
    let pid = head.controller_pid();
    // Only the daemons see their disk.
    let disk = PathBuf::from(format!("/proc/{pid}/root{}", state.display()));
    let ends = head.sbatch("-o /dev/null --wrap 'while [ ! -e go ]; do sleep 0.1; done'");
    let cancelled = head.sbatch("-o /dev/null --wrap 'sleep 1000'");
    head.wait_state(&ends, "RUNNING");
    head.wait_state(&cancelled, "RUNNING");
    let give_up = Instant::now() + Duration::from_secs(30);
    while !disk.join("journal/reserve").exists() {
        assert!(Instant::now() < give_up, "there is no reserve");
        std::thread::sleep(Duration::from_millis(20));
    }
    fill(&disk.join("filler"));
    let socket = head.dir.join("run/controller.sock");
    let refused = on_own_thread(submit_until_refused(socket));
    assert!(refused.contains("disk is full"), "{refused}");
    // Questions are answered, jobs end and are cancelled, and nothing else changes.
    head.ok("squeue");
    head.ok("scontrol ping");
    let said = head.run("sbatch --wrap true");
    assert!(said.code != 0 && said.err.contains("disk is full"), "{said:?}");
    fs::write(head.dir.join("work/go"), "").unwrap();
    head.wait_state(&ends, "COMPLETED");
    head.ok(&format!("scancel {cancelled}"));
    head.wait_state(&cancelled, "CANCELLED");
    assert_eq!(head.controller_pid(), pid);
    // Room again, and no restart.
    fs::remove_file(disk.join("filler")).unwrap();
    head.wait_until("sbatch -o out --wrap 'echo back'", |said| said.code == 0);
    head.wait_file("out", |text| text == "back\n");
    assert!(crate::cluster::is_alive(pid), "{}", head.logs());
    assert!(!head.logs().contains("panicked"), "{}", head.logs());
}

/// Takes all the room there is.
fn fill(file: &std::path::Path) {
    use std::io::Write;
    let mut file = fs::File::create(file).unwrap();
    for size in [1 << 20, 1 << 12, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// Why a submission is refused at last; each brings a script of its own.
async fn submit_until_refused(socket: PathBuf) -> String {
    let mut controller = wire::Controller::connect(&socket).await.unwrap();
    for n in 0..200 {
        let script = Blob::of(format!("#!/bin/sh\n# {n} {}\n", "x".repeat(100_000)).into_bytes());
        let spec = JobSpec {
            kind: JobKind::Batch { script: script.id },
            work_dir: "/".into(),
            held: true,
            ..JobSpec::default()
        };
        if let Err(why) = controller.submit(&spec, std::slice::from_ref(&script)).await {
            return why.to_string();
        }
    }
    "never".into()
}
