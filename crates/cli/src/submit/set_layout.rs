//! How each option about sockets, cores, threads and the spreading of tasks changes the request.
use model::spec::{Distribution, SocketOrder};

use super::problem::Line;
use super::set::{Argument, Done};
use super::{Problem, Request};

const HINT_HELP: &str = "\
Application hint options:
    --hint=             Bind tasks according to application hints
        compute_bound   use all cores in each socket
        memory_bound    use only one core in each socket
        [no]multithread [don't] use extra threads with in-core multi-threading
        help            show this help message";

/// Cores or threads left to the system; `finish` knows whether the cluster lets jobs choose that.
pub fn special_resources(_: &mut Request, given: &Argument) -> Done {
    given.number().map(drop)
}

/// Hints say how many threads of a core work, unless an option says it too.
pub fn hint(request: &mut Request, given: &Argument) -> Done {
    match given.text().to_ascii_lowercase().as_str() {
        "compute_bound" | "nomultithread" => request.hinted_threads = Some(1),
        "multithread" => request.hinted_threads = None,
        "memory_bound" => (request.hinted_threads, request.hinted_cores) = (Some(1), Some(1)),
        "help" => return Err(Problem::help(HINT_HELP, 1)),
        _ => {
            let text = given.text();
            return Err(Problem::error(format!("unrecognized --hint argument \"{text}\", see --hint=help")));
        }
    }
    Ok(())
}

pub fn threads_per_core(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.threads_per_core = Some(given.count()?);
    Ok(())
}

pub fn sockets_per_node(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.sockets_per_node = Some(given.count()?);
    Ok(())
}

pub fn cores_per_socket(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.cores_per_socket = Some(given.count()?);
    Ok(())
}

/// `-B sockets[:cores[:threads]]`; `*` is any number.
pub fn extra_node_info(request: &mut Request, given: &Argument) -> Done {
    let size = &mut request.spec.size;
    let fields = [&mut size.sockets_per_node, &mut size.cores_per_socket, &mut size.threads_per_core];
    let names = ["first", "second", "third"];
    let mut counts = given.text().split(':');
    for (field, name) in fields.into_iter().zip(names) {
        match counts.next() {
            None | Some("*" | "") => {}
            Some(text) => {
                let refuse = || Problem::error(format!("Invalid numeric value \"{text}\" for {name} arg of -B."));
                *field = Some(text.parse().ok().filter(|count| *count > 0).ok_or_else(refuse)?);
            }
        }
    }
    if counts.next().is_some() { Err(given.invalid()) } else { Ok(()) }
}

pub fn tasks_per_socket(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.tasks_per_socket = Some(given.count()?);
    Ok(())
}

pub fn tasks_per_core(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.tasks_per_core = Some(given.count()?);
    Ok(())
}

pub fn spread_job(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.spreads = given.is_on();
    Ok(())
}

pub fn use_min_nodes(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.prefers_few_nodes = given.is_on();
    Ok(())
}

/// `block|cyclic|arbitrary|plane=N` over nodes, then over sockets and over cores, and `pack`.
pub fn distribution(request: &mut Request, given: &Argument) -> Done {
    let text = given.text().to_ascii_lowercase();
    let (levels, packs) = match text.rsplit_once(',') {
        Some((levels, "pack")) if !levels.is_empty() => (levels, Some("pack")),
        Some((levels, "nopack")) if !levels.is_empty() => (levels, Some("nopack")),
        Some(_) => return Err(given.invalid()),
        None if text == "pack" => ("", Some("pack")),
        None if text == "nopack" => ("", Some("nopack")),
        None => (text.as_str(), None),
    };
    let (over_nodes, within) = levels.split_once(':').unwrap_or((levels, ""));
    let mut chosen = match over_nodes.split_once('=') {
        Some(("plane", size)) => match size.parse() {
            Ok(size) if size > 0 => Distribution::Plane(size),
            _ => return Err(no_plane(given)),
        },
        None if over_nodes == "plane" => match given.caller.variable("SLURM_DIST_PLANESIZE").map(str::parse) {
            Some(Ok(size)) if size > 0 => Distribution::Plane(size),
            _ => return Err(no_plane(given)),
        },
        None => match over_nodes {
            "block" | "*" | "unknown" => Distribution::Block,
            "" if packs.is_some() => Distribution::Block,
            "cyclic" => Distribution::Cyclic,
            "arbitrary" => {
                request.step.is_arbitrary = true;
                Distribution::Block
            }
            _ => return Err(given.invalid()),
        },
        Some(_) => return Err(given.invalid()),
    };
    // CPUs that are counted are packed as tightly as the count of nodes allows unless somebody says otherwise; whole nodes by steps that say so.
    if packs == Some("nopack") && chosen == Distribution::Block {
        chosen = Distribution::Even;
    }
    let name = match over_nodes {
        "*" | "unknown" => "block",
        name => name.split('=').next().unwrap_or(name),
    };
    let mut words = vec![name.to_string()];
    if !within.is_empty() {
        words.extend(within_node(within).ok_or_else(|| given.invalid())?.iter().map(|word| word.to_string()));
    }
    request.spec.size.socket_order = match words.get(1).map(String::as_str) {
        Some("block") => SocketOrder::Block,
        Some("cyclic") => SocketOrder::Cyclic,
        Some("fcyclic") => SocketOrder::FullCyclic,
        // Planes of tasks are blocks of cores.
        _ if matches!(chosen, Distribution::Plane(_)) => SocketOrder::Block,
        _ => SocketOrder::Usual,
    };
    request.spec.size.distribution = chosen;
    request.step.packs = packs == Some("pack") && chosen == Distribution::Block;
    request.step.layout_words = match (words.join(":"), packs) {
        (levels, None) => levels,
        (levels, Some(packs)) if levels.is_empty() => packs.to_string(),
        (levels, Some(packs)) => format!("{levels},{packs}"),
    };
    Ok(())
}

/// The words for sockets and for cores; `*` is what stands before it, or `cyclic`.
fn within_node(text: &str) -> Option<Vec<&str>> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(':') {
        words.push(match word {
            "block" | "cyclic" | "fcyclic" => word,
            "*" => words.last().copied().unwrap_or("cyclic"),
            _ => return None,
        });
    }
    (words.len() <= 2).then_some(words)
}

fn no_plane(given: &Argument) -> Problem {
    let mut problem = given.invalid();
    problem.lines.insert(0, Line::Error("Invalid plane size or size not specified".to_string()));
    problem
}
