//! A manifest that the user brings, as `sha256sum` writes it: every file it names must have arrived as it says.
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use ring::digest::{Context, SHA256};
use rustix::fs::{self, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::copy::Work;
use crate::fence;
use crate::list;
use crate::order::{Kind, Place, Transfer};
use crate::trouble::{Side, Trouble, shown};

const BLOCK_BYTES: usize = 256 << 10;

/// After everything is copied: what is there, not what was read, is compared.
pub fn check(work: &Work) {
    for transfer in &work.order.transfers {
        if !transfer.manifest.is_empty()
            && let Err(trouble) = check_transfer(work, transfer)
        {
            work.counters.failed(&trouble);
        }
    }
}

fn check_transfer(work: &Work, transfer: &Transfer) -> Result<(), Trouble> {
    let path = std::path::Path::new(&transfer.manifest);
    let trouble = |errno| Trouble::of(errno, Side::Source, "open", path);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = fs::openat(CWD, path, flags, Mode::empty()).map_err(trouble)?;
    if FileType::from_raw_mode(fs::fstat(&opened).map_err(trouble)?.st_mode) != FileType::RegularFile {
        return Err(Trouble::permanent(format!("{} is not a regular file", shown(path))));
    }
    let lines = Mutex::new(BufReader::new(File::from(opened)).split(b'\n').enumerate());
    let n_named = std::sync::atomic::AtomicU64::new(0);
    let labour = || {
        let mut buffer = vec![0; BLOCK_BYTES];
        while !work.stop.is_set() {
            let next = lines.lock().expect("no panic while held").next();
            let Some((index, line)) = next else { return };
            let checked = line.map_err(|error| error.to_string()).and_then(|line| match parse(&line)? {
                None => Ok(()),
                Some((sum, name)) => {
                    let Some(place) = place(work, transfer, &name) else { return Ok(()) };
                    n_named.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    compare(work, &place, &name, &sum, &mut buffer)
                }
            });
            if let Err(why) = checked {
                work.counters.failed(&Trouble::permanent(format!("{} line {}: {why}", shown(path), index + 1)));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..work.n_workers() {
            // One less than wished for is slower, not wrong.
            let _ = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, labour);
        }
        labour();
    });
    if n_named.into_inner() == 0 && !work.stop.is_set() {
        return Err(Trouble::permanent(format!("{} names nothing of {}", shown(path), transfer.source.path)));
    }
    Ok(())
}

/// `<64 hexadecimal digits>  name`, or ` *name`; a leading backslash says that the name is written with escapes.
fn parse(line: &[u8]) -> Result<Option<([u8; 32], String)>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "is not valid UTF-8")?.trim_end_matches('\r');
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    const WRONG: &str = "is not as sha256sum writes it";
    let (is_escaped, line) = line.strip_prefix('\\').map_or((false, line), |rest| (true, rest));
    let (digits, rest) = line.split_at_checked(64).ok_or(WRONG)?;
    let name = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(" *")).ok_or(WRONG)?;
    let mut sum = [0; 32];
    for (byte, pair) in sum.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| WRONG)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| WRONG)?;
    }
    let name = if is_escaped { unescaped(name) } else { name.to_owned() };
    let name = name.trim_start_matches("./").to_owned();
    if name.is_empty() || !list::is_contained(&name) {
        return Err(format!("{name} is not below what is staged"));
    }
    Ok(Some((sum, name)))
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                other => other.unwrap_or('\\'),
            },
            other => other,
        });
    }
    out
}

/// Where the file must be now; none if it is none of a single file's.
fn place(work: &Work, transfer: &Transfer, name: &str) -> Option<Place> {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let destination = &transfer.destination;
    let joined = |name: &str| match destination.path.trim_end_matches('/') {
        "" => name.to_owned(),
        base => format!("{base}/{name}"),
    };
    let path = match transfer.kind {
        Kind::Directory | Kind::List => joined(name),
        Kind::File if last(name) != last(&transfer.source.path) => return None,
        // It was put into a directory under its own name, or has got another.
        Kind::File if is_directory(work, destination) => joined(&last(name)),
        Kind::File => destination.path.clone(),
    };
    Some(Place { fence: destination.fence, path })
}

fn compare(work: &Work, place: &Place, name: &str, sum: &[u8; 32], buffer: &mut [u8]) -> Result<(), String> {
    let file = open(work, place).map_err(|errno| match errno {
        Errno::NOENT => format!("{name} has not been staged"),
        errno => format!("cannot open {name}: {}", crate::trouble::words(errno)),
    })?;
    let mut context = Context::new(&SHA256);
    let mut at = 0;
    loop {
        if work.stop.is_set() {
            return Ok(());
        }
        match rustix::io::pread(&file, &mut *buffer, at) {
            Ok(0) => break,
            Ok(length) => {
                context.update(&buffer[..length]);
                at += length as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(format!("cannot read {name}: {}", crate::trouble::words(errno))),
        }
    }
    if context.finish().as_ref() != sum {
        return Err(format!("checksum mismatch: {name}"));
    }
    Ok(())
}

fn is_directory(work: &Work, place: &Place) -> bool {
    place.path.is_empty() || place.path.ends_with('/') || work.fences.directory(&fence::whole(place)).is_ok()
}

fn open(work: &Work, place: &Place) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let (directory, name) = fence::split(place);
    let directory = work.fences.directory(&directory)?;
    fs::openat(directory, OsStr::from_bytes(&name), flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_sha256sum() {
        let digits = "0123456789abcdef".repeat(4);
        let read = |line: String| parse(line.as_bytes()).map(|found| found.map(|(_, name)| name));
        assert_eq!(read(format!("{digits}  d1/f 2")), Ok(Some("d1/f 2".into())));
        assert_eq!(read(format!("{digits} *./f")), Ok(Some("f".into())));
        assert_eq!(read(format!("\\{digits}  two\\nlines")), Ok(Some("two\nlines".into())));
        assert_eq!(read(format!("\\{digits}  back\\\\nslash")), Ok(Some("back\\nslash".into())));
        assert_eq!(read(String::new()), Ok(None));
        for wrong in [format!("{digits}  ../f"), format!("{digits}  /etc/passwd"), format!("{digits} f"), "x  f".into()]
        {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
