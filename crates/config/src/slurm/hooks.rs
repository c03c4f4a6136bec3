//! What a slurm.conf says about prologs and epilogs.
use std::path::Path;

use model::config::Config;
use model::hooks::HooksConfig;
use model::ports::PortRange;
use model::step::Mpi;
use model::time::Span;

use super::values::{Notes, Values};
use crate::hooks;

pub(crate) fn read(values: &Values, config: &mut Config, notes: &Notes) {
    let path = |key: &str| {
        values.read(key, "a path from the root", notes, |text| text.starts_with('/').then(|| text.to_string()))
    };
    let paths = |key: &str| path(key).into_iter().collect();
    let site = &mut config.hooks;
    site.prolog = paths("Prolog");
    site.epilog = paths("Epilog");
    site.controller_prolog = paths("PrologSlurmctld");
    site.controller_epilog = paths("EpilogSlurmctld");
    site.task_prolog = path("TaskProlog").unwrap_or_default();
    site.task_epilog = path("TaskEpilog").unwrap_or_default();
    site.srun_prolog = path("SrunProlog").unwrap_or_default();
    site.srun_epilog = path("SrunEpilog").unwrap_or_default();
    config.mpi_default = values.get("MpiDefault").and_then(|pair| mpi(&pair.value)).unwrap_or_default();
    config.mpi_ports = mpi_ports(values, notes);
    let site = &mut config.hooks;
    let seconds = |key: &str| values.number(key, 0..=65_534, notes).map(|secs| Span::from_secs(secs.into()));
    let both = seconds("PrologEpilogTimeout");
    site.prolog_timeout = seconds("PrologTimeout").or(both);
    site.epilog_timeout = seconds("EpilogTimeout").or(both);
    let scheduling = values.text("SchedulerParameters").unwrap_or_default();
    site.flags.no_hold_on_failure =
        scheduling.split(',').any(|word| word.trim().eq_ignore_ascii_case("nohold_on_prolog_fail"));
    let Some(pair) = values.get("PrologFlags") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.to_lowercase().as_str() {
            "none" => {}
            "alloc" => site.flags.alloc = true,
            "contain" => site.flags.contain = true,
            "nohold" => site.flags.no_hold = true,
            "serial" => site.flags.serial = true,
            "forcerequeueonfail" => site.flags.force_requeue = true,
            // A batch script never starts before all nodes of its job are prepared.
            "deferbatch" => site.flags.alloc = true,
            "x11" => {
                site.flags.contain = true;
                notes.warn(&pair.at, "X11: windows are not forwarded; the rest of it is as Contain");
            }
            "runinjob" => notes.warn(&pair.at, format!("{word} has no effect here")),
            _ => notes.wrong(&pair.at, format!("`PrologFlags` does not know {word:?}")),
        }
    }
    if let Err(why) = hooks::complete(&mut site.flags) {
        notes.wrong(&pair.at, why);
    }
}

/// `JobSubmitPlugins=require_timelimit,lua`; the script is the job_submit.lua beside the file.
pub(crate) fn job_submit(values: &Values, config: &mut Config, folder: Option<&Path>, notes: &Notes) {
    const ELSEWHERE: [&str; 6] = ["cray_aries", "defaults", "logging", "partition", "pbs", "throttle"];
    let Some(pair) = values.get("JobSubmitPlugins") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let name = word.strip_prefix("job_submit/").unwrap_or(word);
        match name {
            "lua" => config.hooks.job_submit.extend(folder.map(script)),
            name if HooksConfig::JOB_SUBMIT.contains(&name) => config.hooks.job_submit.push(name.into()),
            name if ELSEWHERE.contains(&name) => {
                notes.warn(&pair.at, format!("`JobSubmitPlugins`: {name} has no effect here"));
            }
            _ => notes.wrong(&pair.at, format!("`JobSubmitPlugins` does not know {word:?}")),
        }
    }
}

fn script(folder: &Path) -> String {
    folder.join("job_submit.lua").display().to_string()
}

/// The default that we know by this name; Slurm's `openmpi` is none.
/// `MpiParams=ports=12000-12999`
fn mpi_ports(values: &Values, notes: &Notes) -> Option<PortRange> {
    let pair = values.get("MpiParams")?;
    let mut ports = None;
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            Some((key, range)) if key.eq_ignore_ascii_case("ports") => {
                ports = PortRange::parse(range);
                if ports.is_none() {
                    notes.wrong(&pair.at, format!("`MpiParams`: {range:?} is no range of ports"));
                }
            }
            _ => notes.warn(&pair.at, format!("`MpiParams`: {word} has no effect here")),
        }
    }
    ports
}

pub(super) fn mpi(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    (name != "none" && Mpi::NAMES.contains(&name.as_str())).then_some(name)
}
