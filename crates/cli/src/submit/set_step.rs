//! How each option that only srun knows changes the request.
use std::time::Duration;

use model::step::{CpuBind, GpuBind, Mpi};
use model::{CpuSet, JobId};

use super::problem::Line;
use super::request::{Question, Source};
use super::set::{Argument, Done};
use super::{Problem, Request};

const CPU_BIND_HELP: &str = "\
CPU bind options:
    --cpu-bind=         which CPUs of a node tasks are bound to
        q[uiet]         says nothing of it (default)
        v[erbose]       says it as tasks start
        no[ne]          all that the step has (default)
        rank            one CPU after the other, by rank
        threads         a thread each
        cores           a core each
        sockets         a socket each
        map_cpu:<list>  CPUs by number, one for each task
        mask_cpu:<list> a mask for each task
        help            this text";

/// What binds, and whether tasks tell of it; the last that binds wins.
pub fn cpu_bind(request: &mut Request, given: &Argument) -> Done {
    let text = given.text().to_ascii_lowercase();
    let unsupported = || Problem::unsupported(&format!("cpu-bind={}", given.text()));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        if let Some((kind, list)) = rest.split_once(':').filter(|(kind, _)| !kind.contains(',')) {
            // Digits are told as they were written.
            let list = &given.text()[text.len() - list.len()..];
            request.step.cpu_bind = match kind {
                "map_cpu" | "mask_cpu" => CpuBind::Map(cpu_map(kind, list)?),
                "map_ldom" | "mask_ldom" => return Err(unsupported()),
                _ => return Err(unknown_binding(given)),
            };
            return Ok(());
        }
        let (word, after) = rest.split_once(',').unwrap_or((rest, ""));
        rest = after;
        match word {
            "" => {}
            "help" => return Err(Problem::help(CPU_BIND_HELP, 1)),
            "q" | "quiet" => request.step.tells_binding = false,
            "v" | "verbose" => request.step.tells_binding = true,
            "none" | "no" => request.step.cpu_bind = CpuBind::None,
            "threads" | "thread" => request.step.cpu_bind = CpuBind::Threads,
            "cores" | "core" => request.step.cpu_bind = CpuBind::Cores,
            "sockets" | "socket" => request.step.cpu_bind = CpuBind::Sockets,
            "rank" => request.step.cpu_bind = CpuBind::Rank,
            "ldoms" | "ldom" | "rank_ldom" | "boards" => return Err(unsupported()),
            _ => return Err(unknown_binding(given)),
        }
    }
    Ok(())
}

fn unknown_binding(given: &Argument) -> Problem {
    binding_problem(format!("unrecognized --cpu-bind argument \"{}\"", given.text()))
}

fn binding_problem(why: String) -> Problem {
    let mut problem = Problem::error(why);
    problem.lines.push(Line::Fatal("Failed to parse --cpu-bind= values.".to_string()));
    problem
}

/// `map_cpu:0,1` and `mask_cpu:0x3,0xC`; `*2` repeats one.
fn cpu_map(kind: &str, list: &str) -> Result<Vec<CpuSet>, Problem> {
    if list.is_empty() {
        return Err(binding_problem(format!("missing list for \"--cpu-bind={kind}:<list>\"")));
    }
    let mut sets = Vec::new();
    for item in list.split(',') {
        let (value, times) = item.split_once('*').unwrap_or((item, "1"));
        let set = match kind {
            "map_cpu" => value.parse().ok().map(|cpu: u32| [cpu].into_iter().collect()),
            "map_gpu" => number(value).map(|gpu| [gpu].into_iter().collect()),
            _ => CpuSet::parse_mask(&value.to_ascii_lowercase()),
        };
        let times: Option<usize> = times.parse().ok().filter(|times| (1..=65_536).contains(times));
        let (Some(set), Some(times)) = (set, times) else { return Err(bad_number(kind, value)) };
        sets.extend(std::iter::repeat_n(set, times));
    }
    Ok(sets)
}

