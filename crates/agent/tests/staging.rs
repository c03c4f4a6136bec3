//! Burst buffers on one node: data goes in and out, through kills of mover and agent, and nothing is left behind.
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::JobId;
use model::agent::{Order, Report};
use model::buffer::TransferKind;
use model::pool::Verify;
use model::staging::{
    Access, Direction, HeldHome, Home, Inventory, Progress, Removal, StageResult, StageWork, TransferOrder,
};
use model::time::Span;
use support::{World, eventually, is_alive};

fn home(job: u32) -> Home {
    Home::Job { job: JobId(job), epoch: 0, access: Access::Private }
}

fn root(world: &World) -> String {
    world.dir.join("pool").display().to_string()
}

fn data(world: &World, job: u32) -> PathBuf {
    home(job).directory(&root(world)).into()
}

fn work(world: &World, job: u32, attempt: u32, direction: Direction) -> StageWork {
    let spec = world.job_spec();
    StageWork {
        home: Some(home(job)),
        attempt,
        direction,
        root: root(world),
        pool: "local".into(),
        capacity_bytes: 1 << 30,
        uid: spec.uid,
        gid: spec.gid,
        user: spec.user,
        work_dir: spec.work_dir,
        timeout: Span::from_secs(60),
        verify: Verify::Full,
        forbidden: vec![root(world)],
        ..StageWork::default()
    }
}

fn transfer(world: &World, job: u32, kind: TransferKind, outside: &str, inside: &str) -> TransferOrder {
    TransferOrder {
        kind,
        outside: outside.into(),
        base: data(world, job).display().to_string(),
        inside: inside.into(),
        ..TransferOrder::default()
    }
}

async fn answer(world: &mut World, number: u64) -> StageResult {
    world
        .wait_for("staged", |report| match report {
            Report::Staged { number: given, result } if *given == number => Some(result.clone()),
            _ => None,
        })
        .await
}

fn ask(world: &mut World, work: StageWork) -> u64 {
    let number = world.number();
    world.order(Order::Stage { number, work: Box::new(work) });
    number
}

async fn stage(world: &mut World, work: StageWork) -> StageResult {
    let number = ask(world, work);
    answer(world, number).await
}

async fn remove(world: &mut World, job: u32, attempt: u32) -> StageResult {
    let number = world.number();
    let removal = Removal { home: Some(home(job)), attempt, root: root(world), pool: "local".into() };
    world.order(Order::Remove { number, removal });
    answer(world, number).await
}

fn moved(result: StageResult) -> (u64, u64) {
    match result {
        StageResult::Done(moved) => (moved.n_files, moved.n_bytes),
        StageResult::Failed(failure) => panic!("{failure:?}"),
    }
}

fn why(result: StageResult) -> String {
    match result {
        StageResult::Done(moved) => panic!("{moved:?}"),
        StageResult::Failed(failure) => failure.why,
    }
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

fn source(world: &World, n_files: usize, size: usize) -> Vec<(String, Vec<u8>)> {
    let dir = world.dir.join("work/source");
    let files: Vec<(String, Vec<u8>)> =
        (0..n_files).map(|index| (format!("d{}/f{index}", index % 3), noise(size, index as u64 + 1))).collect();
    for (name, bytes) in &files {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), bytes).unwrap();
    }
    files
}

fn same(files: &[(String, Vec<u8>)], dir: &Path) {
    for (name, bytes) in files {
        assert!(fs::read(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")) == *bytes, "{name} differs");
    }
}

/// Processes of movers that work below this world's directory.
fn movers(world: &World) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let is_mover = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "spurmover");
        is_mover
            && fs::read_link(format!("/proc/{pid}/fd/4")).is_ok_and(|journal| journal.starts_with(&world.dir))
            && is_alive(*pid)
    };
    pids.filter(is_ours).collect()
}

fn is_clean(world: &World) -> bool {
    let records = fs::read_dir(world.dir.join("pool/.spur")).unwrap().count();
    let jobs = fs::read_dir(world.dir.join("pool/jobs")).unwrap().count();
    let trash = fs::read_dir(world.dir.join("pool/.trash")).unwrap().count();
    records + jobs + trash == 0 && movers(world).is_empty()
}

