//! What `srun -v` tells of a step's way: where it goes, and how each task came back.
use model::hostlist;
use model::{ExitStatus, Job, Step, TaskSet};

/// Before anything runs.
pub fn begun(job: &Job, step: &Step) -> Vec<String> {
    let nodes = &job.allocation.nodes;
    let list = hostlist::compress_in_order(job.allocation.names().map(|name| name.as_str()));
    let id = format!("StepId={}.{}", step.job, step.id);
    let mut lines = vec![
        format!(
            "jobid {}: nodes({}):`{list}', cpu counts: {}",
            job.id,
            nodes.len(),
            counts(nodes.iter().map(|share| share.cpus.len()))
        ),
        "launch/slurm: launch_p_step_launch: CpuBindType=(null type)".to_owned(),
    ];
    for (share, ranks) in step.shares.iter().zip(step.ranks()) {
        let mut set = TaskSet::new();
        for rank in &ranks {
            set.insert(*rank);
        }
        let set = if ranks.len() == 1 { set.to_string() } else { format!("[{set}]") };
        lines.push(format!("launching {id} on host {}, {} tasks: {set}", share.node, ranks.len()));
    }
    lines
}

/// A task's end; that of one which failed is told as an error, with others of its kind.
pub fn ended(step: &str, node: &str, rank: u32, exit: ExitStatus) -> Vec<String> {
    let status = exit.to_wait_status();
    let from = "launch/slurm: _task_finish:";
    let mut lines =
        vec![format!("{from} Received task exit notification for 1 task of StepId={step} (status=0x{status:04x}).")];
    lines.extend(exit.is_success().then(|| format!("{from} {node}: task {rank}: Completed")));
    lines
}

/// `8(x2),1(x1)`: unlike in the environment, one of a kind is counted too.
fn counts(each: impl Iterator<Item = u32>) -> String {
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for count in each {
        match groups.last_mut().filter(|(last, _)| *last == count) {
            Some((_, times)) => *times += 1,
            None => groups.push((count, 1)),
        }
    }
    let words: Vec<String> = groups.iter().map(|(count, times)| format!("{count}(x{times})")).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_stand_together() {
        assert_eq!(counts([8, 8, 1].into_iter()), "8(x2),1(x1)");
    }

    #[test]
    fn the_status_of_a_task_is_that_of_wait() {
        let told = ended("7.0", "n1", 3, ExitStatus::exited(2));
        assert_eq!(
            told,
            ["launch/slurm: _task_finish: Received task exit notification for 1 task of StepId=7.0 (status=0x0200)."]
        );
        assert!(ended("7.0", "n1", 3, ExitStatus::SUCCESS)[1].ends_with("n1: task 3: Completed"));
    }
}
