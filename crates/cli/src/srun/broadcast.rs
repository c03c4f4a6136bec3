//! `--bcast`: the program is brought to the step's nodes before its tasks start.
use std::time::Duration;

use config::Client;
use model::attach::ToStep;
use model::{Step, hostlist};

use super::plan::Plan;
use super::signals::{Heard, Signals};
use crate::delivery::{Delivery, libraries};

const PIECE_BYTES: usize = 8 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Brings it, and gives what each node is to be told. Nothing for a step whose program is there already.
/// The error is ready to print.
pub async fn deliver(cluster: &Client, plan: &Plan, step: &Step) -> Result<Vec<Option<ToStep>>, String> {
    let broadcast = &plan.options.broadcast;
    let Some(dest) = &broadcast.dest else { return Ok(vec![None; step.shares.len()]) };
    let Some(source) = plan.step.arguments.first() else { return Err("No command name to broadcast".into()) };
    let place = |node: &str| (node.to_owned(), destination(dest, &plan.step.work_dir, step, node));
    let targets: Vec<(String, String)> = step.shares.iter().map(|share| place(share.node.as_str())).collect();
    if plan.behaviour.verbosity > 0 {
        let nodes: Vec<String> = targets.iter().map(|(node, _)| node.clone()).collect();
        eprintln!("srun: broadcasting {source} to {}", hostlist::compress(&nodes));
    }
    let delivery =
        Delivery { program: "srun", replaces: true, preserves: true, piece_bytes: PIECE_BYTES, patience: PATIENCE };
    let (excluded, complaints) =
        libraries::excluded(broadcast.excluded.as_deref().filter(|_| broadcast.with_libraries));
    broadcast.complaints.iter().chain(&complaints).for_each(|text| eprintln!("srun: {text}"));
    let bring = async {
        delivery.bring(cluster, source, &targets).await?;
        if broadcast.with_libraries {
            delivery.bring_libraries(cluster, source, &targets, &excluded).await?;
        }
        Ok::<(), String>(())
    };
    tokio::select! {
        brought = bring => brought.map_err(|why| {
            format!("{why}\nsrun: fatal: Failed to broadcast '{source}'. Step launch aborted.")
        })?,
        () = asked_to_end() => return Err(format!("Broadcast of '{source}' interrupted. Step launch aborted.")),
    }
    let begin = |(_, path): &(String, String)| {
        let libraries = broadcast.with_libraries.then(|| libraries::directory(path));
        Some(ToStep::Begin { program: path.clone(), libraries })
    };
    Ok(targets.iter().map(begin).collect())
}

/// The step waits for its program: whoever ends srun meanwhile ends it too.
async fn asked_to_end() {
    let mut signals = Signals::new();
    while !matches!(signals.next().await, Heard::Interrupt | Heard::End(_)) {}
}

/// A path that names no file gets one that no other step or node has. One that is not absolute is not looked at, as by Slurm.
fn destination(dest: &str, work_dir: &str, step: &Step, node: &str) -> String {
    let own_name = || format!("slurm_bcast_{}.{}_{node}", step.job, step.id);
    match dest {
        dir if dir.starts_with('/') && dir.ends_with('/') => format!("{dir}{}", own_name()),
        file if file.starts_with('/') => file.to_owned(),
        _ => format!("{work_dir}/{}", own_name()),
    }
}

#[cfg(test)]
mod tests {
    use model::{JobId, StepId};

    use super::*;

    #[test]
    fn a_program_without_a_name_there_gets_one_of_its_own() {
        let step = Step { job: JobId(7), id: StepId::Number(2), ..Step::default() };
        let check = |dest: &str, expected: &str| assert_eq!(destination(dest, "/home/ada", &step, "n1"), expected);
        check("", "/home/ada/slurm_bcast_7.2_n1");
        check("/tmp/", "/tmp/slurm_bcast_7.2_n1");
        check("bin/", "/home/ada/slurm_bcast_7.2_n1");
        check("/tmp/mine", "/tmp/mine");
        check("mine", "/home/ada/slurm_bcast_7.2_n1");
    }
}