/// Decimal, or hexadecimal after `0x`.
fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Names the first character that is no digit of its kind.
fn bad_number(kind: &str, value: &str) -> Problem {
    let (digits, radix) = match kind {
        "mask_cpu" => (value.trim_start_matches("0x").trim_start_matches("0X"), 16),
        _ => (value, 10),
    };
    let bad = digits.chars().find(|letter| !letter.is_digit(radix)).map(String::from).unwrap_or_default();
    binding_problem(format!("Failed to validate number: {digits}, the offending character is {bad}"))
}

pub fn multi_prog(request: &mut Request, _: &Argument) -> Done {
    request.step.has_programs = true;
    Ok(())
}

pub fn debugger_test(request: &mut Request, _: &Argument) -> Done {
    request.step.is_debugged = true;
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

pub fn exact(request: &mut Request, given: &Argument) -> Done {
    request.step.is_exact = given.is_on();
    Ok(())
}

/// `per_task:2`, `single:1`, `map_gpu:0,1`, `mask_gpu:0x3`, `none`, `closest`.
pub fn gpu_bind(request: &mut Request, given: &Argument) -> Done {
    let lower = given.text().to_ascii_lowercase();
    let text = lower.strip_prefix("verbose,").or_else(|| lower.strip_prefix("v,")).unwrap_or(&lower);
    let (kind, list) = text.split_once(':').unwrap_or((text, ""));
    let refuse = || Problem::error(format!("Invalid --gpu-bind argument: gpu:{text}"));
    if matches!(kind, "map_gpu" | "mask_gpu") {
        let list = given.text().split_once(':').map_or("", |(_, list)| list);
        number_list(list, kind == "mask_gpu").map_err(|why| {
            let mut problem = Problem::error(why);
            problem.lines.extend(refuse().lines);
            problem
        })?;
    }
    let count = || list.parse().ok().filter(|count| *count > 0).ok_or_else(refuse);
    request.step.gpu_bind = Some(match kind {
        // No GPU is known to be nearer to some CPUs than another.
        "none" | "closest" if list.is_empty() => GpuBind::All,
        "per_task" => GpuBind::PerTask(count()?),
        "single" if list.is_empty() => GpuBind::Single(1),
        "single" => GpuBind::Single(count()?),
        "map_gpu" => GpuBind::Map(cpu_map("map_gpu", list).map_err(|_| refuse())?),
        "mask_gpu" => GpuBind::Map(cpu_map("mask_gpu", list).map_err(|_| refuse())?),
        _ => return Err(refuse()),
    });
    request.step.tells_gpus = text.len() < lower.len();
    request.spec.gpu_bind_words = lower;
    Ok(())
}

/// Numbers, in hexadecimal too, each with how often it counts; what Slurm says of the first sign that is none of that.
fn number_list(list: &str, is_mask: bool) -> Result<(), String> {
    for item in list.split(',') {
        let (value, _) = item.split_once('*').unwrap_or((item, ""));
        let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"));
        let radix = if is_mask || digits.is_some() { 16 } else { 10 };
        if let Some(sign) = digits.unwrap_or(value).chars().find(|sign| !sign.is_digit(radix)) {
            return Err(format!("Failed to validate {value}, offending character is {sign}"));
        }
    }
    Ok(())
}

/// `[type=]value[,type=value][,verbose]`: checked and shown. No GPU's clock is changed, as by Slurm without a vendor's library.
pub fn gpu_freq(request: &mut Request, given: &Argument) -> Done {
    let text = given.text().to_ascii_lowercase();
    let is_value = |value: &str| {
        matches!(value, "low" | "medium" | "highm1" | "high")
            || !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_right = |word: &str| match word.split_once('=') {
        Some(("memory", value)) => is_value(value),
        Some(_) => false,
        None => word == "verbose" || is_value(word),
    };
    if text.is_empty() || !text.split(',').all(is_right) {
        return Err(Problem::error(format!("Invalid --gpu-freq argument: gpu:{text}")));
    }
    request.spec.gpu_freq_words = text;
    Ok(())
}

/// Numbers that tune how Slurm's srun talks to its nodes; ours has nothing to tune.
pub fn launch_tuning(_: &mut Request, given: &Argument) -> Done {
    given.number().map(drop)
}

pub fn preserve_env(request: &mut Request, _: &Argument) -> Done {
    request.step.keeps_counts = true;
    Ok(())
}

pub fn task_prolog(request: &mut Request, given: &Argument) -> Done {
    request.step.task_prolog = given.caller.absolute(given.text());
    Ok(())
}

pub fn task_epilog(request: &mut Request, given: &Argument) -> Done {
    request.step.task_epilog = given.caller.absolute(given.text());
    Ok(())
}

pub fn overlap(request: &mut Request, given: &Argument) -> Done {
    request.step.overlaps = given.is_on();
    Ok(())
}

/// For a launcher that has its own idea of what to run where: beside whatever else runs, with all of the job's resources.
pub fn external_launcher(request: &mut Request, _: &Argument) -> Done {
    request.step.overlaps = true;
    Ok(())
}

pub fn het_group(request: &mut Request, argument: &Argument) -> Done {
    request.step.groups = super::components::groups(argument.value.unwrap_or_default())?;
    Ok(())
}

pub fn job_id(request: &mut Request, given: &Argument) -> Done {
    let refuse = || Problem::numeric(given.option.long, given.text());
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= i32::MAX as u32);
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (request.step.job, request.step.task) = match given.text().split_once('_') {
        Some((job, task)) if is_plain(job) && is_plain(task) && !task.is_empty() => {
            (number(job).map(JobId), Some(number(task).ok_or_else(refuse)?))
        }
        Some(_) => return Err(refuse()),
        None => (Some(JobId(given.number()?)), None),
    };
    request.step.job.map(|_| ()).ok_or_else(refuse)
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
    if given.text() == "list" {
        request.behaviour.asks.get_or_insert(Question::MpiList);
        return Ok(());
    }
    request.step.mpi = mpi_named(given.text())?;
    Ok(())
}

/// What goes by the name, if it is there.
pub fn mpi_named(name: &str) -> Result<Mpi, Problem> {
    match name {
        "none" | "" => Ok(Mpi::None),
        "pmi2" => Ok(Mpi::Pmi2),
        "pmix" | "pmix_v3" | "pmix_v4" | "pmix_v5" => match pmix::find() {
            Ok(version) if name == "pmix" || name.ends_with(&format!("_v{}", version.major)) => Ok(Mpi::Pmix),
            Ok(version) => Err(no_pmix(name, &format!("the PMIx library here is {version}"))),
            Err(why) => Err(no_pmix(name, &why)),
        },
        other => Err(unknown_mpi(other)),
    }
}

fn unknown_mpi(name: &str) -> Problem {
    let lines = [
        format!("Couldn't find the specified plugin name for mpi/{name} looking at all files"),
        format!("cannot find mpi plugin for mpi/{name}"),
        format!("MPI: Cannot create context for mpi/{name}"),
        "MPI: Unable to load any plugin".to_string(),
        format!("Invalid MPI type '{name}', --mpi=list for acceptable types"),
    ];
    Problem { lines: lines.map(Line::Error).to_vec(), code: 1 }
}

/// Slurm's words, and the reason before them.
fn no_pmix(name: &str, why: &str) -> Problem {
    let mut problem = unknown_mpi(name);
    let reason = format!("--mpi={name} cannot be used: {why}; use --mpi=pmi2, or mpirun inside the allocation");
    problem.lines.insert(0, Line::Error(reason));
    problem
}

/// What `--mpi=list` says: PMIx where the library is found.
pub fn mpi_list() -> String {
    let plain = "MPI plugin types are...\n\tnone\n\tpmi2\n";
    match pmix::find() {
        Ok(version) => format!("{plain}\tpmix\nspecific pmix plugin versions available: pmix_v{}\n", version.major),
        Err(_) => plain.to_owned(),
    }
}

pub fn prolog(request: &mut Request, given: &Argument) -> Done {
    request.step.srun_prolog = Some(given.text().to_string());
    Ok(())
}

pub fn epilog(request: &mut Request, given: &Argument) -> Done {
    request.step.srun_epilog = Some(given.text().to_string());
    Ok(())
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
