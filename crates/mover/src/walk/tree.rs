//! One directory with all that is below it. Whoever walks leaves directories to others that have nothing to do: asking a file
//! server for the next answer takes longer than thinking about the last.
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::batches::Batches;
use super::{Ground, Outcome, Walk};
use crate::attributes;
use crate::fence;
use crate::order::Links;
use crate::plan::{Directory, Follow, Item, ItemKind, Record, Where};
use crate::trouble::{Side, Trouble, shown};

/// Each level costs a stack frame (`STACK_BYTES`), and what is this deep was an accident.
const DEPTH_MAX: usize = 2000;
/// Each level above costs a descriptor; below, directories are opened by their way from the anchor.
const HELD_MAX: usize = 100;
/// Of whoever walks.
pub const STACK_BYTES: usize = 20 << 20;

/// A tree from one of its directories on.
struct Tree {
    head: Arc<OwnedFd>,
    keeps_own: bool,
    index: u32,
    links: Links,
    follow: Follow,
    source: Where,
    target: Where,
    ancestors: Vec<(u64, u64)>,
}

/// Walkers that wait for directories, and directories that wait for them.
#[derive(Default)]
pub struct Helpers {
    open: Mutex<Open>,
    changed: Condvar,
    /// How many could begin at once.
    n_idle: AtomicUsize,
}

#[derive(Default)]
struct Open {
    trees: VecDeque<Tree>,
    n_busy: usize,
    is_over: bool,
}

impl Helpers {
    fn leave(&self, tree: Tree) {
        self.open.lock().expect("no panic while held").trees.push_back(tree);
        self.n_idle.fetch_update(Relaxed, Relaxed, |n_idle| n_idle.checked_sub(1)).ok();
        self.changed.notify_one();
    }

    fn next(&self) -> Option<Tree> {
        let mut open = self.open.lock().expect("no panic while held");
        self.n_idle.fetch_add(1, Relaxed);
        loop {
            if let Some(tree) = open.trees.pop_front() {
                open.n_busy += 1;
                return Some(tree);
            }
            if open.is_over {
                return None;
            }
            open = self.changed.wait(open).expect("no panic while held");
        }
    }

    fn done(&self) {
        self.open.lock().expect("no panic while held").n_busy -= 1;
        self.changed.notify_all();
    }

    /// When nothing is left to walk; then they may go.
    fn wait(&self) {
        let mut open = self.open.lock().expect("no panic while held");
        while !open.trees.is_empty() || open.n_busy > 0 {
            open = self.changed.wait(open).expect("no panic while held");
        }
    }

    pub fn dismiss(&self) {
        self.open.lock().expect("no panic while held").is_over = true;
        self.changed.notify_all();
    }
}

/// What a helper does until it is dismissed.
pub fn help(ground: &Ground, helpers: &Helpers) {
    while let Some(mut tree) = helpers.next() {
        let mut walker = Walker { ground, batches: &mut Batches::new(ground), helpers };
        let opened = walker.open_again(&tree);
        let walked = opened.and_then(|directory| walker.directory(&mut tree, directory));
        if let Err(trouble) = walked.and_then(|()| walker.batches.flush())
            && !ground.stop.is_set()
        {
            ground.counters.failed_in(&trouble, &tree.target);
        }
        helpers.done();
    }
}

/// The whole of it, when it returns.
pub fn walk(walk: &mut Walk, index: u32, links: Links, source: Where, target: Where, keeps_own: bool) -> Outcome {
    let ground = walk.ground;
    let head = ground.fences.directory(&source).map_err(|errno| source_trouble(ground, errno, &source, b""))?;
    let head = Arc::new(head);
    let follow = if links == Links::Follow { Follow::Within } else { Follow::Never };
    let mut tree = Tree { head, keeps_own, index, links, follow, source, target, ancestors: Vec::new() };
    let mut walker = Walker { ground, batches: &mut walk.batches, helpers: walk.helpers };
    let opened = walker.open_again(&tree);
    let walked = opened.and_then(|directory| walker.directory(&mut tree, directory));
    walk.helpers.wait();
    walked
}

struct Walker<'a, 's, 'b> {
    ground: &'s Ground<'a>,
    batches: &'b mut Batches<'a, 's>,
    helpers: &'s Helpers,
}