#[tokio::test]
async fn data_goes_in_and_comes_out_and_the_home_goes() {
    let mut world = World::new().await;
    let files = source(&world, 40, 5000);
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "in")];
    assert_eq!(moved(stage(&mut world, filling.clone()).await), (40, 200_000));
    same(&files, &data(&world, 7).join("in"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&data(&world, 7)), 0o700);
    assert_eq!(mode(data(&world, 7).parent().unwrap()), 0o711);
    // The same order again is answered at once, also by the next agent; a lower one is not.
    assert_eq!(moved(stage(&mut world, filling.clone()).await), (40, 200_000));
    world.kill_agent();
    world.start_agent().await;
    assert_eq!(moved(stage(&mut world, filling.clone()).await), (40, 200_000));
    fs::write(data(&world, 7).join("result"), b"done").unwrap();
    let mut emptying = work(&world, 7, 2, Direction::Out);
    emptying.transfers = vec![
        transfer(&world, 7, TransferKind::Directory, "back", "in"),
        transfer(&world, 7, TransferKind::File, "out/result", "result"),
    ];
    assert_eq!(moved(stage(&mut world, emptying).await), (41, 200_004));
    same(&files, &world.dir.join("work/back"));
    assert_eq!(world.read("out/result"), "done");
    assert_eq!(moved(remove(&mut world, 7, 3).await), (0, 0));
    assert!(is_clean(&world));
    assert_eq!(moved(remove(&mut world, 7, 3).await), (0, 0), "gone already is as good");
    assert!(why(stage(&mut world, filling).await).contains("removed"));
    let mut missing = work(&world, 8, 1, Direction::Out);
    missing.transfers = vec![transfer(&world, 8, TransferKind::File, "x", "y")];
    assert!(why(stage(&mut world, missing).await).contains("is not there"));
}

/// A job that has left neither a byte nor a name of the disk gets its data back, also when that is tried twice.
#[tokio::test]
async fn what_fills_the_disk_comes_back() {
    let mut world = World::new().await;
    let disk = world.dir.join("pool");
    fs::create_dir_all(&disk).unwrap();
    let mut mount = std::process::Command::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "-o", "size=4m,nr_inodes=200,mode=0755", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        return eprintln!("SKIPPED: only root can make a small file system");
    }
    let files = source(&world, 10, 5000);
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "in")];
    assert_eq!(moved(stage(&mut world, filling).await), (10, 50_000));
    let home = data(&world, 7);
    fs::write(home.join("in/ballast"), vec![7; 8 << 20]).unwrap_err();
    let n_links = (0..1000).take_while(|number| fs::write(home.join(format!("in/{number}")), "").is_ok()).count();
    assert!(n_links < 1000, "names are left");
    let mut emptying = work(&world, 7, 2, Direction::Out);
    emptying.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source/d0/f0/below", "in")];
    let text = why(stage(&mut world, emptying).await);
    assert!(text.contains("Not a directory"), "{text}");
    let mut emptying = work(&world, 7, 3, Direction::Out);
    emptying.transfers = vec![transfer(&world, 7, TransferKind::Directory, "back", "in")];
    assert_eq!(moved(stage(&mut world, emptying).await).0, 11 + n_links as u64);
    same(&files, &world.dir.join("work/back"));
    remove(&mut world, 7, 4).await;
    assert!(is_clean(&world));
    let gone = std::process::Command::new("umount").arg("-l").arg(&disk).status().unwrap();
    assert!(gone.success());
}

