//! Trees that come from another node: as they are there, through kills on both sides, and never taken for right when they are not.
mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use mover::{Ending, Fence, Files, Kind, Order, Status, Stop, Verify, mirror, process};
use support::{Folder, listing, noise, order_in, outcome};

const MOVER: &str = env!("CARGO_BIN_EXE_mover-test");

/// A source with all that a tree can have, staged in `there`, as on the node that reads the source.
fn world() -> (Folder, Order) {
    let folder = Folder::new();
    for index in 0..300 {
        folder
            .write(&format!("source/d{}/e{}/f{index}", index % 5, index % 3), &noise(index * 13 % 4000, index as u64));
    }
    folder.write("source/large", &noise(5_000_000, 77));
    folder.write("source/empty", b"");
    fs::create_dir_all(folder.path("source/nothing/in/it")).unwrap();
    symlink("d1/e1", folder.path("source/link")).unwrap();
    let sparse = fs::File::create(folder.path("source/sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    sparse.write_all_at(&noise(9000, 5), 1_400_000).unwrap();
    fs::set_permissions(folder.path("source/empty"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(folder.path("source/nothing/in"), fs::Permissions::from_mode(0o750)).unwrap();
    for name in ["there", "here"] {
        fs::create_dir_all(folder.path(name)).unwrap();
    }
    let mut order = order_in(Kind::Directory, &folder.text("source"), &folder.text("here"), "in");
    (order.split_bytes, order.chunk_bytes) = (1 << 20, 256 << 10);
    let mut reads = order.clone();
    reads.fences[0].path = folder.text("there");
    let files = Files {
        journal: fs::File::options().append(true).read(true).create(true).open(folder.path("other")).unwrap(),
        ..folder.files()
    };
    assert_eq!(outcome(mover::run(&reads, files, &Stop::default())).ending, Ending::Done);
    (folder, order)
}

fn sender(folder: &Folder) -> (Child, UnixStream) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let fence = Fence { path: folder.text("there"), ..Fence::default() };
    let order = Order { fences: vec![fence], ..Order::default() };
    (mirror::start(Path::new(MOVER), &order, theirs.into(), None).unwrap(), ours)
}

fn receive(folder: &Folder, order: &Order, peer: UnixStream) -> Status {
    mover::run(order, Files { peer: Some(peer), ..folder.files() }, &Stop::default())
}

fn same(folder: &Folder) {
    assert_eq!(listing(&folder.path("here")), listing(&folder.path("there")));
    assert_eq!(listing(&folder.path("here/in")), listing(&folder.path("source")));
}

#[test]
fn a_tree_comes_over_as_it_is() {
    for verify in [Verify::None, Verify::Stream, Verify::Full] {
        let (folder, mut order) = world();
        order.verify = verify;
        let (mut child, socket) = sender(&folder);
        let status = receive(&folder, &order, socket);
        let done = status.snapshot.clone();
        assert_eq!((outcome(status).ending, done.files_done), (Ending::Done, done.files_total));
        assert!(done.bytes_done == done.bytes_total && done.files_total == 304, "{done:?}");
        assert!(child.wait().unwrap().success());
        same(&folder);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(folder.path("here/in/sparse")).unwrap());
        assert!(blocks * 512 < 1 << 20, "holes stay holes");
    }
}

#[test]
fn forty_kills_later_every_byte_is_there_and_none_came_twice() {
    let (folder, mut order) = world();
    order.bytes_per_sec = Some(12 << 20);
    let mut seed = 1u64;
    let mut n_kills = 0;
    loop {
        let (mut sending, socket) = sender(&folder);
        let files = Files { peer: Some(socket), ..folder.files() };
        let mut receiving = process::start(Path::new(MOVER), &order, files, false, None).unwrap();
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Anywhere in their lives: the instant is the point of the test.
        std::thread::sleep(Duration::from_micros(2_000 + (seed >> 33) % 40_000));
        if n_kills < 40 && receiving.try_wait().unwrap().is_none() {
            let killed = if seed >> 40 & 1 == 0 { &mut sending } else { &mut receiving };
            killed.kill().unwrap();
            n_kills += 1;
        }
        let _ = sending.wait();
        receiving.wait().unwrap();
        let ended = fs::File::open(folder.path("status")).ok().and_then(|file| mover::read_status(&file));
        let is_done = ended.and_then(|status| status.outcome).is_some_and(|outcome| outcome.ending == Ending::Done);
        if is_done && n_kills >= 10 {
            break;
        }
        fs::remove_file(folder.path("status")).unwrap();
        if is_done {
            // Instants take long on a busy machine: it had time to finish, and begins anew.
            same(&folder);
            fs::remove_dir_all(folder.path("here/in")).unwrap();
            fs::remove_file(folder.path("journal")).unwrap();
        }
    }
    same(&folder);
    // What came from the other node is known when the source itself is read, and the other way round.
    let order = Order { bytes_per_sec: None, ..order };
    let again = folder.run(&order);
    assert_eq!(again.snapshot.files_resumed + 1, again.snapshot.files_total, "all but the link");
    let (_sending, socket) = sender(&folder);
    let again = receive(&folder, &order, socket);
    assert_eq!(again.snapshot.files_resumed + 1, again.snapshot.files_total, "all but the link");
    same(&folder);
}

/// Passes everything on, but what comes at this byte is another.
fn meddle(peer: UnixStream, at: usize) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut up, mut up_to) = (theirs.try_clone().unwrap(), peer.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut up, &mut up_to));
    std::thread::spawn(move || {
        let (mut from, mut to, mut done) = (peer, theirs, 0);
        let mut block = vec![0; 64 << 10];
        while let Ok(length) = from.read(&mut block) {
            if length == 0 {
                break;
            }
            if (done..done + length).contains(&at) {
                block[at - done] ^= 0x40;
            }
            done += length;
            if to.write_all(&block[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    ours
}

#[test]
fn whatever_changes_on_the_way_is_seen() {
    for at in [3, 40, 2_000, 300_000, 2_000_000, 5_300_000] {
        let (folder, order) = world();
        let (mut child, socket) = sender(&folder);
        let ended = outcome(receive(&folder, &order, meddle(socket, at)));
        let _ = child.kill();
        let _ = child.wait();
        if ended.ending != Ending::Done {
            assert_eq!(ended.ending, Ending::Parted, "byte {at}: {ended:?}");
            // The source is read instead.
            assert_eq!(outcome(folder.run(&order)).ending, Ending::Done);
        }
        for (name, bytes) in
            [("large", noise(5_000_000, 77)), ("d1/e1/f1", noise(13, 1)), ("d4/e2/f299", noise(3887, 299))]
        {
            assert!(fs::read(folder.path("here/in").join(name)).is_ok_and(|there| there == bytes), "byte {at}: {name}");
        }
    }
}

#[test]
fn a_peer_that_goes_leaves_chunks_for_whoever_goes_on() {
    let (folder, order) = world();
    let (mut child, socket) = sender(&folder);
    // Cut in the middle of the large file, wherever that comes.
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut up, mut up_to) = (theirs.try_clone().unwrap(), socket.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut up, &mut up_to));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut socket.try_clone().unwrap().take(3_000_000), &mut theirs.try_clone().unwrap());
        let _ = theirs.shutdown(std::net::Shutdown::Both);
        let _ = socket.shutdown(std::net::Shutdown::Both);
    });
    let ended = outcome(receive(&folder, &order, ours));
    assert_eq!(ended.ending, Ending::Parted);
    let _ = child.kill();
    let _ = child.wait();
    let (mut child, socket) = sender(&folder);
    assert_eq!(outcome(receive(&folder, &order, socket)).ending, Ending::Done);
    let _ = child.wait();
    same(&folder);
}

