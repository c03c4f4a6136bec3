//! Which variables of the caller's environment go into the job (`--export`).
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::{Caller, Program};

type Variables = Vec<(OsString, OsString)>;

/// What `PATH` is for a job that takes nothing along.
pub const BARE_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// The job's environment, `NAME=value` entries each ended by a NUL.
pub fn environment(program: Program, export: Option<&str>, caller: &Caller) -> Vec<u8> {
    let mut variables = match export {
        None => caller.environment.clone(),
        Some(list) => {
            let mut variables = listed(program, list, caller);
            put(&mut variables, "SLURM_EXPORT_ENV".as_ref(), list.as_ref());
            variables
        }
    };
    if program == Program::Sbatch {
        // Also when this is itself a job: its own submit directory is another.
        put(&mut variables, "SLURM_SUBMIT_DIR".as_ref(), caller.work_dir.as_ref());
        put(&mut variables, "SLURM_SUBMIT_HOST".as_ref(), caller.host.as_ref());
    }
    Caller::entries(variables.iter().map(|(name, value)| (name, value)))
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
        put(&mut variables, name.as_ref(), unquoted(value).as_ref());
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

/// Splits at commas outside quotes.
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

fn unquoted(value: &str) -> &str {
    let inner = |sign| value.strip_prefix(sign).and_then(|rest| rest.strip_suffix(sign));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: Program, export: Option<&str>, expected: &str) {
        let caller = Caller {
            account: crate::users::Account { uid: 1, gid: 1, name: "u".into(), home: "/h".into(), shell: "/s".into() }.into(),
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
        check(Program::Srun, Some("ALL"), "A=1 B=2 SLURM_X=3 SLURM_EXPORT_ENV=ALL");
        check(Program::Srun, Some("ALL,C=4"), "A=1 B=2 SLURM_X=3 C=4 SLURM_EXPORT_ENV=ALL,C=4");
        check(Program::Srun, Some("NONE"), "SLURM_X=3 SLURM_EXPORT_ENV=NONE");
        check(Program::Srun, Some("B,A=9"), "B=2 SLURM_X=3 A=9 SLURM_EXPORT_ENV=B,A=9");
        check(Program::Srun, Some("C=\"x,y\",B"), "B=2 SLURM_X=3 C=x,y SLURM_EXPORT_ENV=C=\"x,y\",B");
        let bare = format!("SLURM_X=3 HOME=/h USER=u LOGNAME=u SHELL=/s PATH={BARE_PATH} SLURM_EXPORT_ENV=NONE");
        let place = "SLURM_SUBMIT_DIR=/w SLURM_SUBMIT_HOST=login";
        check(Program::Sbatch, Some("NONE"), &format!("{bare} {place}"));
    }
}
