//! How the options around `srun --bcast` change the request.
use super::Request;
use super::set::{Argument, Done};
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
    request.step.broadcast.excluded = Some(given.owned());
    Ok(())
}

/// Files go to agents as they are, whatever would compress them.
pub fn compress(request: &mut Request, given: &Argument) -> Done {
    if !matches!(given.text(), "" | "lz4" | "none") {
        let complaint = format!("error: Compression type '{}' unknown, disabling compression support.", given.text());
        request.step.broadcast.complaints.push(complaint);
    }
    Ok(())
}
