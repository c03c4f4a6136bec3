//! How each option about the size of a job, and where it may run, changes the request.
use model::gres::{self, GresRequest};
use model::spec::{Memory, Sharing};
use model::{NodeName, Reject, feature_sets, features, hostlist, size};

use super::request::Source;
use super::set::{Argument, Done};
use super::{Problem, Request};

pub fn constraint(request: &mut Request, given: &Argument) -> Done {
    let text = given.text();
    if text.is_empty() {
        let size = &mut request.spec.size;
        (size.constraint, size.feature_sets, size.features) = Default::default();
        return Ok(());
    }
    let refuse = |_| Problem::refused(Reject::BadConstraint(text.to_string()));
    let wish = feature_sets::parse(text).map_err(refuse)?;
    let size = &mut request.spec.size;
    size.constraint = wish.constraint;
    size.feature_sets = wish.sets;
    size.features = text.to_string();
    Ok(())
}

pub fn contiguous(request: &mut Request, _: &Argument) -> Done {
    request.spec.size.contiguous = true;
    Ok(())
}

pub fn cpus_per_task(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.cpus_per_task = Some(given.count()?);
    Ok(())
}

pub fn exclude(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.excluded = hosts(given)?;
    Ok(())
}

pub fn nodelist(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.nodes = hosts(given)?;
    Ok(())
}

fn hosts(given: &Argument) -> Result<Vec<NodeName>, Problem> {
    if given.text().contains('/') {
        let text = node_file(given)?;
        return expanded(&text);
    }
    expanded(given.text())
}

fn expanded(list: &str) -> Result<Vec<NodeName>, Problem> {
    // Which nodes a unit of the network has, the controller knows.
    let unit = |name: &str, argument: &str| Ok(vec![format!("{name}{{{argument}}}")]);
    let refuse = |_| Problem::refused(Reject::NoSuchNode(list.to_string()));
    let names = hostlist::expand_with(list, unit).map_err(refuse)?;
    Ok(names.into_iter().map(NodeName::from).collect())
}

/// The names in a file, with commas between them.
fn node_file(given: &Argument) -> Result<String, Problem> {
    let name = given.text();
    let text = std::fs::read_to_string(given.caller.absolute(name)).map_err(|error| {
        let why = if error.kind() == std::io::ErrorKind::NotFound {
            "No such file or directory".to_string()
        } else {
            error.to_string()
        };
        Problem::error(format!("slurm_allocate_resources error opening file {name}, {why}"))
    })?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(","))
}

pub fn nodefile(request: &mut Request, given: &Argument) -> Done {
    let text = node_file(given).map_err(|mut problem| {
        problem.lines.push(super::problem::Line::Error("Invalid --nodefile node file".to_string()));
        Problem { code: 255, ..problem }
    })?;
    request.spec.size.nodes = expanded(&text)?;
    Ok(())
}

/// Features that nodes had better have.
pub fn prefer(request: &mut Request, given: &Argument) -> Done {
    let refuse = |_| Problem::refused(Reject::BadConstraint(given.owned()));
    request.spec.size.preference = Some(features::parse(given.text()).map_err(refuse)?);
    request.spec.size.preferred = given.owned();
    Ok(())
}

pub fn tasks_per_gpu(request: &mut Request, given: &Argument) -> Done {
    request.gpus.n_tasks_each = Some(given.count()?);
    Ok(())
}

pub fn cpus_per_gpu(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.cpus_per_gpu = Some(given.count()?);
    Ok(())
}

pub fn memory_per_gpu(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.memory = match megabytes(given)? {
        0 => Memory::WholeNode,
        megabytes => Memory::PerGpuMb(megabytes),
    };
    Ok(())
}

pub fn exclusive(request: &mut Request, given: &Argument) -> Done {
    match given.value {
        None | Some("" | "exclusive") => request.spec.size.sharing = Sharing::WholeNodes,
        Some("user") => request.spec.size.sharing = Sharing::OneUser,
        Some("topo") => super::set_network::own_units(request),
        Some(kind @ "mcs") => return Err(Problem::unsupported(&format!("exclusive={kind}"))),
        Some(_) => return Err(given.invalid()),
    }
    Ok(())
}

