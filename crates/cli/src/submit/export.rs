//! Which variables of the caller's environment go into the job (`--export`).
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::mem_bind::MemBind;
use super::{Caller, Problem, Program, Request, login, spec, table};

type Variables = Vec<(OsString, OsString)>;

/// What `PATH` is for a job that takes nothing along.
pub const BARE_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Options that a job finds again as a variable, named as `srun` reads it.
const TOLD: [&str; 15] = [
    "cpu-freq",
    "cpus-per-gpu",
    "distribution",
    "gpu-bind",
    "gpus",
    "gpus-per-node",
    "gpus-per-task",
    "hint",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "ntasks-per-tres",
    "profile",
    "threads-per-core",
    "tres-per-task",
];

/// The variables that steps in the job read, and what this job's options say for each.
pub fn told(request: &Request) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let options = TOLD.iter().filter_map(|name| table::find(Program::Srun, name));
    // What a hint comes to is told like the option that says it.
    let hinted = request.hinted_threads.filter(|_| request.is_given("hint") && spec::hint_counts(request));
    options
        .map(move |option| {
            let given = request.given.get(option.long).map(|given| match option.long {
                "cpu-freq" => request.step.cpu_freq.words(),
                "profile" => request.profile.clone(),
                _ => given.value.clone().unwrap_or_default(),
            });
            let hinted = hinted.filter(|_| option.long == "threads-per-core").map(|count| count.to_string());
            (option.variables[Program::Srun as usize], given.or(hinted))
        })
        .chain(MemBind::of_job(request.mem_bind.as_ref()))
}

/// What a batch script, or the tasks of an `srun`, hear of the job's dependencies: as they were asked for.
pub fn dependency(request: &Request) -> (&'static str, Option<String>) {
    ("SLURM_JOB_DEPENDENCY", request.given.get("dependency").and_then(|given| given.value.clone()))
}

/// A batch job's environment: the caller's or a file's, what `--export` leaves of it, a login's below it.
pub fn of_batch(request: &Request, caller: &Caller) -> Result<Vec<u8>, Problem> {
    let mut base = match &request.export_file {
        Some(name) => login::from_file(name)?,
        None => caller.environment.clone(),
    };
    for (variable, value) in told(request).chain([dependency(request)]) {
        base.retain(|(name, _)| name != variable);
        base.extend(value.map(|value| (variable.into(), value.into())));
    }
    let mut login = match request.login {
        Some(asked) => {
            let account = request.user.as_ref().unwrap_or_else(|| caller.account());
            login::environment(asked, account, caller)?
        }
        None => Vec::new(),
    };
    let caller = Caller { environment: base, ..caller.clone() };
    let mut variables = chosen(Program::Sbatch, request.export.as_deref(), &caller);
    let list = request.export.as_deref().unwrap_or("ALL");
    if !takes_all(list) {
        // What stands in for a login gives way to the real one.
        let is_named = |name: &OsStr| split(list).iter().any(|item| name == item.split('=').next().unwrap_or(item));
        let is_of_login = |name: &OsStr| login.iter().any(|(known, _)| known == name);
        variables.retain(|(name, _)| is_ours(name) || is_named(name) || !is_of_login(name));
    }
    login.retain(|(name, _)| !variables.iter().any(|(known, _)| known == name));
    variables.append(&mut login);
    Ok(Caller::entries(variables.iter().map(|(name, value)| (name, value))))
}

fn takes_all(list: &str) -> bool {
    split(list).iter().any(|item| item.eq_ignore_ascii_case("ALL"))
}

/// The job's environment, `NAME=value` entries each ended by a NUL.
pub fn environment(program: Program, export: Option<&str>, caller: &Caller) -> Vec<u8> {
    let variables = chosen(program, export, caller);
    Caller::entries(variables.iter().map(|(name, value)| (name, value)))
}

