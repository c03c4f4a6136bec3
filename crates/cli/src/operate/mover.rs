//! `spur mover SOURCE DESTINATION`: the agents' mover on its own, for trials and by hand.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mover::{Ending, Fence, Files, Kind, Links, Order, Place, Status, Stop, Transfer, Verify};

use super::check::count;
use super::{Call, interrupt};
use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};
use crate::stage::bar::{Bar, Screen};

const FLAGS: &[Flag] = &[
    flag("verify", None, Value::Required),
    flag("workers", None, Value::Required),
    flag("bandwidth", None, Value::Required),
    flag("symlinks", None, Value::Required),
    flag("journal", None, Value::Required),
    flag("list", None, Value::None),
    flag("fence", None, Value::None),
    flag("sync", None, Value::None),
    flag("manifest", None, Value::None),
    flag("quiet", Some('q'), Value::None),
];
const LOOK_EVERY: Duration = Duration::from_millis(100);
pub const USAGE: &str = "mover [OPTION]... SOURCE DESTINATION

  --verify none|size|stream|full           stream: a hash of what is read and written; full: the copy is read back
  --workers N                              copying threads; twice the cores, at most 16, if not given
  --bandwidth SIZE                         bytes a second of all of them, such as 50MiB
  --symlinks preserve|follow|skip|fail     what becomes of symbolic links
  --journal FILE                           notes what is done; with the same one, what was cut short goes on where it was
  --list                                   SOURCE names, a line each, what is copied, and where to below DESTINATION
  --fence                                  DESTINATION is a buffer: nothing leads out of it, files have their names at once
  --sync                                   it is over when everything is on the disk
  --manifest                               print hash, size and path of every file
  -q, --quiet                              say only what went wrong";

pub fn run(call: &Call) -> Result<i32, String> {
    let parsed = getopt::parse(FLAGS, Operands::Mixed, call.arguments)?;
    let [source, destination] = parsed.operands.as_slice() else {
        return Err("a source and a destination are needed; see spur mover --help".into());
    };
    let order = order(&parsed, source, destination)?;
    let temporary = std::env::temp_dir();
    let scratch = |what: &str| mover::scratch_in(&temporary).map_err(|error| format!("{what}: {error}"));
    let journal = match parsed.value("journal") {
        Some(path) => File::options().read(true).append(true).create(true).open(path),
        None => mover::scratch_in(&temporary),
    };
    let journal = journal.map_err(|error| format!("journal: {error}"))?;
    let kept = journal.try_clone().map_err(|error| format!("journal: {error}"))?;
    let status = scratch("status file")?;
    let shown = status.try_clone().map_err(|error| format!("status file: {error}"))?;
    let files = Files { journal, status: Some(status), scratch: scratch("plan")?, peer: None };
    interrupt::note_signals();
    let status = move_and_show(&order, files, &shown, parsed.has("quiet"));
    if parsed.has("manifest") {
        print_manifest(&order, &kept);
    }
    report(&status, parsed.has("quiet"), parsed.has("journal"))
}

