//! `SLURM_HOSTFILE`: a list that says where each task goes.
use model::spec::Size;
use model::{NodeName, hostlist};

use crate::submit::{Caller, Problem, Request};

/// One name a task. The file counts whatever `--distribution` says; without it, `arbitrary` takes the names of `-w`.
pub fn listed(request: &Request, caller: &Caller) -> Result<Vec<NodeName>, Problem> {
    let size = &request.spec.size;
    let mut hosts = match caller.variable("SLURM_HOSTFILE").filter(|name| !name.is_empty()) {
        Some(name) => {
            let text = std::fs::read_to_string(caller.absolute(name))
                .map_err(|_| Problem::error(format!("Could not open hostfile {name}: No such file or directory")))?;
            read(&text).ok_or_else(|| Problem::error(format!("Invalid host list in {name}")))?
        }
        None if request.step.is_arbitrary => size.nodes.clone(),
        None => return Ok(Vec::new()),
    };
    if let Some(n_tasks) = size.n_tasks {
        let n_listed = hosts.len();
        if n_listed < n_tasks as usize {
            return Err(Problem::error(format!(
                "Asked for {n_tasks} tasks but have only {n_listed} hosts for them in the host list"
            )));
        }
        hosts.truncate(n_tasks as usize);
    }
    Ok(hosts)
}

/// A job of its own must have the nodes, with room on each for as many tasks as the list has there at most.
pub fn ask_for(hosts: &[NodeName], size: &mut Size) {
    let mut names: Vec<NodeName> = Vec::new();
    for host in hosts {
        if !names.contains(host) {
            names.push(host.clone());
        }
    }
    let most = names.iter().map(|name| hosts.iter().filter(|host| *host == name).count()).max().unwrap_or(1);
    size.min_nodes = names.len() as u32;
    size.max_nodes = Some(names.len() as u32);
    size.nodes = names;
    size.n_tasks = None;
    size.tasks_per_node = Some(most as u32);
}

/// Names, or lists of them, between blanks and commas; `n1*3` is three times the same.
fn read(text: &str) -> Option<Vec<NodeName>> {
    let mut hosts = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for item in line.split_whitespace() {
            let (list, times) = item.split_once('*').unwrap_or((item, "1"));
            let times: usize = times.parse().ok().filter(|times| *times <= 65_536)?;
            let names: Vec<NodeName> = hostlist::expand(list).ok()?.into_iter().map(NodeName::from).collect();
            (0..times).for_each(|_| hosts.extend(names.iter().cloned()));
        }
    }
    Some(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_file_names_a_node_for_each_task() {
        let hosts = read("# mine\nn2\nn1*2 n[3-4]\nn2,n1\n").unwrap();
        let shown: Vec<&str> = hosts.iter().map(NodeName::as_str).collect();
        assert_eq!(shown, ["n2", "n1", "n1", "n3", "n4", "n2", "n1"]);
        let mut size = Size { n_tasks: Some(7), ..Default::default() };
        ask_for(&hosts, &mut size);
        assert_eq!((size.min_nodes, size.tasks_per_node, size.n_tasks), (4, Some(3), None));
    }
}