#[tokio::test]
async fn what_cannot_be_staged_says_why() {
    let mut world = World::new().await;
    source(&world, 3, 50_000);
    let mut small = work(&world, 7, 1, Direction::In);
    small.capacity_bytes = 100_000;
    small.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
    let text = why(stage(&mut world, small.clone()).await);
    assert!(text.contains("in 3 files, buffer has 97.7KiB"), "{text}");
    let mut attempt = 1;
    let mut refusal = async |world: &mut World, kind, outside: &str, inside: &str| {
        attempt += 1;
        let mut asked = work(world, 7, attempt, Direction::In);
        asked.transfers = vec![transfer(world, 7, kind, outside, inside)];
        why(stage(world, asked).await)
    };
    let text = refusal(&mut world, TransferKind::File, "nowhere", "x").await;
    assert!(text.contains("work/nowhere: No such file"), "{text}");
    let pool = format!("{}/jobs/1.0/shared", root(&world));
    assert!(refusal(&mut world, TransferKind::Directory, &pool, "").await.contains("burst buffer pool"));
    assert!(refusal(&mut world, TransferKind::File, "../x", "").await.contains(".."));
    assert!(refusal(&mut world, TransferKind::File, "source/d0/f0", "../../x").await.contains("not inside"));
    let secret = world.dir.join("work/list");
    fs::write(&secret, "source/d0/f0 ../../escape\n").unwrap();
    assert!(refusal(&mut world, TransferKind::List, "list", "").await.contains("line 1"));
    // Once there is room, the same home is filled.
    let again = StageWork { attempt: attempt + 1, capacity_bytes: 200_000, ..small };
    assert_eq!(moved(stage(&mut world, again).await), (3, 150_000));
    remove(&mut world, 7, 20).await;
    assert!(is_clean(&world));
}

#[tokio::test]
async fn a_mover_outlives_its_agent_and_is_joined_by_the_next() {
    let mut world = World::new().await;
    let files = source(&world, 300, 20_000);
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
    filling.bandwidth_bytes = 1 << 20;
    ask(&mut world, filling.clone());
    let mut pid = None;
    eventually("a mover", || {
        pid = movers(&world).first().copied();
        pid.is_some()
    })
    .await;
    let pid = pid.expect("just seen");
    let progress = |report: &Report| match report {
        Report::Progress { works } => works.first().filter(|work| work.n_files_total > 0).cloned(),
        _ => None,
    };
    let first: Progress = world.wait_for("progress", progress).await;
    assert_eq!((first.n_files_total, first.n_bytes_total, first.attempt), (300, 6_000_000, 1));
    // However long the next agent takes to come, it finds it at work.
    support::signal(pid, libc::SIGSTOP);
    world.kill_agent();
    assert!(is_alive(pid));
    world.start_agent().await;
    let number = ask(&mut world, filling);
    support::signal(pid, libc::SIGCONT);
    assert_eq!(moved(answer(&mut world, number).await), (300, 6_000_000));
    // Its answer is there a moment before it has gone.
    eventually("the end of the mover", || !is_alive(pid)).await;
    same(&files, &data(&world, 7));
    remove(&mut world, 7, 2).await;
    assert!(is_clean(&world));
}

/// However many movers there are, and however many files they have.
#[tokio::test]
async fn progress_is_told_once_a_second_for_all_movers_together() {
    let mut world = World::new().await;
    source(&world, 600, 10_000);
    let jobs = [7, 8, 9];
    let started = Instant::now();
    for job in jobs {
        let mut filling = work(&world, job, 1, Direction::In);
        filling.transfers = vec![transfer(&world, job, TransferKind::Directory, "source", "")];
        filling.bandwidth_bytes = 2 << 20;
        ask(&mut world, filling);
    }
    let (mut n_done, mut told) = (0, Vec::new());
    while n_done < jobs.len() {
        let next = |report: &Report| match report {
            Report::Staged { .. } => Some(None),
            Report::Progress { works } => Some(Some(works.clone())),
            _ => None,
        };
        match world.wait_for("progress or an end", next).await {
            Some(works) => told.push((started.elapsed(), works)),
            None => n_done += 1,
        }
    }
    let secs = started.elapsed().as_secs_f64();
    assert!(secs > 2.0 && told.len() >= 2, "there was something to tell: {secs} s, {} reports", told.len());
    assert!(told.len() as f64 <= secs + 1.0, "{} reports in {secs} s", told.len());
    assert!(told.iter().any(|(_, works)| works.len() == jobs.len()), "one report for all");
    let last = told.iter().rev().find_map(|(_, works)| works.first()).unwrap();
    assert!(last.bytes_per_second > 0 && last.average_bytes_per_second > 0, "{last:?}");
    // What is said of one only ever grows.
    for job in jobs {
        let own =
            |works: &Vec<Progress>| works.iter().find(|work| work.home == Some(home(job))).map(|work| work.n_bytes);
        let said: Vec<u64> = told.iter().filter_map(|(_, works)| own(works)).collect();
        assert!(said.is_sorted(), "{said:?}");
        remove(&mut world, job, 2).await;
    }
    assert!(is_clean(&world));
}