fn chosen(program: Program, export: Option<&str>, caller: &Caller) -> Variables {
    let mut variables = match export {
        None => caller.environment.clone(),
        Some(list) => {
            let mut variables = listed(program, list, caller);
            // It is for the steps of a batch job to read.
            if program != Program::Srun {
                put(&mut variables, "SLURM_EXPORT_ENV".as_ref(), list.as_ref());
            }
            variables
        }
    };
    if program == Program::Sbatch {
        // Also when this is itself a job: its own submit directory is another.
        put(&mut variables, "SLURM_SUBMIT_DIR".as_ref(), caller.work_dir.as_ref());
        put(&mut variables, "SLURM_SUBMIT_HOST".as_ref(), caller.host.as_ref());
        put(&mut variables, "SLURM_PRIO_PROCESS".as_ref(), caller.niceness.to_string().as_ref());
    }
    variables
}

fn listed(program: Program, list: &str, caller: &Caller) -> Variables {
    let items: Vec<&str> = split(list);
    let takes_all = items.iter().any(|item| item.eq_ignore_ascii_case("ALL"));
    let takes = |name: &OsStr| takes_all || is_ours(name) || items.iter().any(|item| name == *item);
    let mut variables: Variables = caller.environment.iter().filter(|(name, _)| takes(name)).cloned().collect();
    if !takes_all && program == Program::Sbatch {
        for (name, value) in basics(caller) {
            if !variables.iter().any(|(known, _)| known == name) {
                put(&mut variables, name.as_ref(), value.as_ref());
            }
        }
    }
    for (name, value) in items.iter().filter_map(|item| item.split_once('=')) {
        put(&mut variables, name.as_ref(), value.as_ref());
    }
    variables
}

/// What a login would give; a batch script without it could not even find `ls`.
fn basics(caller: &Caller) -> [(&'static str, String); 5] {
    [
        ("HOME", caller.account().home.clone()),
        ("USER", caller.account().name.clone()),
        ("LOGNAME", caller.account().name.clone()),
        ("SHELL", caller.account().shell.clone()),
        ("PATH", BARE_PATH.to_string()),
    ]
}

fn is_ours(name: &OsStr) -> bool {
    [&b"SLURM_"[..], b"SPUR_", b"SPANK_"].iter().any(|prefix| name.as_bytes().starts_with(prefix))
}

fn put(variables: &mut Variables, name: &OsStr, value: &OsStr) {
    match variables.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value.to_owned(),
        None => variables.push((name.to_owned(), value.to_owned())),
    }
}

/// Splits at commas outside quotes, which stay part of the value, as in Slurm.
fn split(list: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut quote = None;
    for (at, letter) in list.char_indices() {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (',', None) => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items.retain(|item| !item.is_empty());
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: Program, export: Option<&str>, expected: &str) {
        let caller = Caller {
            account: crate::users::Account {
                uid: 1,
                gid: 1,
                name: "u".into(),
                home: "/h".into(),
                shell: "/s".into(),
                ..Default::default()
            }
            .into(),
            work_dir: "/w".into(),
            host: "login".into(),
            ..Caller::default()
        }
        .with_environment(&[("A", "1"), ("B", "2"), ("SLURM_X", "3")]);
        let entries = environment(program, export, &caller);
        let text = String::from_utf8(entries).unwrap();
        assert_eq!(text.trim_end_matches('\0').replace('\0', " "), expected, "{export:?}");
    }

    #[test]
    fn the_environment_is_exported_as_asked() {
        check(Program::Srun, None, "A=1 B=2 SLURM_X=3");
        check(Program::Srun, Some("ALL"), "A=1 B=2 SLURM_X=3");
        check(Program::Srun, Some("ALL,C=4"), "A=1 B=2 SLURM_X=3 C=4");
        check(Program::Srun, Some("NONE"), "SLURM_X=3");
        check(Program::Srun, Some("B,A=9"), "B=2 SLURM_X=3 A=9");
        check(Program::Srun, Some("C=\"x,y\",B"), "B=2 SLURM_X=3 C=\"x,y\"");
        let bare = format!("SLURM_X=3 HOME=/h USER=u LOGNAME=u SHELL=/s PATH={BARE_PATH} SLURM_EXPORT_ENV=NONE");
        let place = "SLURM_SUBMIT_DIR=/w SLURM_SUBMIT_HOST=login SLURM_PRIO_PROCESS=0";
        check(Program::Sbatch, Some("NONE"), &format!("{bare} {place}"));
    }
}
