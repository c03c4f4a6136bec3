//! What a worker is left with. A job_submit.lua judges what strangers have written: it computes and reads, and the
//! kernel refuses it all else. Scripts and programs that manage file systems are programs by their nature.
use std::io;
use std::path::Path;

use confine::{Access, Reach, calls, give_up_new_rights};

use crate::call::{Call, SUBMIT_FUNCTIONS};

/// A script that has this text in it is not confined.
pub const UNCONFINED: &str = "spur: unconfined";
/// What only programs do: run others, change files, talk over a network.
const WORDS_OF_PROGRAMS: [&str; 14] = [
    UNCONFINED,
    "io.popen",
    "os.execute",
    "os.remove",
    "os.rename",
    "os.tmpname",
    "io.output",
    "io.tmpfile",
    "socket",
    "ldap",
    "luasql",
    "redis",
    "http",
    "curl",
];
/// Modules of Lua, what they are linked to, time zones and the names of users; all may be read by everybody.
const READ_BY_ALL: [&str; 15] = [
    "/usr/local/share/lua",
    "/usr/local/lib",
    "/usr/share/lua",
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/lib/locale",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/dev/null",
];

/// For good. To be called while there is one thread.
pub fn restrain(call: &Call) -> io::Result<()> {
    match call {
        Call::Edit(edit) => restrain_script(&edit.script, &edit.text),
        Call::Check { script, functions } if functions.iter().any(|name| SUBMIT_FUNCTIONS.contains(&name.as_str())) => {
            // One that cannot be read is told so when it is loaded.
            restrain_script(script, &std::fs::read_to_string(script).unwrap_or_default())
        }
        Call::Check { .. } | Call::Lua { .. } | Call::Program { .. } => restrain_program(),
    }
}

/// Root has all rights already; an ordinary user's program may need those of `sudo`.
fn restrain_program() -> io::Result<()> {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } == 0 { give_up_new_rights() } else { Ok(()) }
}

fn restrain_script(script: &str, text: &str) -> io::Result<()> {
    if is_program(text) {
        return restrain_program();
    }
    give_up_new_rights()?;
    reach_of(script, text).restrict()?;
    calls::reader().install()
}

/// Whether a script does what only programs do, as far as its text says.
pub fn is_program(text: &str) -> bool {
    let writes = |line: &str| {
        let modes = ["\"w", "'w", "\"a", "'a", "+\"", "+'", "+b"];
        line.contains("io.open") && modes.iter().any(|mode| line.contains(mode))
    };
    WORDS_OF_PROGRAMS.iter().any(|word| text.contains(word)) || text.lines().any(writes)
}

/// The script's folder, what all may read, and the paths that the script itself names in quotes.
fn reach_of(script: &str, text: &str) -> Reach {
    let mut reach = Reach::default();
    READ_BY_ALL.into_iter().for_each(|path| reach.allow(path, Access::Read));
    if let Some(folder) = Path::new(script).parent().filter(|folder| folder.parent().is_some()) {
        reach.allow(folder, Access::Read);
    }
    for quote in ['"', '\''] {
        for quoted in text.split(quote).filter(|quoted| quoted.starts_with('/') && !quoted.contains('\n')) {
            // A pattern for modules is read from its folder on.
            let path = quoted.split(['?', ';']).next().unwrap_or_default();
            if Path::new(path).parent().is_some() {
                reach.allow(path, Access::Read);
            }
        }
    }
    reach
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_a_program_if_it_does_what_programs_do() {
        for text in ["local p = io.popen('id')", "os.execute(x)", "f = io.open(path, 'a')", "-- spur: unconfined"] {
            assert!(is_program(text), "{text}");
        }
        for text in ["for line in io.lines('/etc/limits') do end", "io.open('/x/y', 'r')", "job.account = 'a'"] {
            assert!(!is_program(text), "{text}");
        }
    }
}