#[test]
fn nothing_leads_out_of_the_fence() {
    let (folder, order) = world();
    fs::create_dir_all(folder.path("outside")).unwrap();
    fs::create_dir_all(folder.path("here/in")).unwrap();
    symlink(folder.path("outside"), folder.path("here/in/d1")).unwrap();
    let (mut child, socket) = sender(&folder);
    let ended = outcome(receive(&folder, &order, socket));
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(ended.ending, Ending::Parted);
    assert!(ended.warnings[0].contains("a symbolic link in it is not followed"), "{ended:?}");
    assert_eq!(fs::read_dir(folder.path("outside")).unwrap().count(), 0);

    // A sender that lies about names.
    let frame = |kind: u8, body: &[u8]| [&(body.len() as u32 + 1).to_le_bytes()[..], &[kind], body].concat();
    const IN: u8 = 5;
    const LINK: u8 = 7;
    for said in
        [frame(IN, b"../outside"), frame(IN, b"/etc"), frame(IN, b"a/../../b"), frame(LINK, b"\x04../x\0\0\0\x01y")]
    {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&said).unwrap();
        let ended = outcome(receive(&folder, &order, ours));
        assert_eq!(ended.ending, Ending::Parted);
        assert!(ended.warnings[0].contains("what it should not"), "{ended:?}");
    }
}

#[test]
fn what_does_not_fit_has_failed_and_is_not_tried_elsewhere() {
    let (folder, order) = world();
    let here = folder.text("here");
    let mounted = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none", &here]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: only root can make a small file system");
    }
    let (mut child, socket) = sender(&folder);
    let ended = outcome(receive(&folder, &order, socket));
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::process::Command::new("umount").args(["-l", &here]).status();
    assert_eq!(ended.ending, Ending::Failed);
    assert!(ended.errors[0].contains("No space left on device"), "{ended:?}");
}
