//! Options for what a Slurm has plugins for: read and checked as there, kept, shown and told to the job's programs.
use model::cpu_freq::CpuFrequency;

use super::problem::Line;
use super::set::{Argument, Done};
use super::{Problem, Request};

/// `--cpu-freq`
pub fn cpu_freq(request: &mut Request, given: &Argument) -> Done {
    request.step.cpu_freq = CpuFrequency::parse(given.text()).map_err(|why| {
        let mut problem = Problem::usage(why);
        problem.lines.push(Line::Error("Invalid --cpu-freq argument".to_string()));
        problem
    })?;
    Ok(())
}

/// In the order in which they are told again.
const PROFILES: [(&str, &str); 4] =
    [("energy", "Energy"), ("lustre", "Lustre"), ("network", "Network"), ("task", "Task")];

/// `--profile`: the words that the job's programs find in SLURM_PROFILE.
pub fn profile(request: &mut Request, given: &Argument) -> Done {
    let text = given.text().to_ascii_lowercase();
    let words: Vec<&str> = text.split(',').collect();
    let is_known = |word: &&str| PROFILES.iter().any(|(name, _)| name == word);
    request.profile = match &words[..] {
        ["none"] => "None".to_string(),
        ["all"] => PROFILES.map(|(_, shown)| shown).join(","),
        words if words.iter().all(is_known) => {
            let asked = PROFILES.iter().filter(|(name, _)| words.contains(name));
            asked.map(|(_, shown)| *shown).collect::<Vec<_>>().join(",")
        }
        _ => return Err(Problem::usage(format!("invalid --profile={} option", given.text()))),
    };
    Ok(())
}

/// `--power=level`
pub fn power(request: &mut Request, given: &Argument) -> Done {
    request.spec.power_words.clear();
    for word in given.text().split(',') {
        match word.eq_ignore_ascii_case("level") {
            true => request.spec.power_words = "LEVEL".to_string(),
            false => request.complaints.push(format!("Ignoring unrecognized power option ({word})")),
        }
    }
    Ok(())
}

pub fn mcs_label(request: &mut Request, given: &Argument) -> Done {
    request.spec.mcs_label = given.owned();
    Ok(())
}

/// `--accel-bind`: letters for what is to be near to the tasks.
pub fn accel_bind(_: &mut Request, given: &Argument) -> Done {
    let is_right = !given.text().is_empty() && given.text().chars().all(|letter| "gmnv".contains(letter));
    if is_right { Ok(()) } else { Err(given.invalid()) }
}

/// The highest that Slurm's srun passes on.
const MOST_DEBUG: u32 = 4;

/// `--slurmd-debug`: a number, or the name of a log level.
pub fn slurmd_debug(request: &mut Request, given: &Argument) -> Done {
    const LEVELS: [&str; 5] = ["quiet", "fatal", "error", "info", "verbose"];
    let named = LEVELS.iter().position(|name| given.text().eq_ignore_ascii_case(name)).map(|level| level as u32);
    let level = named.or_else(|| given.text().parse().ok()).unwrap_or(u32::MAX);
    request.step.supervisor_verbosity = level.min(MOST_DEBUG);
    if level > MOST_DEBUG {
        request.remarks.push(format!("Using srun's max debug increment of {MOST_DEBUG}"));
    }
    Ok(())
}

/// `--resv-ports[=COUNT]`; without a number as many as MPI needs.
pub fn resv_ports(request: &mut Request, given: &Argument) -> Done {
    request.step.n_ports = match given.value {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| Problem::numeric("resv-port", text))?),
    };
    Ok(())
}

/// `--batch`: the controller knows whether the job's constraint names them.
pub fn batch(request: &mut Request, given: &Argument) -> Done {
    request.spec.batch_features = given.owned();
    Ok(())
}

/// Whole nodes, as they would be started anew.
pub fn reboot(request: &mut Request, _: &Argument) -> Done {
    request.spec.wants_reboot = true;
    request.spec.size.sharing = model::spec::Sharing::WholeNodes;
    Ok(())
}