fn source_trouble(ground: &Ground, errno: Errno, source: &Where, name: &[u8]) -> Trouble {
    Trouble::of(errno, Side::Source, "read", &ground.fences.path_of(source, name))
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Walker<'_, '_, '_> {
    /// Its files first, all in a row, then its directories: so that batches are full.
    fn directory(&mut self, tree: &mut Tree, directory: OwnedFd) -> Outcome {
        let ground = self.ground;
        if ground.stop.is_set() {
            return Err(Trouble::cancelled());
        }
        let trouble = |errno, tree: &Tree| source_trouble(ground, errno, &tree.source, b"");
        let stat = fs::fstat(&directory).map_err(|errno| trouble(errno, tree))?;
        if tree.ancestors.len() >= DEPTH_MAX {
            let path = ground.fences.path_of(&tree.source, b"");
            return Err(Trouble::permanent(format!("{} is more than {DEPTH_MAX} levels deep", shown(&path))));
        }
        if tree.follow != Follow::Never && tree.ancestors.contains(&(stat.st_dev, stat.st_ino)) {
            let path = ground.fences.path_of(&tree.source, b"");
            return Err(Trouble::permanent(format!("{}: a symbolic link leads back to above it", shown(&path))));
        }
        self.batches.start(tree.index, tree.source.clone(), tree.target.clone(), tree.follow)?;
        let mut entries = Dir::read_from(&directory).map_err(|errno| trouble(errno, tree))?;
        let mut below = Vec::new();
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(|errno| trouble(errno, tree))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            match self.entry(tree, &directory, name, entry.file_type()) {
                Ok(true) => below.push(name.to_vec()),
                Ok(false) => {}
                Err(trouble) if ground.stop.is_set() => return Err(trouble),
                Err(trouble) => ground.counters.failed_in(&trouble, &tree.target),
            }
        }
        drop(entries);
        self.batches.flush()?;
        let attributes = match ground.order.transfers[tree.index as usize].with_attributes {
            true => attributes::read(&directory).map_err(|errno| trouble(errno, tree))?,
            false => Vec::new(),
        };
        // Before any that is below it: they are finished the other way round.
        self.batches.write(&Record::Directory(Directory {
            transfer: tree.index,
            target: tree.target.clone(),
            mode: stat.st_mode & 0o1777,
            mtime_secs: stat.st_mtime,
            mtime_nanos: stat.st_mtime_nsec as u32,
            keeps_own: tree.keeps_own && tree.ancestors.is_empty(),
            attributes,
        }))?;
        let held = (tree.ancestors.len() < HELD_MAX).then_some(directory);
        tree.ancestors.push((stat.st_dev, stat.st_ino));
        let n_below = below.len();
        for (number, name) in below.into_iter().enumerate() {
            // The last is no less work than the waiting for somebody who does it.
            let done = match number + 1 < n_below && self.helpers.n_idle.load(Relaxed) > 0 {
                true => {
                    self.helpers.leave(tree.below(&name));
                    Ok(())
                }
                false => self.below(tree, held.as_ref(), &name),
            };
            match done {
                Ok(()) => {}
                Err(trouble) if ground.stop.is_set() => return Err(trouble),
                Err(trouble) => ground.counters.failed_in(&trouble, &tree.target),
            }
        }
        tree.ancestors.pop();
        Ok(())
    }

    fn below(&mut self, tree: &mut Tree, held: Option<&OwnedFd>, name: &[u8]) -> Outcome {
        let lengths = (tree.source.below.len(), tree.target.below.len());
        push(&mut tree.source.below, name);
        push(&mut tree.target.below, name);
        let opened = match held.filter(|_| tree.follow != Follow::Within) {
            Some(directory) => {
                fs::openat(directory, OsStr::from_bytes(name), DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
                    .map_err(|errno| source_trouble(self.ground, errno, &tree.source, b""))
            }
            None => self.open_again(tree),
        };
        let done = opened.and_then(|opened| self.directory(tree, opened));
        tree.source.below.truncate(lengths.0);
        tree.target.below.truncate(lengths.1);
        done
    }

    /// By its way, for want of a descriptor of what it is in.
    fn open_again(&self, tree: &Tree) -> Result<OwnedFd, Trouble> {
        let below = if tree.source.below.is_empty() { b"." } else { &tree.source.below[..] };
        let opened = match tree.follow {
            Follow::Within => fence::open_followed(&tree.head, below, DIRECTORY),
            _ => self.ground.fences.directory(&tree.source),
        };
        opened.map_err(|errno| source_trouble(self.ground, errno, &tree.source, b""))
    }

    /// Says whether it is a directory to go into.
    fn entry(&mut self, tree: &Tree, directory: impl AsFd, name: &[u8], kind: FileType) -> Result<bool, Trouble> {
        if kind == FileType::Directory {
            return Ok(true);
        }
        let ground = self.ground;
        let trouble = |errno| source_trouble(ground, errno, &tree.source, name);
        let path = || shown(&ground.fences.path_of(&tree.source, name));
        let stat = fs::statat(&directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
        let mut stat = stat.map_err(trouble)?;
        let mut kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            match tree.links {
                Links::Preserve => {
                    let item = Item { kind: ItemKind::Link, source: name.to_vec(), destination: vec![], size_bytes: 0 };
                    self.batches.add(item, &stat)?;
                    return Ok(false);
                }
                Links::Skip => return Ok(false),
                Links::Fail => return Err(Trouble::permanent(format!("{} is a symbolic link", path()))),
                Links::Follow => {
                    let mut path = tree.source.below.clone();
                    push(&mut path, name);
                    let opened = fence::open_followed(&tree.head, &path, OFlags::PATH);
                    stat = opened.and_then(fs::fstat).map_err(trouble)?;
                    kind = FileType::from_raw_mode(stat.st_mode);
                }
            }
        }
        match kind {
            FileType::Directory => Ok(true),
            FileType::RegularFile => {
                let size_bytes = stat.st_size as u64;
                let item = Item { kind: ItemKind::File, source: name.to_vec(), destination: vec![], size_bytes };
                self.batches.add(item, &stat)?;
                Ok(false)
            }
            _ => {
                ground.counters.files_skipped.fetch_add(1, Relaxed);
                ground.counters.warn(format!("{} is neither a file nor a directory: not copied", path()));
                Ok(false)
            }
        }
    }
}

impl Tree {
    fn below(&self, name: &[u8]) -> Tree {
        let (mut source, mut target) = (self.source.clone(), self.target.clone());
        push(&mut source.below, name);
        push(&mut target.below, name);
        Tree { head: self.head.clone(), source, target, ancestors: self.ancestors.clone(), ..*self }
    }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