/// One that has not yet said who it is, is found as soon as it has.
#[tokio::test]
async fn a_mover_that_has_only_just_begun_is_ended_at_once() {
    let mut world = World::new().await;
    source(&world, 20, 100_000);
    for round in 0..12 {
        let mut filling = work(&world, 7, 2 * round + 1, Direction::In);
        filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
        filling.bandwidth_bytes = 1000;
        ask(&mut world, filling);
        // The time that a mover takes to come into being.
        tokio::time::sleep(Duration::from_millis(u64::from(round) * 2)).await;
        let asked = Instant::now();
        assert_eq!(moved(remove(&mut world, 7, 2 * round + 2).await), (0, 0));
        assert!(asked.elapsed() < Duration::from_secs(4), "round {round}: {:?}", asked.elapsed());
        assert!(is_clean(&world));
    }
}

/// A machine without a process to spare, or a journal that somebody else still has: as good as a mover that has crashed.
#[tokio::test]
async fn a_mover_that_cannot_be_started_is_started_later() {
    let mut world = World::new().await;
    let files = source(&world, 3, 1000);
    let records = world.dir.join("pool/.spur");
    fs::create_dir_all(&records).unwrap();
    let path = records.join("job-7.0-private.n1.in.journal");
    let held = fs::File::create(&path).unwrap();
    held.lock().unwrap();
    let mut work = work(&world, 7, 1, Direction::In);
    work.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
    let number = ask(&mut world, work);
    let fds = format!("/proc/{}/fd", world.agent_pid());
    let is_open =
        || fs::read_dir(&fds).unwrap().flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == path));
    eventually("a try", is_open).await;
    eventually("its end", || !is_open()).await;
    drop(held);
    assert_eq!(moved(answer(&mut world, number).await).0, 3);
    same(&files, &data(&world, 7));
    assert!(matches!(remove(&mut world, 7, 2).await, StageResult::Done(_)));
}

#[tokio::test]
async fn kills_of_movers_and_agents_cost_no_byte() {
    let mut world = World::new().await;
    let files = source(&world, 400, 9_000);
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
    filling.bandwidth_bytes = 512 << 10;
    let mut number = ask(&mut world, filling.clone());
    for round in 0..3 {
        eventually("a mover", || !movers(&world).is_empty()).await;
        tokio::time::sleep(Duration::from_millis(120)).await;
        movers(&world).into_iter().for_each(|pid| support::signal(pid, libc::SIGKILL));
        if round == 1 {
            world.kill_agent();
            world.start_agent().await;
            number = ask(&mut world, filling.clone());
        }
    }
    assert_eq!(moved(answer(&mut world, number).await), (400, 3_600_000));
    same(&files, &data(&world, 7));
    remove(&mut world, 7, 2).await;
    assert!(is_clean(&world));
}

