//! Extended attributes and access lists, for those who ask for them: what a user may set, and nothing that gives rights.
use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr};
use rustix::io::{Errno, Result};

/// One name and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// Those that are copied; none where the file system has no such thing.
pub fn read(file: impl AsFd) -> Result<Vec<Attribute>> {
    let file = file.as_fd();
    let names = match names(file) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_copied(name)) {
        let mut value = vec![0; fgetxattr_query(file, name)?];
        match fgetxattr(file, name, value.as_mut_slice()) {
            Ok(length) => value.truncate(length),
            // Taken away, or grown, in between: the file is seen to have changed.
            Err(Errno::NODATA | Errno::RANGE) => continue,
            Err(errno) => return Err(errno),
        }
        found.push((name.to_vec(), value));
    }
    Ok(found)
}

fn names(file: impl AsFd) -> Result<Vec<u8>> {
    let file = file.as_fd();
    loop {
        let mut names = vec![0; flistxattr_query(file)?];
        match flistxattr(file, names.as_mut_slice()) {
            Ok(length) => {
                names.truncate(length);
                return Ok(names);
            }
            Err(Errno::RANGE) => continue,
            Err(errno) => return Err(errno),
        }
    }
}

fn is_copied(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name == b"system.posix_acl_access" || name == b"system.posix_acl_default"
}

pub fn write(file: impl AsFd, attributes: &[Attribute]) -> Result<()> {
    let file = file.as_fd();
    attributes.iter().try_for_each(|(name, value)| fsetxattr(file, name.as_slice(), value, XattrFlags::empty()))
}
