//! Lines of a script that ask for burst buffers where there are none: the job runs as in Slurm, and its user is told.
use model::command::Blob;
use model::{Config, JobKind, JobSpec};

const MAGIC: [&str; 3] = ["#DW", "#BB", "#BB_LUA"];
/// So many are told one by one.
const TOLD_MOST: usize = 3;
const SHOWN_CHARS: usize = 80;

/// Warnings, one to a line; nothing where the cluster has burst buffers.
pub fn warnings(config: &Config, specs: &[JobSpec], blobs: &[Blob]) -> String {
    if config.burst_buffer.is_some() {
        return String::new();
    }
    let script = specs.iter().find_map(|spec| match &spec.kind {
        JobKind::Batch { script } => blobs.iter().find(|blob| blob.id == *script),
        _ => None,
    });
    let text = script.map_or(String::new().into(), |blob| String::from_utf8_lossy(&blob.content));
    let is_command = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let comments = text.lines().enumerate().take_while(|(_, line)| !is_command(line));
    let unheard: Vec<(usize, &str)> = comments.filter(|(_, line)| asks_for_buffers(line)).collect();
    let warning = |(index, line): &(usize, &str)| {
        let shown: String = line.trim_end().chars().take(SHOWN_CHARS).collect();
        format!("warning: line {}: {shown}: this cluster has no burst buffers", index + 1)
    };
    let mut told: Vec<String> = unheard.iter().take(TOLD_MOST).map(warning).collect();
    if unheard.len() > TOLD_MOST {
        told.push(format!("warning: {} more lines ask for burst buffers", unheard.len() - TOLD_MOST));
    }
    told.join("\n")
}

fn asks_for_buffers(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    line.starts_with(word) && MAGIC.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(script: &str) -> String {
        let blob = Blob::of(script.as_bytes().to_vec());
        let spec = JobSpec { kind: JobKind::Batch { script: blob.id }, ..JobSpec::default() };
        warnings(&Config::default(), &[spec], &[blob])
    }

    #[test]
    fn directives_without_buffers_are_named_with_their_lines() {
        let script = "#!/bin/sh\n#DW jobdw capacity=1GB\n#SBATCH -N1\n#BB_LUA x\n#DWX\n # #BB\necho\n#BB late\n";
        let expected = "warning: line 2: #DW jobdw capacity=1GB: this cluster has no burst buffers\n\
                        warning: line 4: #BB_LUA x: this cluster has no burst buffers";
        assert_eq!(told(script), expected);
        assert_eq!(told("#!/bin/sh\necho\n#DW jobdw\n"), "");
        assert!(told(&format!("#!/bin/sh\n{}", "#DW x\n".repeat(9))).ends_with("6 more lines ask for burst buffers"));
    }
}