#[tokio::test]
async fn a_removal_ends_the_mover_and_leaves_nothing_outside() {
    let mut world = World::new().await;
    let mut making = work(&world, 7, 1, Direction::In);
    assert_eq!(moved(stage(&mut world, making.clone()).await), (0, 0));
    fs::write(data(&world, 7).join("result"), noise(8 << 20, 3)).unwrap();
    let mut emptying = work(&world, 7, 2, Direction::Out);
    emptying.transfers = vec![transfer(&world, 7, TransferKind::File, "result", "result")];
    emptying.bandwidth_bytes = 1 << 20;
    let number = ask(&mut world, emptying.clone());
    let parts = |world: &World| {
        let names = fs::read_dir(world.dir.join("work")).unwrap().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part")).count()
    };
    eventually("a part", || parts(&world) > 0).await;
    // An agent that knows nothing of the mover ends it all the same.
    world.kill_agent();
    world.start_agent().await;
    assert_eq!(moved(remove(&mut world, 7, 3).await), (0, 0));
    assert!(is_clean(&world));
    assert_eq!(parts(&world), 0);
    // So does one that has started it, when the mover has been killed and has left its part.
    making.attempt = 4;
    stage(&mut world, making).await;
    fs::write(data(&world, 7).join("result"), noise(8 << 20, 3)).unwrap();
    emptying.attempt = 5;
    ask(&mut world, emptying);
    eventually("a part", || parts(&world) > 0).await;
    movers(&world).into_iter().for_each(|pid| support::signal(pid, libc::SIGKILL));
    remove(&mut world, 7, 6).await;
    assert!(is_clean(&world));
    assert_eq!(parts(&world), 0);
    let _ = number;
}

#[tokio::test]
async fn a_work_that_takes_too_long_has_failed() {
    let mut world = World::new().await;
    source(&world, 3, 2 << 20);
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.transfers = vec![transfer(&world, 7, TransferKind::Directory, "source", "")];
    filling.bandwidth_bytes = 1 << 20;
    filling.timeout = Span::from_secs(1);
    assert!(why(stage(&mut world, filling).await).contains("not finished after 1 seconds"));
    assert!(movers(&world).is_empty());
    remove(&mut world, 7, 2).await;
    assert!(is_clean(&world));
}

#[tokio::test]
async fn commands_of_the_user_move_data_too_and_leave_no_process() {
    let mut world = World::new().await;
    let mut filling = work(&world, 7, 1, Direction::In);
    filling.environment = vec![format!("SPUR_BB_PATH={}", data(&world, 7).display())];
    let line = "echo hello > $SPUR_BB_PATH/greeting; setsid sleep 1000 & echo $! > lingering";
    filling.transfers = vec![transfer(&world, 7, TransferKind::Command, line, "")];
    assert_eq!(moved(stage(&mut world, filling.clone()).await), (0, 0));
    assert_eq!(fs::read(data(&world, 7).join("greeting")).unwrap(), b"hello\n");
    let lingering: u32 = world.line("lingering").await.parse().unwrap();
    assert!(!is_alive(lingering));
    filling.attempt = 2;
    filling.transfers = vec![transfer(&world, 7, TransferKind::Command, "echo no such dataset >&2; exit 5", "")];
    let text = why(stage(&mut world, filling).await);
    assert!(text.contains("exit status: 5: no such dataset"), "{text}");
    remove(&mut world, 7, 3).await;
    assert!(is_clean(&world));
}

