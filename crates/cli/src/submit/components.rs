//! The components of heterogeneous jobs: `sbatch -n1 : -n2 x.sh`, `srun a : b`, `#SBATCH hetjob`.
//!
//! What is asked for one component and says how large it is and where holds for it alone; the rest holds for those after it too.
use model::TaskSet;

use super::request::{Request, Source};
use super::{Caller, Problem, Program, directives, foreign, read};
use crate::getopt::Parsed;

const SEPARATOR: &str = ":";

/// Options of one component only.
#[rustfmt::skip]
const OF_ONE: &[&str] = &[
    "bb", "bbf", "bcast", "cluster-constraint", "constraint", "contiguous", "core-spec", "cores-per-socket", "cpus-per-gpu",
    "cpus-per-task", "distribution", "exclude", "exclusive", "extra-node-info", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node",
    "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "het-group", "hint", "licenses", "mem-per-gpu", "mincpus", "multi-prog",
    "network", "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "ntasks-per-tres", "overcommit", "oversubscribe", "partition", "power", "prefer", "reboot", "relative",
    "reservation", "sockets-per-node", "spread-job", "switches", "thread-spec", "threads-per-core", "tmp", "tres-per-task",
    "use-min-nodes", "wrap", "mail-type", "mail-user",
];

/// Variables that say how large a component is: within a heterogeneous job each has its own.
const SIZES: [&str; 12] = [
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_GPU",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "SLURM_JOB_NAME",
];

/// The arguments of each component. For sbatch and salloc the words that follow the options stand with the last.
pub fn sections(program: Program, arguments: &[String]) -> Result<Vec<Parsed>, Problem> {
    let mut sections = Vec::new();
    let mut rest = arguments.to_vec();
    loop {
        let mut parsed = read::arguments(program, &rest)?;
        let end = match program {
            Program::Sbatch | Program::Salloc => parsed.operands.first().filter(|word| *word == SEPARATOR).map(|_| 0),
            Program::Srun => parsed.operands.iter().position(|word| word == SEPARATOR),
        };
        let Some(end) = end else {
            sections.push(parsed);
            return Ok(sections);
        };
        rest = parsed.operands.split_off(end + 1);
        parsed.operands.truncate(end);
        sections.push(parsed);
    }
}

/// One request a component, from all sources.
pub fn requests(
    program: Program,
    sections: &[Parsed],
    caller: &Caller,
    script: Option<(&str, &str)>,
) -> Result<Vec<Request>, Problem> {
    let mut directives = match script {
        Some((name, text)) => directives::sections(name, text)?
            .iter()
            .map(|words| read::directives(program, words))
            .collect::<Result<Vec<Parsed>, Problem>>()?,
        None => Vec::new(),
    };
    let mut umask = None;
    if let Some((name, text)) = script
        && !ignores_pbs(&directives, sections, caller)
    {
        let foreign = foreign::read(name, text)?;
        // They go before what the script says to sbatch.
        directives[0].options.extend(read::directives(program, &foreign.words)?.options);
        umask = foreign.umask;
    }
    let n_components = sections.len().max(directives.len());
    let mut requests: Vec<Request> = (0..n_components)
        .map(|index| request(program, sections, caller, &directives, index))
        .collect::<Result<_, Problem>>()?;
    requests.iter_mut().for_each(|request| request.umask = umask);
    Ok(requests)
}

/// `--ignore-pbs`, wherever it stands; of the variable's values only those that mean yes.
fn ignores_pbs(directives: &[Parsed], sections: &[Parsed], caller: &Caller) -> bool {
    let is_yes = |value: &str| ["", "1", "yes", "true"].contains(&value.to_ascii_lowercase().as_str());
    directives.iter().chain(sections).any(|parsed| parsed.has("ignore-pbs"))
        || caller.variable("SBATCH_IGNORE_PBS").is_some_and(is_yes)
}

/// The request of the component with this number.
pub fn request(
    program: Program,
    sections: &[Parsed],
    caller: &Caller,
    script: &[Parsed],
    index: usize,
) -> Result<Request, Problem> {
    let mut request = Request::default();
    for earlier in 0..index {
        for source in [script.get(earlier), sections.get(earlier)].into_iter().flatten() {
            let mut inherited = source.clone();
            inherited.options.retain(|(long, _)| !OF_ONE.contains(long));
            read::apply(program, &mut request, &inherited, caller, Source::Arguments)?;
        }
        // Whatever is said from here on goes before.
        request.given.values_mut().for_each(|given| given.source = Source::Script);
    }
    if let Some(script) = script.get(index) {
        read::apply(program, &mut request, script, caller, Source::Script)?;
    }
    read::environment(program, &mut request, caller)?;
    if let Some(section) = sections.get(index) {
        read::apply(program, &mut request, section, caller, Source::Arguments)?;
    }
    Ok(request)
}

