//! The environment that a login of the job's user would give (`--get-user-env`), and variables from a file (`--export-file`).
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Caller, Problem};
use crate::users::Account;

type Variables = Vec<(OsString, OsString)>;

/// `--get-user-env[=timeout][mode]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    pub patience: Duration,
    pub kind: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `L`: as a login does.
    Login,
    /// `S`: as a plain change of user does.
    Plain,
}

/// How long Slurm lets a login take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reads the option's value; none if it makes no sense.
pub fn parse(text: &str) -> Option<Login> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let patience = match &text[..digits] {
        "" => PATIENCE,
        secs => Duration::from_secs(secs.parse::<u32>().ok()?.into()),
    };
    let kind = match &text[digits..] {
        "" | "L" | "l" => Shell::Login,
        "S" | "s" => Shell::Plain,
        _ => return None,
    };
    Some(Login { patience, kind })
}

/// What stands before the variables, whatever the start-up files print.
const MARK: &[u8] = b"\0SPUR_LOGIN\0";

/// Starts the user's shell with next to nothing, and takes what its start-up files make of it.
pub fn environment(login: Login, account: &Account, caller: &Caller) -> Result<Variables, Problem> {
    let fail = |why: String| Problem::error(format!("Unable to get the environment of user {}: {why}", account.name));
    let print = r"printf '\000SPUR_LOGIN\000'; env -0";
    let mut command = if caller.uid == 0 && account.uid != 0 {
        let mut command = Command::new("su");
        if login.kind == Shell::Login {
            command.arg("-");
        }
        command.args([&account.name, "-c", print]);
        command
    } else {
        let mut command = Command::new(&account.shell);
        if login.kind == Shell::Login {
            command.arg("-l");
        }
        command.args(["-c", print]);
        command
    };
    command.env_clear().envs([
        ("HOME", account.home.as_str()),
        ("USER", &account.name),
        ("LOGNAME", &account.name),
        ("SHELL", &account.shell),
        ("PATH", super::export::BARE_PATH),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
    let mut output = child.stdout.take().expect("it was asked for");
    let (send, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.read_to_end(&mut text);
        let _ = send.send(text);
    });
    let began = Instant::now();
    let read = received.recv_timeout(login.patience);
    if read.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    let text = read.map_err(|_| fail(format!("the login took longer than {} seconds", began.elapsed().as_secs())))?;
    let at = text.windows(MARK.len()).position(|window| window == MARK);
    let at = at.ok_or_else(|| fail("the login printed no variables".to_string()))?;
    Ok(variables(&text[at + MARK.len()..]))
}

/// NUL-ended entries of a file, or of a descriptor given by its number.
pub fn from_file(name: &str) -> Result<Variables, Problem> {
    let fail = || Problem::error(format!("Could not open user environment file {name}"));
    let mut file = match name.parse::<i32>() {
        // SAFETY: the caller names a descriptor that it opened for us; nothing else here uses it.
        Ok(number) if number > 2 => unsafe {
            if libc::fcntl(number, libc::F_GETFD) < 0 {
                return Err(fail());
            }
            std::fs::File::from_raw_fd(number)
        },
        _ => std::fs::File::open(name).map_err(|_| fail())?,
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|_| fail())?;
    Ok(variables(&text))
}

fn variables(text: &[u8]) -> Variables {
    let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let split = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((own(&entry[..at]), own(&entry[at + 1..])))
    };
    // The shell's own business, not the user's.
    let is_kept = |(name, _): &(OsString, OsString)| !["_", "SHLVL", "PWD", "OLDPWD"].iter().any(|own| name == own);
    text.split(|byte| *byte == 0).filter_map(split).filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_get_user_env_are_read_as_slurm_reads_them() {
        assert_eq!(parse(""), Some(Login { patience: PATIENCE, kind: Shell::Login }));
        assert_eq!(parse("5L"), Some(Login { patience: Duration::from_secs(5), kind: Shell::Login }));
        assert_eq!(parse("S").map(|login| login.kind), Some(Shell::Plain));
        assert_eq!(parse("x"), None);
    }

    #[test]
    fn a_login_gives_a_home_and_what_it_prints_is_not_taken_for_variables() {
        let home = std::env::temp_dir().join(format!("spur-login-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".profile"), "echo A=printed\nexport FROM_PROFILE='two\nlines'\n").unwrap();
        let account =
            Account { home: home.to_string_lossy().into_owned(), shell: "/bin/sh".into(), ..Account::default() };
        let login = Login { patience: Duration::from_secs(60), kind: Shell::Login };
        let found = environment(login, &account, &Caller::default()).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
        let value = |name: &str| found.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(value("FROM_PROFILE"), Some("two\nlines".into()));
        assert_eq!(value("HOME"), Some(account.home.into()));
        assert_eq!(value("A"), None);
    }
}