#[tokio::test]
async fn the_controller_is_told_which_homes_and_pools_there_are() {
    let mut world = World::new().await;
    let inventory = |report: &Report| match report {
        Report::Inventory(inventory) => Some(inventory.clone()),
        _ => None,
    };
    let first: Inventory = world.wait_for("inventory", inventory).await;
    assert_eq!(first.homes, vec![]);
    assert!(first.pools[0].total_bytes > 0 && first.pools[0].problem.is_empty(), "{first:?}");
    let making = work(&world, 7, 4, Direction::In);
    stage(&mut world, making).await;
    fs::write(data(&world, 7).join("x"), noise(100_000, 1)).unwrap();
    world.kill_agent();
    world.start_agent().await;
    // On a slow machine one may have been sent while the home was being made, or before there was something in it.
    let is_filled = |home: &HeldHome| home.attempt == 4 && home.used_bytes >= 100_000;
    let of_the_work = |report: &Report| inventory(report).filter(|found| found.homes.iter().any(is_filled));
    let second: Inventory = world.wait_for("inventory of the work", of_the_work).await;
    assert_eq!(second.homes.len(), 1);
    assert_eq!(second.homes[0].home, Some(home(7)));
    assert!(!second.homes[0].is_moving);
    let notes = fs::read_dir(world.dir.join("pool/.spur")).unwrap().flatten();
    let notes_bytes: u64 = notes.map(|entry| entry.metadata().unwrap().blocks() * 512).sum();
    assert!(notes_bytes > 0, "room is set aside");
    assert_eq!(second.pools[0].held_bytes, second.homes[0].used_bytes + notes_bytes, "notes are not foreign files");
    // A stray is removed without an answer.
    let removal = Removal { home: Some(home(7)), attempt: 9, root: root(&world), pool: "local".into() };
    world.order(Order::Remove { number: 0, removal });
    eventually("the stray to go", || is_clean(&world)).await;
    // A root that others can write to is no place for anybody's data.
    fs::set_permissions(world.dir.join("pool"), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = work(&world, 8, 1, Direction::In);
    assert!(why(stage(&mut world, refused).await).contains("can be written by others"));
    world.kill_agent();
    world.start_agent().await;
    let is_refused = |report: &Report| match report {
        Report::Inventory(found) => found.pools[0].problem.contains("can be written by others").then_some(()),
        _ => None,
    };
    world.wait_for("inventory with the problem", is_refused).await;
    fs::set_permissions(world.dir.join("pool"), fs::Permissions::from_mode(0o711)).unwrap();
}

#[tokio::test]
async fn the_mover_has_the_rights_of_the_user_and_no_more() {
    let mut world = World::new().await;
    // SAFETY: cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: only root can move data as somebody else");
        return;
    }
    const SOMEBODY: u32 = 61_234;
    let outside = world.dir.join("work");
    fs::write(outside.join("open"), b"open").unwrap();
    fs::write(outside.join("secret"), b"secret").unwrap();
    fs::set_permissions(outside.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut filling = work(&world, 7, 1, Direction::In);
    (filling.uid, filling.gid, filling.user) = (SOMEBODY, SOMEBODY, "somebody".into());
    filling.transfers = vec![
        transfer(&world, 7, TransferKind::File, "open", "open"),
        transfer(&world, 7, TransferKind::File, "secret", "secret"),
    ];
    let text = why(stage(&mut world, filling.clone()).await);
    assert!(text.contains("work/secret: Permission denied"), "{text}");
    assert!(!data(&world, 7).join("secret").exists());
    let open = fs::metadata(data(&world, 7).join("open")).unwrap();
    assert_eq!((open.uid(), open.gid()), (SOMEBODY, SOMEBODY));
    assert_eq!(fs::metadata(data(&world, 7)).unwrap().uid(), SOMEBODY);
    // Nor can it write where the user cannot, whatever the buffer holds.
    std::os::unix::fs::symlink(outside.join("secret"), data(&world, 7).join("link")).unwrap();
    let mut emptying = work(&world, 7, 2, Direction::Out);
    (emptying.uid, emptying.gid, emptying.user) = (SOMEBODY, SOMEBODY, "somebody".into());
    emptying.transfers = vec![
        transfer(&world, 7, TransferKind::File, "stolen", "open"),
        transfer(&world, 7, TransferKind::File, "/tmp/spur-must-not-appear", "link"),
    ];
    let text = why(stage(&mut world, emptying).await);
    assert!(text.contains("symbolic link") || text.contains("Permission denied"), "{text}");
    assert!(!outside.join("stolen").exists() && !Path::new("/tmp/spur-must-not-appear").exists());
    let mut commanded = StageWork { attempt: 3, ..filling };
    commanded.work_dir = "/".into();
    commanded.environment = vec![format!("SPUR_BB_PATH={}", data(&world, 7).display())];
    let line = "id -u > $SPUR_BB_PATH/who; grep -E 'NoNewPrivs|CapEff' /proc/self/status >> $SPUR_BB_PATH/who";
    commanded.transfers = vec![transfer(&world, 7, TransferKind::Command, line, "")];
    moved(stage(&mut world, commanded).await);
    let who = fs::read_to_string(data(&world, 7).join("who")).unwrap();
    let words: Vec<&str> = who.split_whitespace().collect();
    assert_eq!(words, ["61234", "CapEff:", "0000000000000000", "NoNewPrivs:", "1"]);
    remove(&mut world, 7, 4).await;
    assert!(is_clean(&world));
}
