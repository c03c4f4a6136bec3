//! The plan: what the sources hold, counted and written down before the first byte moves.
mod batches;
mod tree;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::fence::{self, Fences};
use crate::journal::{Journal, Past};
use crate::list;
use crate::order::{Kind, Order, Place, Transfer};
use crate::pace::Stop;
use crate::plan::{Follow, Item, ItemKind, Plan, Where, Writer};
use crate::progress::Counters;
use crate::trouble::{Side, Trouble, shown};
use batches::Batches;
use tree::Helpers;

/// What all who walk share.
pub struct Ground<'a> {
    order: &'a Order,
    fences: &'a Fences,
    counters: &'a Counters,
    stop: &'a Stop,
    plan: Mutex<Writer>,
    /// By fence: what its new files will take, and how many they are.
    needs: Vec<(AtomicU64, AtomicU64)>,
}

/// One who walks through what the user has named, in order.
pub struct Walk<'a, 's> {
    ground: &'s Ground<'a>,
    batches: Batches<'a, 's>,
    helpers: &'s Helpers,
    journal: &'s mut Journal,
    past: &'s Past,
}

type Outcome = Result<(), Trouble>;

/// Everything that stands in the way of single files is counted as an error; only what ends the whole errand is returned.
pub fn plan(
    order: &Order,
    fences: &Fences,
    counters: &Counters,
    stop: &Stop,
    scratch: File,
    journal: &mut Journal,
    past: &Past,
) -> Result<Plan, Trouble> {
    let needs = order.fences.iter().map(|_| Default::default()).collect();
    let ground = Ground { order, fences, counters, stop, plan: Mutex::new(Writer::new(scratch)), needs };
    let helpers = Helpers::default();
    let walker = || std::thread::Builder::new().stack_size(tree::STACK_BYTES);
    std::thread::scope(|scope| {
        // They sleep until there is a tree with something to do for them.
        for _ in 1..n_walkers(order) {
            let _ = walker().spawn_scoped(scope, || tree::help(&ground, &helpers));
        }
        let _dismissed = Dismissed(&helpers);
        let batches = Batches::new(&ground);
        let first = Walk { ground: &ground, batches, helpers: &helpers, journal, past };
        match walker().spawn_scoped(scope, || first.all()) {
            Ok(walking) => walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Trouble::permanent(format!("cannot look at the sources: {error}"))),
        }
    })?;
    for (fence, (bytes, files)) in order.fences.iter().zip(&ground.needs) {
        let (bytes, files) = (bytes.load(Relaxed), files.load(Relaxed));
        if fence.capacity_bytes.is_some_and(|capacity| bytes > capacity) {
            let has = human(fence.capacity_bytes.unwrap_or_default());
            return Err(Trouble::permanent(format!(
                "stage_in needs {} in {files} files, buffer has {has}",
                human(bytes)
            )));
        }
    }
    if stop.is_set() {
        return Err(Trouble::cancelled());
    }
    Ok(ground.plan.into_inner().expect("no panic while held").finish())
}

/// Nobody waits for more once the walk is over, however it ends.
struct Dismissed<'s>(&'s Helpers);

impl Drop for Dismissed<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

/// Waiting for a file server's answers needs no CPU.
fn n_walkers(order: &Order) -> u32 {
    order.n_workers.unwrap_or_else(crate::copy::usual_workers).clamp(1, 8)
}

impl Walk<'_, '_> {
    fn all(mut self) -> Outcome {
        for (index, transfer) in self.ground.order.transfers.iter().enumerate() {
            match self.transfer(index as u32, transfer) {
                Ok(()) => {}
                Err(trouble) if self.ground.stop.is_set() => return Err(trouble),
                Err(trouble) => self.ground.counters.failed(&trouble),
            }
        }
        self.batches.flush()
    }

