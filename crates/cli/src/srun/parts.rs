//! Which parts a step has: one, or one for each component of a heterogeneous job (`a : b`, `--het-group`).
use crate::getopt::Parsed;
use crate::submit::{Caller, Problem, Program, Request, components};

/// One part of a step.
pub struct Part {
    /// Which of the sections between colons asks for it.
    pub section: usize,
    pub group: Option<u32>,
    pub request: Request,
}

/// The parts in the order of their sections and groups.
pub fn of(sections: &[Parsed], caller: &Caller) -> Result<Vec<Part>, Problem> {
    let size: Option<u32> = caller.variable("SLURM_HET_SIZE").and_then(|text| text.parse().ok());
    let mut parts = Vec::new();
    for section in 0..sections.len() {
        let read = |caller: &Caller| components::request(Program::Srun, sections, caller, &[], section);
        let asked = read(caller)?;
        let is_named = !asked.step.groups.is_empty();
        let is_inside = asked.step.job.is_some();
        let groups = if is_named { asked.step.groups.clone() } else { vec![section as u32] };
        let Some(size) = size.filter(|_| is_inside) else {
            // Outside of a heterogeneous job, or in one that only the controller knows.
            for group in groups {
                parts.push(Part { section, group: Some(group).filter(|_| is_named), request: asked.clone() });
            }
            continue;
        };
        let highest = groups.iter().copied().max().unwrap_or(0);
        if highest >= size {
            let most = size.saturating_sub(1);
            return Err(Problem::error(match groups.len() {
                1 => format!("Requested het-group offset exceeds highest hetjob index ({highest} > {most})"),
                _ => format!(
                    "Attempt to run a job step with het group value of {highest}, but the job allocation has maximum value of {most}"
                ),
            }));
        }
        for group in groups {
            let request = read(&components::within_group(caller, group))?;
            parts.push(Part { section, group: Some(group).filter(|_| is_named), request });
        }
    }
    // Ranks follow the components, in whatever order they are named.
    if parts.iter().all(|part| part.group.is_some()) {
        parts.sort_by_key(|part| part.group);
    }
    Ok(parts)
}
