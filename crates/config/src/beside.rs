//! Files beside the main one: a topology.yaml counts, whatever the main file says about the network; so does what a
//! burst_buffer.conf says of a plugin that the main file asks for.
use std::path::Path;

use model::Config;
use model::pool::BurstBufferConfig;

use crate::problem::{Problem, Problems};
use crate::slurm;
use crate::topology::{self, Severity};

/// Replaces the topologies of `config` by those of the file, if there is one.
pub(crate) fn read_yaml(folder: &Path, config: &mut Config, warnings: &mut Problems) -> Result<bool, Problems> {
    let path = folder.join("topology.yaml");
    if !path.exists() {
        return Ok(false);
    }
    let file = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|error| Problems::of_file(&file, error.to_string()))?;
    let problem = |(line, column): (usize, usize), text: String| Problem { file: file.clone(), line, column, text };
    let (raw, wrong) = topology::yaml::read(&text);
    if !wrong.is_empty() {
        let list = wrong.into_iter().map(|(at, text)| problem(at, text)).collect();
        return Err(Problems { file, list });
    }
    let mut problems: Vec<Problem> = Vec::new();
    let mut noted = Vec::new();
    let topologies = topology::check(raw, &config.nodes, &mut |severity, at, text| match severity {
        Severity::Fatal => problems.push(problem(*at, text)),
        Severity::Warning => noted.push(problem(*at, text)),
    });
    for partition in config.partitions.iter().filter(|partition| !partition.topology.is_empty()) {
        if !topologies.iter().any(|topology| topology.name == partition.topology) {
            let text = format!("partition {}: there is no topology {}", partition.name, partition.topology);
            problems.push(problem((1, 1), text));
        }
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(Problems { file, list: problems });
    }
    if !config.topologies.is_empty() {
        let text = "the topology of the main file is ignored: topology.yaml counts".into();
        noted.push(problem((1, 1), text));
    }
    config.topologies = topologies;
    warnings.list.extend(noted);
    Ok(true)
}

/// Where the site's script is, and what its burst_buffer.conf says.
pub(crate) fn read_burst_buffer(
    folder: &Path,
    burst: &mut BurstBufferConfig,
    warnings: &mut Problems,
) -> Result<(), Problems> {
    burst.script = match burst.script.as_str() {
        "" => slurm::burst::script(folder),
        given => folder.join(given).display().to_string(),
    };
    let Some(file) = slurm::burst::conf_file(folder, burst.plugin) else { return Ok(()) };
    let notes = slurm::values::Notes::default();
    slurm::burst::options(&file, burst, &notes);
    let problems = Problems { file: file.display().to_string(), list: notes.problems.take() };
    warnings.list.extend(notes.warnings.take());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
