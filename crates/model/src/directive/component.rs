//! What a component of a heterogeneous job has of the script that all have in common.
use crate::pool::BurstBufferConfig;

const SEPARATORS: [&str; 2] = ["hetjob", "packjob"];

/// The first has its own comments and all that is run, with the others' directives taken out; each other has its comments alone.
pub fn component(config: &BurstBufferConfig, script: &str, offset: Option<u32>) -> String {
    let Some(offset) = offset else { return script.to_owned() };
    let keywords = super::keywords(config);
    let mut out = String::with_capacity(script.len());
    let mut section = 0;
    let mut in_comments = true;
    for (number, line) in script.split_inclusive('\n').enumerate() {
        in_comments &= line.trim().is_empty() || line.starts_with('#');
        let is_separator = in_comments && is_separator(line);
        section += u32::from(is_separator);
        let is_first = number == 0;
        let is_others = in_comments && section != offset;
        match (offset, is_others) {
            (0, true) if is_directive(line, &keywords) => {
                out.push_str("#EXCLUDED ");
                out.push_str(&line[1..]);
            }
            (0, _) => out.push_str(line),
            (_, true) if !is_first => (),
            (_, _) if in_comments => out.push_str(line),
            (_, _) => break,
        }
    }
    if offset > 0 {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str("exit 0\n");
    }
    out
}

fn is_separator(line: &str) -> bool {
    let rest = line.strip_prefix("#SBATCH").filter(|rest| rest.starts_with(char::is_whitespace));
    rest.is_some_and(|rest| SEPARATORS.contains(&rest.trim()))
}

fn is_directive(line: &str, keywords: &[String]) -> bool {
    keywords.iter().any(|keyword| {
        let rest = line.strip_prefix(keyword.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_have_their_own_directives() {
        let config = BurstBufferConfig::default();
        let script = "#!/bin/sh\n#SBATCH -n1\n#DW jobdw capacity=1\n#SBATCH hetjob\n#SBATCH -n2\n#DW jobdw capacity=2\n\
                      #SBATCH packjob\n#SBATCH -n3\nsrun a\n#DW no directive\n";
        let part = |offset| component(&config, script, Some(offset));
        assert_eq!(component(&config, script, None), script);
        let first = script.replace("#DW jobdw capacity=2", "#EXCLUDED DW jobdw capacity=2");
        assert_eq!(part(0), first);
        assert_eq!(part(1), "#!/bin/sh\n#SBATCH hetjob\n#SBATCH -n2\n#DW jobdw capacity=2\nexit 0\n");
        assert_eq!(part(2), "#!/bin/sh\n#SBATCH packjob\n#SBATCH -n3\nexit 0\n");
    }
}
