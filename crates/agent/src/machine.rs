//! What this machine is, as the controller is told.
use std::ffi::CStr;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::agent::Load;
use model::node::Machine;

use crate::{Options, sys};

pub fn describe(options: &Options) -> Machine {
    // SAFETY: uname fills the struct; all its fields are NUL-ended.
    let (hostname, architecture, system) = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&mut names);
        let text = |field: &[libc::c_char]| CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        (
            text(&names.nodename),
            text(&names.machine),
            format!("{} {} {}", text(&names.sysname), text(&names.release), text(&names.version)),
        )
    };
    Machine {
        hostname,
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_mb: field_of("/proc/meminfo", "MemTotal:").unwrap_or(0) / 1024,
        architecture,
        system,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        booted: field_of("/proc/stat", "btime").map(Timestamp::from_secs),
        boot_id: match options.reports_reboot {
            false => fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
            true => format!("{}-{}", std::process::id(), now().0),
        },
        agent_started: Some(now()),
        socket: std::path::absolute(&options.socket).unwrap_or_else(|_| options.socket.clone()).display().to_string(),
        address: String::new(),
        pools: Vec::new(),
        topology: options.topology.clone(),
        dynamic: options.dynamic.clone(),
        runs_only: Some(sys::own_uid()).filter(|uid| *uid != 0),
        unconfined: confine::shortcomings().into_iter().map(str::to_owned).collect(),
    }
}

/// How busy it is at this moment.
pub fn load() -> Load {
    let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let average: f64 = average.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let free_kib = field_of("/proc/meminfo", "MemFree:").unwrap_or(0);
    Load { cpu_hundredths: (average * 100.0).round() as u32, free_mb: free_kib / 1024 }
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64))
}

fn field_of(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse().ok()
}