pub fn oversubscribe(request: &mut Request, _: &Argument) -> Done {
    request.spec.size.sharing = Sharing::Oversubscribe;
    Ok(())
}

pub fn overcommit(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.overcommit = given.is_on();
    Ok(())
}

pub fn gres(request: &mut Request, given: &Argument) -> Done {
    request.gpus.gres = Some(units(given.text())?);
    Ok(())
}

pub fn gpus(request: &mut Request, given: &Argument) -> Done {
    request.gpus.per_job = Some(gpu_units(given)?);
    Ok(())
}

pub fn gpus_per_node(request: &mut Request, given: &Argument) -> Done {
    request.gpus.per_node = Some(gpu_units(given)?);
    Ok(())
}

pub fn gpus_per_socket(request: &mut Request, given: &Argument) -> Done {
    request.gpus.per_socket = Some(gpu_units(given)?);
    Ok(())
}

pub fn gpus_per_task(request: &mut Request, given: &Argument) -> Done {
    request.gpus.per_task = Some(gpu_units(given)?);
    Ok(())
}

/// `2`, `a100:2` or a list of such.
fn gpu_units(given: &Argument) -> Result<Vec<GresRequest>, Problem> {
    let named: Vec<String> = given.text().split(',').map(|item| format!("gpu:{item}")).collect();
    units(&named.join(","))
}

fn units(text: &str) -> Result<Vec<GresRequest>, Problem> {
    gres::parse_list(text).map_err(|_| Problem::error("Invalid generic resource (gres) specification"))
}

pub fn memory(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.memory = match megabytes(given)? {
        0 => Memory::WholeNode,
        megabytes => Memory::PerNodeMb(megabytes),
    };
    Ok(())
}

pub fn memory_per_cpu(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.memory = match megabytes(given)? {
        0 => Memory::WholeNode,
        megabytes => Memory::PerCpuMb(megabytes),
    };
    Ok(())
}

pub fn tmp(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.tmp_disk_mb = megabytes(given)?;
    Ok(())
}

fn megabytes(given: &Argument) -> Result<u64, Problem> {
    size::parse_megabytes(given.text()).ok_or_else(|| given.invalid())
}

pub fn min_cpus(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.min_cpus_per_node = Some(given.count()?);
    Ok(())
}

pub fn n_tasks(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.n_tasks = Some(given.count()?);
    Ok(())
}

pub fn tasks_per_node(request: &mut Request, given: &Argument) -> Done {
    // Inside a job the variable may name a count for each node, which only the job itself can have.
    if given.source == Source::Environment && given.number().is_err() {
        return Ok(());
    }
    request.spec.size.tasks_per_node = Some(given.count()?);
    Ok(())
}

/// `2`, `1-3`; a bare count is both the least and the most.
pub fn nodes(request: &mut Request, given: &Argument) -> Done {
    request.step.counts_nodes |= given.source == Source::Arguments;
    let text = given.text();
    let refuse = || Problem::usage(format!("\"{text}\" is not a valid node count"));
    let (min, max) = match text.split_once('-') {
        None => {
            let count = node_count(text).ok_or_else(refuse)?;
            (count, count)
        }
        Some((min, "")) => {
            let min = node_count(min).ok_or_else(refuse)?;
            return Err(Problem::usage(format!("Maximum node count -1 is less than minimum node count {min}")));
        }
        Some(("", max)) => (1, node_count(max).ok_or_else(refuse)?),
        Some((min, max)) => (node_count(min).ok_or_else(refuse)?, node_count(max).ok_or_else(refuse)?),
    };
    if max < min {
        return Err(Problem::usage(format!("Maximum node count {max} is less than minimum node count {min}")));
    }
    request.spec.size.min_nodes = min;
    request.spec.size.max_nodes = Some(max);
    Ok(())
}

/// A number, which may end in `k` or `m`.
fn node_count(text: &str) -> Option<u32> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1024),
        b'm' | b'M' => (&text[..text.len() - 1], 1024 * 1024),
        _ => (text, 1),
    };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok()?.checked_mul(factor))?
}