    fn transfer(&mut self, index: u32, transfer: &Transfer) -> Outcome {
        self.batches.start(index, Where::default(), Where::default(), Follow::Never)?;
        match transfer.kind {
            Kind::File | Kind::Directory => self.one(index, transfer, &transfer.source, &transfer.destination),
            Kind::List => self.list(index, transfer),
        }
    }

    /// A file or a directory that the user has named.
    fn one(&mut self, index: u32, transfer: &Transfer, source: &Place, destination: &Place) -> Outcome {
        let path = self.path_of(source);
        let stat = match self.look(source) {
            Err(Errno::NOENT) if transfer.is_optional => return Ok(()),
            other => other.map_err(|errno| Trouble::of(errno, Side::Source, "find", &path))?,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let wants_directory = match transfer.kind {
            Kind::File => false,
            Kind::Directory => true,
            Kind::List => kind == FileType::Directory,
        };
        if wants_directory {
            if kind != FileType::Directory {
                return Err(Trouble::permanent(format!("{} is not a directory", shown(&path))));
            }
            let (source, target) = (fence::whole(source), fence::whole(destination));
            let keeps_own = self.ground.fences.directory(&target).is_ok() && !self.past.made(&target);
            if !keeps_own && !self.past.made(&target) {
                self.ground.counters.check_journal(self.journal.made(&target));
            }
            return tree::walk(self, index, transfer.links, source, target, keeps_own);
        }
        match kind {
            FileType::RegularFile => {}
            FileType::Symlink => {
                return Err(Trouble::permanent(format!("{} is a symbolic link, which is not followed", shown(&path))));
            }
            _ => return Err(Trouble::permanent(format!("{} is not a regular file", shown(&path)))),
        }
        let (source_dir, name) = fence::split(source);
        let (target, given_name) = self.file_target(destination);
        let given = if given_name.is_empty() { name.clone() } else { given_name };
        let follow = if source.fence.is_none() { Follow::Freely } else { Follow::Never };
        self.batches.start(index, source_dir, target, follow)?;
        let destination = if given == name { Vec::new() } else { given };
        self.batches
            .add(Item { kind: ItemKind::File, source: name, destination, size_bytes: stat.st_size as u64 }, &stat)
    }

    /// A destination that ends in a slash, or is a directory, takes the file under its own name.
    fn file_target(&self, destination: &Place) -> (Where, Vec<u8>) {
        let whole = fence::whole(destination);
        if destination.path.is_empty()
            || destination.path.ends_with('/')
            || self.ground.fences.directory(&whole).is_ok()
        {
            return (whole, Vec::new());
        }
        fence::split(destination)
    }

    fn look(&self, place: &Place) -> rustix::io::Result<Stat> {
        let Some(_) = place.fence else { return fs::stat(place.path.as_str()) };
        let (directory, name) = fence::split(place);
        if name.is_empty() || name == b"." || name == b".." {
            return fs::fstat(self.ground.fences.directory(&fence::whole(place))?);
        }
        fs::statat(self.ground.fences.directory(&directory)?, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn path_of(&self, place: &Place) -> PathBuf {
        self.ground.fences.path_of(&fence::whole(place), b"")
    }

    fn list(&mut self, index: u32, transfer: &Transfer) -> Outcome {
        let path = self.path_of(&transfer.source);
        let list = match self.open_list(&transfer.source) {
            Err(Errno::NOENT) if transfer.is_optional => return Ok(()),
            other => other.map_err(|errno| Trouble::of(errno, Side::Source, "open", &path))?,
        };
        let mut reader = BufReader::new(File::from(list));
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let length = reader.read_until(b'\n', &mut line);
            let at = |why: String| Trouble::permanent(format!("{} line {number}: {why}", shown(&path)));
            if length.map_err(|error| at(error.to_string()))? == 0 {
                break;
            }
            if self.ground.stop.is_set() {
                return Err(Trouble::cancelled());
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let done = match std::str::from_utf8(&line) {
                Ok(text) => self.list_line(index, transfer, text),
                Err(_) => Err("is not valid UTF-8".into()),
            };
            if let Err(why) = done {
                self.ground.counters.failed(&at(why));
            }
        }
        Ok(())
    }

    fn list_line(&mut self, index: u32, transfer: &Transfer, text: &str) -> Result<(), String> {
        let Some((source, destination)) = list::parse_line(text)? else { return Ok(()) };
        let source = self.list_source(transfer, &source)?;
        let own_name = source.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let destination = destination.unwrap_or(own_name);
        if !list::is_contained(&destination) || destination.is_empty() {
            return Err(format!("destination {destination} is not below {}", transfer.destination.path));
        }
        let base = transfer.destination.path.trim_end_matches('/');
        let joined = match (base.is_empty(), transfer.destination.fence) {
            (true, Some(_)) => destination,
            _ => format!("{base}/{destination}"),
        };
        let destination = Place { fence: transfer.destination.fence, path: joined };
        self.one(index, transfer, &source, &destination).map_err(|trouble| trouble.text)
    }

    /// Inside a fence a line names what is below it, in one of the fence's spellings; outside, a path of the user's.
    fn list_source(&self, transfer: &Transfer, text: &str) -> Result<Place, String> {
        let base = transfer.list_base.clone().unwrap_or_default();
        let Some(fence) = base.fence else {
            let path = if text.starts_with('/') { text.to_owned() } else { format!("{}/{text}", base.path) };
            return Ok(Place::outside(path));
        };
        let known = &self.ground.order.fences[fence as usize];
        let spellings = known.aliases.iter().chain([&known.path]);
        let mut stripped = spellings.filter_map(|head| {
            let rest = text.strip_prefix(head.as_str())?;
            if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
        });
        let below = match stripped.next() {
            Some(below) => below.trim_start_matches('/').to_owned(),
            None if base.path.is_empty() => text.to_owned(),
            None => format!("{}/{text}", base.path.trim_end_matches('/')),
        };
        if !list::is_contained(&below) || text.starts_with('$') && below == text {
            return Err(format!("source {text} is not inside the buffer"));
        }
        Ok(Place::inside(fence, below))
    }

    fn open_list(&self, place: &Place) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match place.fence {
            None => fs::openat(CWD, place.path.as_str(), flags, Mode::empty())?,
            Some(_) => {
                let (directory, name) = fence::split(place);
                let directory = self.ground.fences.directory(&directory)?;
                fs::openat(directory, OsStr::from_bytes(&name), flags | OFlags::NOFOLLOW, Mode::empty())?
            }
        };
        match FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) {
            FileType::RegularFile => Ok(fd),
            FileType::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }
}

/// `52.1GiB`
pub fn human(n_bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = n_bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() < 0.05 { format!("{value:.0}{}", units[unit]) } else { format!("{value:.1}{}", units[unit]) }
}

/// A file that nobody sees: in this directory, elsewhere if its file system is next to full, in memory if that is full as well.
pub fn scratch_in(directory: &Path) -> std::io::Result<File> {
    let elsewhere = std::env::temp_dir();
    match [directory, &elsewhere].into_iter().find(|directory| has_room(directory)) {
        Some(directory) => nameless_in(directory),
        None => Ok(fs::memfd_create("plan", fs::MemfdFlags::CLOEXEC)?.into()),
    }
}

fn has_room(directory: &Path) -> bool {
    const ENOUGH_BYTES: u64 = 64 << 20;
    const ENOUGH_FILES: u64 = 16;
    fs::statvfs(directory).is_ok_and(|stat| {
        let counts_files = stat.f_files > 0;
        stat.f_bavail * stat.f_frsize >= ENOUGH_BYTES && (!counts_files || stat.f_favail >= ENOUGH_FILES)
    })
}

fn nameless_in(directory: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match fs::openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => Ok(fd.into()),
        Err(_) => {
            let path = directory.join(format!(".spur-plan-{}", std::process::id()));
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}
