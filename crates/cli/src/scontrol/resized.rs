//! Scripts that tell a running job's shell what it still has after `scontrol update job NumNodes=`.
use model::resources::repeated;
use model::{Job, hostlist};

/// Writes them into the working directory; what to tell the user, or why that failed.
pub fn write(job: &Job) -> Result<String, String> {
    let names = (format!("slurm_job_{}_resize.sh", job.id), format!("slurm_job_{}_resize.csh", job.id));
    let (sh, csh) = texts(job);
    for (name, text) in [(&names.0, sh), (&names.1, csh)] {
        std::fs::write(name, text).map_err(|error| format!("Could not create file {name}: {error}"))?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(name, executable).map_err(|error| format!("Could not create file {name}: {error}"))?;
    }
    Ok(format!(
        "To reset Slurm environment variables, execute\n  For bash or sh shells:  . ./{}\n  For csh shells:         source ./{}\n",
        names.0, names.1
    ))
}

fn texts(job: &Job) -> (String, String) {
    let nodes = hostlist::compress(job.allocation.names());
    let cpus = repeated(job.allocation.nodes.iter().map(|share| share.cpus.len()));
    let count = job.allocation.nodes.len();
    let set = [
        ("SLURM_NODELIST", format!("\"{nodes}\"")),
        ("SLURM_JOB_NODELIST", format!("\"{nodes}\"")),
        ("SLURM_NNODES", count.to_string()),
        ("SLURM_JOB_NUM_NODES", count.to_string()),
        ("SLURM_JOB_CPUS_PER_NODE", format!("\"{cpus}\"")),
    ];
    let unset = ["SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"];
    let mut sh: String = set.iter().map(|(name, value)| format!("export {name}={value}\n")).collect();
    let mut csh: String = set.iter().map(|(name, value)| format!("setenv {name} {value}\n")).collect();
    unset.iter().for_each(|name| {
        sh.push_str(&format!("unset {name}\n"));
        csh.push_str(&format!("unsetenv {name}\n"));
    });
    (sh, csh)
}
