//! How each option that only srun knows changes the request.
use std::time::Duration;

use model::JobId;

use super::request::{Question, Source};
use super::set::{Argument, Done};
use super::{Problem, Request};

/// Tasks are not bound to CPUs, so only asking for that works.
pub fn cpu_bind(_: &mut Request, given: &Argument) -> Done {
    for word in given.text().to_ascii_lowercase().split(',') {
        match word {
            "" | "q" | "quiet" | "v" | "verbose" | "none" | "no" => {}
            _ => return Err(Problem::unsupported(&format!("cpu-bind={}", given.text()))),
        }
    }
    Ok(())
}

pub fn disable_status(request: &mut Request, given: &Argument) -> Done {
    request.step.ignores_status_key = given.is_on();
    Ok(())
}

pub fn quit_on_interrupt(request: &mut Request, _: &Argument) -> Done {
    request.step.quits_on_interrupt = true;
    Ok(())
}

/// A step never gets more than it asks for, so there is nothing to change.
pub fn exact(_: &mut Request, _: &Argument) -> Done {
    Ok(())
}

pub fn overlap(request: &mut Request, given: &Argument) -> Done {
    request.step.overlaps = given.is_on();
    Ok(())
}

pub fn job_id(request: &mut Request, given: &Argument) -> Done {
    request.step.job = Some(JobId(given.number()?));
    Ok(())
}

pub fn kill_on_bad_exit(request: &mut Request, given: &Argument) -> Done {
    request.step.kill_on_bad_exit = Some(match given.value {
        None => true,
        Some(_) => given.number()? != 0,
    });
    Ok(())
}

pub fn label(request: &mut Request, given: &Argument) -> Done {
    request.step.labels = given.is_on();
    Ok(())
}

pub fn mpi(request: &mut Request, given: &Argument) -> Done {
    match given.text() {
        "none" => Ok(()),
        "list" => {
            request.behaviour.asks.get_or_insert(Question::MpiList);
            Ok(())
        }
        other => Err(Problem::error(format!("Invalid MPI type '{other}', --mpi=list for acceptable types"))),
    }
}

/// `none` is what happens anyway.
pub fn prolog(_: &mut Request, given: &Argument) -> Done {
    only_none(given)
}

pub fn epilog(_: &mut Request, given: &Argument) -> Done {
    only_none(given)
}

fn only_none(given: &Argument) -> Done {
    if given.text().eq_ignore_ascii_case("none") { Ok(()) } else { Err(Problem::unsupported(given.option.long)) }
}

pub fn pty(request: &mut Request, _: &Argument) -> Done {
    request.step.pty = true;
    Ok(())
}

pub fn relative(request: &mut Request, given: &Argument) -> Done {
    request.step.relative = Some(given.number()?);
    Ok(())
}

pub fn unbuffered(request: &mut Request, given: &Argument) -> Done {
    request.step.unbuffered = given.is_on();
    Ok(())
}

pub fn wait(request: &mut Request, given: &Argument) -> Done {
    if given.source == Source::Environment && given.text().is_empty() {
        return Ok(());
    }
    let secs = given.number()?;
    request.step.wait = (secs > 0).then(|| Duration::from_secs(secs.into()));
    Ok(())
}
