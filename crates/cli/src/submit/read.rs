//! Reads all sources into a request, in Slurm's precedence: arguments over environment over script.
use super::directives;
use super::request::{Given, Request, Source};
use super::table::{self, Opt};
use super::{Caller, Problem, Program};
use crate::getopt::{self, Operands, Parsed};

/// The arguments of a command, split into options and what follows them.
pub fn arguments(program: Program, arguments: &[String]) -> Result<Parsed, Problem> {
    getopt::parse(&table::flags(program), Operands::EndOptions, arguments)
        .map_err(|text| Problem::unreadable(program, text))
}

/// The `#SBATCH` words of one component.
pub fn directives(program: Program, words: &[String]) -> Result<Parsed, Problem> {
    let parsed = getopt::parse(&table::flags(program), Operands::Mixed, words)
        .map_err(|text| Problem::unreadable(program, text))?;
    match parsed.operands.first() {
        Some(stray) => Err(directives::stray(stray)),
        None => Ok(parsed),
    }
}

/// What the caller's variables ask for.
pub fn environment(program: Program, request: &mut Request, caller: &Caller) -> Result<(), Problem> {
    for option in table::of(program) {
        for variable in option.variables(program) {
            if let Some(value) = caller.variable(variable) {
                let value = Some(value.to_string()).filter(|value| !value.is_empty());
                set(request, option, value, caller, Source::Environment)?;
            }
        }
    }
    Ok(())
}

pub fn apply(
    program: Program,
    request: &mut Request,
    parsed: &Parsed,
    caller: &Caller,
    source: Source,
) -> Result<(), Problem> {
    for (long, value) in &parsed.options {
        let option = table::find(program, long).expect("the reader only knows options of the table");
        set(request, option, value.clone(), caller, source)?;
    }
    Ok(())
}

fn set(
    request: &mut Request,
    option: &'static Opt,
    value: Option<String>,
    caller: &Caller,
    source: Source,
) -> Result<(), Problem> {
    check_memory_is_said_once(request, option, source)?;
    let Some(setter) = option.set else { return Err(Problem::unsupported(option.long)) };
    setter(request, &super::set::Argument { option, value: value.as_deref(), caller, source })?;
    request.given.insert(option.canonical(), Given { value, source });
    Ok(())
}

const MEMORY: [&str; 3] = ["mem", "mem-per-cpu", "mem-per-gpu"];

/// In one place only one of them may stand; a later place replaces what an earlier one said.
fn check_memory_is_said_once(request: &mut Request, option: &Opt, source: Source) -> Result<(), Problem> {
    if !MEMORY.contains(&option.long) {
        return Ok(());
    }
    for other in MEMORY.iter().filter(|other| **other != option.long) {
        match request.given.get(other) {
            Some(given) if given.source == source => {
                return Err(Problem::fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."));
            }
            Some(_) => {
                request.given.remove(other);
            }
            None => {}
        }
    }
    Ok(())
}
