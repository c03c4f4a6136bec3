//! Keeping a cgroup of version 2 from device files: the kernel asks a small program, attached to the cgroup, about each use.
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::sys::check;

/// Numbers of the system call and of its kinds of programs, as the kernel's header has them.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_DETACH: libc::c_int = 9;
const CGROUP_DEVICE_PROGRAM: u32 = 15;
const CGROUP_DEVICE: u32 = 6;
const BLOCK: i32 = 1;
const CHARACTER: i32 = 2;

/// One instruction of the kernel's machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Instruction {
    code: u8,
    /// Target, and source in the upper half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

#[repr(C)]
struct Load {
    kind: u32,
    n_instructions: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
struct Attach {
    cgroup: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Kind, major and minor number of a device file.
type Device = (i32, i32, i32);

/// Whatever is in the cgroup cannot use these files; what was denied before is forgotten.
pub fn deny(cgroup: &Path, files: &[String]) -> io::Result<()> {
    let directory = File::open(cgroup)?;
    let devices: Vec<Device> = files.iter().filter_map(|file| device(Path::new(file))).collect();
    let program = load(&instructions(&devices))?;
    let attach = Attach {
        cgroup: directory.as_raw_fd() as u32,
        program: program.as_raw_fd() as u32,
        kind: CGROUP_DEVICE,
        // One program a cgroup: a new one takes the place of the old.
        flags: 0,
    };
    call(PROG_ATTACH, &attach).map(drop)
}

/// Everything may be used again. Without a program there is nothing to do, and that is fine.
pub fn allow_all(cgroup: &Path) {
    let Ok(directory) = File::open(cgroup) else { return };
    let attach = Attach { cgroup: directory.as_raw_fd() as u32, program: 0, kind: CGROUP_DEVICE, flags: 0 };
    let _ = call(PROG_DETACH, &attach);
}

fn device(file: &Path) -> Option<Device> {
    let metadata = fs::metadata(file).ok()?;
    let kind = if metadata.file_type().is_block_device() { BLOCK } else { CHARACTER };
    Some((kind, libc::major(metadata.rdev()) as i32, libc::minor(metadata.rdev()) as i32))
}

/// Reads kind, major and minor of what is to be used; zero for those that are listed, one for all others.
fn instructions(devices: &[Device]) -> Vec<Instruction> {
    let make = |code, target: u8, source: u8, offset, immediate| Instruction {
        code,
        registers: target | source << 4,
        offset,
        immediate,
    };
    let read = |target, offset| make(0x61, target, 1, offset, 0);
    let set = |value| make(0xb7, 0, 0, 0, value);
    let end = make(0x95, 0, 0, 0, 0);
    // The upper half of the first word says what is done with the device.
    let mut program = vec![read(2, 0), make(0x54, 2, 0, 0, 0xffff), read(3, 4), read(4, 8)];
    for (kind, major, minor) in devices {
        let skip = |register, value, offset| make(0x55, register, 0, offset, value);
        program.extend([skip(2, *kind, 4), skip(3, *major, 3), skip(4, *minor, 2), set(0), end]);
    }
    program.extend([set(1), end]);
    program
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let load = Load {
        kind: CGROUP_DEVICE_PROGRAM,
        n_instructions: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    let fd = call(PROG_LOAD, &load)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are as large as is said, and what they point to outlives the call.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *const T, size_of::<T>()) as libc::c_int })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_own_test_and_the_rest_passes() {
        let program = instructions(&[(CHARACTER, 195, 1), (BLOCK, 8, 0)]);
        assert_eq!(program.len(), 4 + 2 * 5 + 2);
        // A test that fails leads to the next device: past the two others, the answer and the end.
        assert_eq!((program[4].offset, program[4].immediate), (4, CHARACTER));
        assert_eq!((program[6].offset, program[6].immediate), (2, 1));
        assert_eq!((program[14].immediate, program[15].code), (1, 0x95));
    }

    #[test]
    fn the_kernel_keeps_a_cgroup_from_a_device() {
        let name = format!("spur-devices-{}", std::process::id());
        let Some(mount) = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .map(Path::new)
            .into_iter()
            .find(|mount| mount.join("cgroup.controllers").exists())
        else {
            return eprintln!("SKIPPED: no unified hierarchy here");
        };
        let cgroup = mount.join(name);
        if fs::create_dir(&cgroup).is_err() {
            return eprintln!("SKIPPED: cgroups can be made by root only");
        }
        let read = |file: &str| {
            let line = format!("echo $$ >{}/cgroup.procs; head -c 1 {file}", cgroup.display());
            std::process::Command::new("sh").args(["-c", &line]).output().unwrap().stdout.len()
        };
        let outcome = deny(&cgroup, &["/dev/zero".into()]);
        let denied = (read("/dev/zero"), read("/dev/urandom"));
        // A later run of the same cgroup has its own list, or none.
        let other = deny(&cgroup, &["/dev/urandom".into(), "/nosuch".into()]);
        let replaced = (read("/dev/zero"), read("/dev/urandom"));
        allow_all(&cgroup);
        let allowed = (read("/dev/zero"), read("/dev/urandom"));
        fs::remove_dir(&cgroup).unwrap();
        if let Err(error) = outcome {
            return eprintln!("SKIPPED: the kernel takes no such programs: {error}");
        }
        assert_eq!((denied, replaced, allowed), ((0, 1), (1, 0), (1, 1)), "{other:?}");
    }
}
