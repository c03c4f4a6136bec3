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

/// Everything in its order. `script` is a name for messages and the text.
pub fn request(
    program: Program,
    arguments: &Parsed,
    caller: &Caller,
    script: Option<(&str, &str)>,
) -> Result<Request, Problem> {
    let mut request = Request::default();
    if let Some((name, text)) = script {
        let words = directives::words(name, text)?;
        let parsed = getopt::parse(&table::flags(program), Operands::Mixed, &words)
            .map_err(|text| Problem::unreadable(program, text))?;
        if let Some(stray) = parsed.operands.first() {
            return Err(directives::stray(stray));
        }
        apply(program, &mut request, &parsed, caller, Source::Script)?;
    }
    for option in table::of(program) {
        for variable in option.variables(program) {
            if let Some(value) = caller.variable(variable) {
                let value = Some(value.to_string()).filter(|value| !value.is_empty());
                set(&mut request, option, value, caller, Source::Environment)?;
            }
        }
    }
    apply(program, &mut request, arguments, caller, Source::Arguments)?;
    Ok(request)
}

fn apply(
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
