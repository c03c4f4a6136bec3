//! Options that tune what this cluster does not have, and which Slurm without the plugins for them lets pass as well: read,
//! checked, and without effect; and `--tres-per-task`, which says in one what other options say apart.
use model::time::Span;
use model::{duration, gres, license};

use super::mem_bind::MemBind;
use super::set::{Argument, Done};
use super::{Problem, Request};

/// `--gres-flags`: no unit is known to be nearer to some CPUs, so there is nothing to keep or to let go of.
pub fn gres_flags(_: &mut Request, given: &Argument) -> Done {
    let known = [
        "allow-task-sharing",
        "disable-binding",
        "enforce-binding",
        "multiple-tasks-per-sharing",
        "one-task-per-sharing",
    ];
    words(given, |word| known.contains(&word))
}

const MEM_BIND_HELP: &str = "\
Memory bind options:
    --mem-bind=         which memory tasks are bound to; checked and told to them, no memory is bound
        q[uiet]         says nothing of it (default)
        v[erbose]       says it as tasks start
        no[ne]          none in particular (default)
        rank            by the task's rank
        local           the memory of its own processor
        map_mem:<list>  one for each task
        mask_mem:<list> a mask for each task
        prefer          one that is first tried, not kept to
        [no]sort        whether free pages are sorted first
        help            this text";

/// `--mem-bind`
pub fn mem_bind(request: &mut Request, given: &Argument) -> Done {
    if given.text() == "help" {
        return Err(Problem::help(MEM_BIND_HELP, 255));
    }
    request.mem_bind = MemBind::parse(given.text());
    if request.mem_bind.is_some() {
        return Ok(());
    }
    let mut problem = Problem::error(format!("unrecognized --mem-bind argument \"{}\"", given.text()));
    problem.lines.push(super::problem::Line::Fatal("Failed to parse --mem-bind= values.".to_string()));
    Err(problem)
}

/// `--network`: for switches that are set up by a plugin; here they are not.
pub fn network(_: &mut Request, _: &Argument) -> Done {
    Ok(())
}

/// `--acctg-freq`: what is used is the kernel's own sum, taken when processes end, whatever the rhythm of looking. The site may refuse
/// to have it looked at less often.
pub fn acctg_freq(request: &mut Request, given: &Argument) -> Done {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let kinds = ["energy", "filesystem", "network", "task"];
    words(given, |word| match word.split_once('=') {
        Some((kind, secs)) => kinds.contains(&kind) && is_number(secs),
        None => is_number(word),
    })?;
    let text = given.text().to_ascii_lowercase();
    let mut of_tasks = text.split(',').map(str::trim).filter_map(|word| match word.split_once('=') {
        Some(("task", secs)) => Some(secs),
        Some(_) => None,
        None => Some(word),
    });
    request.spec.accounting_secs = of_tasks.next_back().and_then(|secs| secs.parse().ok());
    Ok(())
}

fn words(given: &Argument, is_known: impl Fn(&str) -> bool) -> Done {
    let text = given.text().to_ascii_lowercase();
    if text.split(',').all(|word| is_known(word.trim())) { Ok(()) } else { Err(given.invalid()) }
}

/// `cpu=2,gres/gpu=1`, `cpu:2,gres/gpu:a100:1`, `gres/gpu,license/a:2`
pub fn tres_per_task(request: &mut Request, given: &Argument) -> Done {
    let mut units = Vec::new();
    request.task_licenses.clear();
    for item in given.text().split(',') {
        let wrong = || Problem::error(format!("Invalid --tres-per-task specification: {item}"));
        let item = item.trim();
        // Space is for the whole job.
        if item.split(['=', ':', '/']).next() == Some("bb") {
            return Err(Problem::fatal("Invalid TRES for --tres-per-task: bb"));
        }
        if let Some(named) = item.strip_prefix("license/") {
            let list =
                license::parse_list(named).filter(|list| list.len() == 1 && !named.contains('/')).ok_or_else(wrong)?;
            request.task_licenses.extend(list);
        } else if let Some(named) = item.strip_prefix("gres/").or_else(|| item.strip_prefix("gres:")) {
            units.extend(gres::parse_list(&named.replace('=', ":")).map_err(|_| wrong())?);
        } else {
            let count = item.strip_prefix("cpu").and_then(|rest| rest.strip_prefix(['=', ':']));
            let count = count.and_then(|count| count.parse().ok()).filter(|count| *count > 0);
            request.spec.size.cpus_per_task = Some(count.ok_or_else(wrong)?);
        }
    }
    if !units.is_empty() {
        request.gpus.per_task = Some(units);
    }
    Ok(())
}

/// `--oom-kill-step[=0|1]`: a task without memory ends alone.
pub fn oom_kill_step(_: &mut Request, given: &Argument) -> Done {
    match given.value {
        Some("0") => Ok(()),
        None | Some("1") => Err(Problem::unsupported("oom-kill-step=1")),
        Some(_) => Err(given.invalid()),
    }
}

/// `--stepmgr`: whoever keeps the book of a job's steps, they are made alike.
pub fn step_manager(_: &mut Request, _: &Argument) -> Done {
    Ok(())
}

/// `--treewidth`: nobody relays messages.
pub fn tree_width(_: &mut Request, given: &Argument) -> Done {
    match given.text().eq_ignore_ascii_case("off") || given.text().parse::<u16>().is_ok() {
        true => Ok(()),
        false => Err(given.invalid()),
    }
}

/// Nodes are never rebooted to have a feature, so nothing waits for it.
pub fn delay_boot(request: &mut Request, given: &Argument) -> Done {
    let wait = duration::parse_limit(given.text()).and_then(duration::Limit::seconds);
    request.spec.delay_boot = Span::from_secs(wait.ok_or_else(|| given.invalid())?);
    Ok(())
}