/// `--het-group=0,2-3`
pub fn groups(text: &str) -> Result<Vec<u32>, Problem> {
    let invalid = || {
        let mut problem = Problem::error(format!("_parse_single_range: Invalid range: `{text}'"));
        problem.lines.push(super::problem::Line::Error(format!("Invalid --het-group value: {text}")));
        problem
    };
    let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let (groups, limit): (TaskSet, _) = model::ranges::parse_array(list).map_err(|_| invalid())?;
    match limit {
        None if groups.len() as usize <= model::het::MAX_COMPONENTS => Ok(groups.iter().collect()),
        _ => Err(invalid()),
    }
}

/// The caller as one component of the heterogeneous job that it is in sees it.
pub fn within_group(caller: &Caller, group: u32) -> Caller {
    let suffix = format!("_HET_GROUP_{group}");
    let mut environment = caller.environment.clone();
    environment.retain(|(name, _)| !SIZES.iter().any(|size| name == size));
    for (name, value) in &caller.environment {
        let Some(own) = name.to_str().and_then(|name| name.strip_suffix(&suffix)) else { continue };
        environment.retain(|(known, _)| known != own);
        environment.push((own.into(), value.clone()));
    }
    Caller { environment, ..caller.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn a_colon_ends_a_component() {
        let check = |program, line: &str, expected: &[&str]| {
            let sections = sections(program, &words(line)).unwrap();
            let shown = |parsed: &Parsed| {
                let options: Vec<&str> = parsed.options.iter().filter_map(|(_, value)| value.as_deref()).collect();
                format!("{}|{}", options.join(" "), parsed.operands.join(" "))
            };
            assert_eq!(sections.iter().map(shown).collect::<Vec<_>>(), expected, "{line}");
        };
        check(Program::Sbatch, "-n1 : -n2 x.sh : -n3", &["1|", "2|x.sh : -n3"]);
        check(Program::Sbatch, "--wrap true : -n2", &["true|", "2|"]);
        check(Program::Salloc, "-n1 : -n2", &["1|", "2|"]);
        check(Program::Srun, "-n1 echo a : -n2 echo b", &["1|echo a", "2|echo b"]);
        check(Program::Srun, "-n1 true :", &["1|true", "|"]);
    }

    #[test]
    fn a_component_inherits_what_is_not_about_its_size() {
        let caller = Caller::default();
        let sections = sections(Program::Sbatch, &words("-n4 -c2 -J a -t 3 -p x --mem=50 : -n1 -t 4 x.sh")).unwrap();
        let script = "#!/bin/sh\n#SBATCH --comment=c -N2\n#SBATCH hetjob\n#SBATCH -J b\n#SBATCH hetjob\ntrue\n";
        let requests = requests(Program::Sbatch, &sections, &caller, Some(("x.sh", script))).unwrap();
        let shown = |request: &Request| {
            let spec = &request.spec;
            let size = &spec.size;
            let secs = spec.time_limit.and_then(|limit| limit.span()).map(|span| span.secs());
            format!(
                "{} {} n{:?} c{:?} N{} t{secs:?} {:?} {:?}",
                spec.name, spec.comment, size.n_tasks, size.cpus_per_task, size.min_nodes, spec.partitions, size.memory
            )
        };
        let expected = [
            "a c nSome(4) cSome(2) N2 tSome(180) [\"x\"] PerNodeMb(50)",
            "b c nSome(1) cNone N0 tSome(240) [] PerNodeMb(50)",
            "b c nNone cNone N0 tSome(240) [] PerNodeMb(50)",
        ];
        assert_eq!(requests.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn groups_are_ranges() {
        assert_eq!(groups("0,2-3").unwrap(), [0, 2, 3]);
        assert_eq!(groups("1").unwrap(), [1]);
        let told = groups("x").unwrap_err().show(Program::Srun);
        assert_eq!(
            told,
            "srun: error: _parse_single_range: Invalid range: `x'\nsrun: error: Invalid --het-group value: x\n"
        );
    }

    #[test]
    fn a_component_sees_its_own_size() {
        let caller = Caller::default().with_environment(&[
            ("SLURM_NTASKS", "3"),
            ("SLURM_NTASKS_HET_GROUP_1", "2"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_ID_HET_GROUP_1", "8"),
            ("SLURM_CPU_BIND", "none"),
        ]);
        let within = within_group(&caller, 1);
        assert_eq!((within.variable("SLURM_NTASKS"), within.variable("SLURM_JOB_ID")), (Some("2"), Some("8")));
        assert_eq!(within.variable("SLURM_CPU_BIND"), Some("none"));
        assert_eq!(within_group(&caller, 0).variable("SLURM_NTASKS"), None);
    }
}
