//! How the options around `srun --bcast` change the request.
use super::set::{Argument, Done};
use super::{Problem, Request};
use crate::delivery::libraries;

pub fn bcast(request: &mut Request, given: &Argument) -> Done {
    request.step.broadcast.dest = Some(given.owned());
    Ok(())
}

pub fn send_libs(request: &mut Request, given: &Argument) -> Done {
    match libraries::is_wanted(given.text()) {
        Some(is_wanted) => request.step.broadcast.with_libraries = is_wanted,
        None => return Err(given.invalid()),
    }
    Ok(())
}

pub fn exclude(request: &mut Request, given: &Argument) -> Done {
    match libraries::excluded(given.value) {
        Ok(_) => request.step.broadcast.excluded = Some(given.owned()),
        Err(path) => return Err(Problem::error(format!("--bcast-exclude={path}: not an absolute path"))),
    }
    Ok(())
}

/// Files go to agents as they are, whatever would compress them.
pub fn compress(_: &mut Request, given: &Argument) -> Done {
    match given.text() {
        "" | "lz4" | "none" => Ok(()),
        other => Err(Problem::error(format!("Compression type '{other}' unknown; it is lz4 or none"))),
    }
}