fn order(parsed: &Parsed, source: &str, destination: &str) -> Result<Order, String> {
    let number = |name: &str| match parsed.value(name) {
        None => Ok(None),
        Some(text) => match model::size::parse_bytes(text, 1) {
            Some(value) if value > 0 => Ok(Some(value)),
            _ => Err(format!("--{name}: '{text}' is not a whole number above zero (K, MiB, GB … may follow)")),
        },
    };
    let verify = match parsed.value("verify").unwrap_or("stream") {
        "none" => Verify::None,
        "size" => Verify::Size,
        "stream" => Verify::Stream,
        "full" => Verify::Full,
        other => return Err(format!("--verify: '{other}' is none of none, size, stream, full")),
    };
    let links = match parsed.value("symlinks").unwrap_or("preserve") {
        "preserve" => Links::Preserve,
        "follow" => Links::Follow,
        "skip" => Links::Skip,
        "fail" => Links::Fail,
        other => return Err(format!("--symlinks: '{other}' is none of preserve, follow, skip, fail")),
    };
    let here = |path: &str| -> Result<String, String> {
        let ends_so = path.ends_with('/');
        let path = std::path::absolute(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
        let text = path.to_str().ok_or("a path must be valid UTF-8")?.trim_end_matches('/').to_owned();
        Ok(if ends_so { format!("{text}/") } else { text })
    };
    let source = here(source)?;
    let kind = match (parsed.has("list"), Path::new(&source).is_dir()) {
        (true, _) => Kind::List,
        (false, true) => Kind::Directory,
        (false, false) => Kind::File,
    };
    let destination = here(destination)?;
    let work_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let mut transfer = Transfer {
        kind,
        source: Place::outside(source),
        destination: Place::outside(destination.clone()),
        list_base: (kind == Kind::List).then(|| Place::outside(work_dir.to_string_lossy())),
        links,
        ..Transfer::default()
    };
    let mut fences = Vec::new();
    if parsed.has("fence") {
        std::fs::create_dir_all(&destination).map_err(|error| format!("{destination}: {error}"))?;
        fences.push(Fence { path: destination, is_unread: true, ..Fence::default() });
        transfer.destination = Place::inside(0, "");
    }
    Ok(Order {
        tag: "trial".into(),
        fences,
        transfers: vec![transfer],
        verify,
        n_workers: number("workers")?.map(|count| count.min(256) as u32),
        bytes_per_sec: number("bandwidth")?,
        syncs: parsed.has("sync"),
        ..Order::default()
    })
}

fn move_and_show(order: &Order, files: Files, shown: &File, is_quiet: bool) -> Status {
    let (stop, over) = (Stop::default(), Stop::default());
    let mut screen = Screen::new("");
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| {
            let status = mover::run(order, files, &stop);
            over.set();
            status
        });
        let mut last = (std::time::Instant::now(), 0);
        while !over.wait(LOOK_EVERY) {
            if interrupt::requested().is_some() {
                stop.set();
            }
            let Some(status) = mover::read_status(shown).filter(|_| !is_quiet) else { continue };
            let rate =
                (status.snapshot.bytes_done.saturating_sub(last.1) as f64 / last.0.elapsed().as_secs_f64()) as u64;
            if last.0.elapsed() > Duration::from_secs(10) {
                last = (std::time::Instant::now(), status.snapshot.bytes_done);
            }
            screen.show("", &[bar(&status, rate)]);
        }
        let status = moving.join().expect("a mover tells its troubles, it does not panic");
        if !is_quiet {
            let millis = status.snapshot.elapsed_millis.max(1);
            screen.show("", &[bar(&status, status.snapshot.bytes_done * 1000 / millis)]);
        }
        status
    })
}

fn bar(status: &Status, bytes_per_second: u64) -> Bar {
    let snapshot = &status.snapshot;
    let is_counted = snapshot.phase != mover::Phase::Planning;
    Bar {
        label: String::new(),
        files: snapshot.files_done,
        files_total: if is_counted { snapshot.files_total } else { 0 },
        bytes: snapshot.bytes_done,
        bytes_total: if is_counted { snapshot.bytes_total } else { 0 },
        bytes_per_second,
        note: snapshot.note.clone(),
    }
}

fn report(status: &Status, is_quiet: bool, can_go_on: bool) -> Result<i32, String> {
    let Some(outcome) = &status.outcome else { return Err("ended without a result".into()) };
    outcome.warnings.iter().for_each(|warning| eprintln!("spur mover: warning: {warning}"));
    match outcome.ending {
        Ending::Done if is_quiet => Ok(0),
        Ending::Done => {
            let snapshot = &status.snapshot;
            let resumed = match snapshot.files_resumed {
                0 => String::new(),
                count => format!(", {count} of them by an earlier mover"),
            };
            eprintln!(
                "{}, {} in {:.2} s{resumed}",
                count(snapshot.files_done as usize, "file"),
                mover::human(snapshot.bytes_done),
                snapshot.elapsed_millis as f64 / 1000.0
            );
            Ok(0)
        }
        Ending::Cancelled | Ending::Parted => {
            let next =
                if can_go_on { "the same line goes on from here" } else { "with --journal it could go on from here" };
            eprintln!("spur mover: called off after {}; {next}", count(status.snapshot.files_done as usize, "file"));
            Ok(128 + interrupt::requested().unwrap_or(libc::SIGTERM))
        }
        Ending::Failed => {
            outcome.errors.iter().for_each(|error| eprintln!("spur mover: {error}"));
            Err(format!("{}: not everything could be moved", count(outcome.n_errors as usize, "error")))
        }
    }
}

/// Hash, size and path of every file.
fn print_manifest(order: &Order, journal: &File) {
    let fenced = order.fences.first().map(|fence| fence.path.clone()).unwrap_or_default();
    let _ = mover::manifest(journal, |_, place, file| {
        let parts = [fenced.as_bytes(), &place.anchor, &place.below, &file.name];
        let parts: Vec<String> = parts
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect();
        let hash = file.hash.map_or_else(|| "-".repeat(32), |hash| format!("{hash:032x}"));
        crate::output::print(&format!("{hash}  {}  {}\n", file.version.size_bytes, parts.join("/")));
    });
}
