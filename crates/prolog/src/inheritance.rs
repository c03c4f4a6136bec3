//! What a program of the site inherits from the daemon that starts it: a few variables that are written down here, three
//! descriptors, the root directory, and nothing else. Daemons are started from shells full of secrets (`LD_PRELOAD`, tokens,
//! agents of keys) by administrators who did not mean to hand these on.
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where programs look for others, wherever the daemon was told to.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What passes as the daemon has it: how to show time and words, and where the cluster's file is.
const KEPT: [&str; 5] = ["TZ", "LANG", "LC_ALL", "SPUR_CONF", "SLURM_CONF"];

/// Names the folder of the cluster's own commands, in the environment of the daemons that `spur up` starts.
pub const COMMANDS_FOLDER: &str = "SPUR_BIN";

/// The environment of a program that is given none of its own; the caller adds what it has to tell.
pub fn clean_environment(command: &mut Command) {
    let own = std::env::var(COMMANDS_FOLDER).ok().filter(|folder| folder.starts_with('/') && !folder.contains(':'));
    let path = own.map_or(PATH.to_string(), |folder| format!("{folder}:{PATH}"));
    command.env_clear().env("PATH", path);
    command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
}

/// Signals, file mode mask, directory and descriptors as of a machine's first process.
pub fn reset_inherited(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(|| {
            reset_own();
            Ok(())
        });
    }
}

/// Of this very process. Descriptors go with an exec, so that an error of it can be told; the standard ones stay.
pub fn reset_own() {
    reset_signals();
    // SAFETY: plain calls on valid values.
    unsafe {
        libc::umask(0o022);
        libc::chdir(c"/".as_ptr());
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// None is ignored or blocked, not even those that the C library keeps for itself.
pub fn reset_signals() {
    /// As the kernel writes an action; all zeroes are the default.
    const DEFAULT: [u64; 8] = [0; 8];
    const SET_BYTES: usize = 8;
    const SIGNALS_MAX: libc::c_int = 64;
    // SAFETY: the kernel reads one action, and refuses signals that cannot be changed.
    unsafe {
        for signal in 1..=SIGNALS_MAX {
            let none = std::ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT.as_ptr(), none, SET_BYTES);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}
