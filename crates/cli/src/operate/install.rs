//! `spur install`: the binary, its names and the systemd units, where a system expects them.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::folder::{cannot, replace_link};
use super::{Call, options};
use crate::getopt::{Value, flag};

const BIN: &str = "usr/local/bin";
const UNITS: &str = "etc/systemd/system";
const USERS: &str = "usr/lib/sysusers.d";

/// Jobs outlive their agent: only the daemon itself is ended with its unit. Jobs inherit what their agent is kept from, so it is
/// kept from nothing that a job may do.
const AGENT_UNIT: &str = "\
[Unit]
Description=Spur agent: runs the jobs of this node
After=network-online.target
Wants=network-online.target
ConditionPathExists=/etc/spur/spur.conf

[Service]
ExecStart=/usr/local/bin/spurd --config /etc/spur/spur.conf
KillMode=process
Delegate=yes
OOMPolicy=continue
Restart=always
RestartSec=1
RuntimeDirectory=spur
RuntimeDirectoryPreserve=yes
LimitNOFILE=1048576
LimitMEMLOCK=infinity
LimitSTACK=infinity
TasksMax=infinity

[Install]
WantedBy=multi-user.target
";

const CONTROLLER_UNIT: &str = "\
[Unit]
Description=Spur controller
After=network-online.target
Wants=network-online.target
ConditionPathExists=/etc/spur/spur.conf

[Service]
ExecStart=/usr/local/bin/spurctld --config /etc/spur/spur.conf
Restart=always
RestartSec=1
TimeoutStopSec=20
RuntimeDirectory=spur
RuntimeDirectoryPreserve=yes
StateDirectory=spur
StateDirectoryMode=0700
LimitNOFILE=1048576
ProtectSystem=full
ProtectControlGroups=yes
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_PTRACE CAP_MKNOD
CapabilityBoundingSet=~CAP_LINUX_IMMUTABLE CAP_SYSLOG CAP_WAKE_ALARM CAP_BPF CAP_PERFMON CAP_MAC_ADMIN CAP_MAC_OVERRIDE

[Install]
WantedBy=multi-user.target
";

/// What a controller never does. Under a user's identity these lines end the power of setuid and setgid programs, too.
const FILTERS: &str = "\
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateDevices=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @mount @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
";

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [
        flag("root", None, Value::Required),
        flag("user", None, Value::Required),
        flag("setuid-programs", None, Value::None),
    ];
    let parsed = options(&flags, call.arguments)?;
    let user = parsed.value("user").unwrap_or_default();
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return Err(format!("{user:?} cannot be a user's name"));
    }
    let runs_setuid = parsed.has("setuid-programs");
    if runs_setuid && user.is_empty() {
        return Err("--setuid-programs is for a controller that runs as another user: name it with --user".into());
    }
    let root = PathBuf::from(parsed.value("root").unwrap_or("/"));
    let bin = root.join(BIN);
    make(&bin)?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = bin.join("spur");
    let is_there = own.canonicalize().ok() == target.canonicalize().ok();
    if !is_there {
        // A running binary cannot be overwritten, but replaced: upgrades need no stop.
        let fresh = bin.join("spur.new");
        fs::copy(&own, &fresh).map_err(|error| cannot("write", &fresh, error))?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755))
            .map_err(|error| cannot("write", &fresh, error))?;
        fs::rename(&fresh, &target).map_err(|error| cannot("write", &target, error))?;
    }
    let mut foreign = Vec::new();
    for name in call.command_names.iter().filter(|name| **name != "spur") {
        let link = bin.join(name);
        match fs::symlink_metadata(&link) {
            Ok(found) if !found.is_symlink() => foreign.push(*name),
            _ => replace_link(Path::new("spur"), &link)?,
        }
    }
    let units = root.join(UNITS);
    make(&units)?;
    for (name, text) in
        [("spurctld.service", controller_unit(user, runs_setuid)), ("spurd.service", AGENT_UNIT.to_owned())]
    {
        fs::write(units.join(name), text).map_err(|error| cannot("write", &units.join(name), error))?;
    }
    if !user.is_empty() {
        let dir = root.join(USERS);
        make(&dir)?;
        let text = format!("u {user} - \"Spur controller\" /var/lib/spur\n");
        fs::write(dir.join("spur.conf"), text).map_err(|error| cannot("write", &dir.join("spur.conf"), error))?;
        say!("the controller runs as {user}: `systemd-sysusers` makes that user, and its state must be {user}'s");
        if !runs_setuid {
            say!("mail programs with setuid or setgid bits do not work under it: --setuid-programs lets them");
        }
    }
    make(&root.join("etc/spur"))?;
    say!(
        "{} and {} names for it; units spurctld.service and spurd.service",
        target.display(),
        call.command_names.len() - 1 - foreign.len()
    );
    if !foreign.is_empty() {
        say!("left alone, because other programs have these names: {}", foreign.join(" "));
    }
    say!(
        "next: put the configuration at /etc/spur/spur.conf, then  systemctl daemon-reload && systemctl enable --now spurctld (or spurd)"
    );
    Ok(0)
}

/// Root needs no line.
fn controller_unit(user: &str, runs_setuid: bool) -> String {
    let unit = match runs_setuid {
        true => CONTROLLER_UNIT.to_owned(),
        false => CONTROLLER_UNIT.replace("\n[Install]", &format!("{FILTERS}\n[Install]")),
    };
    match user {
        "" => unit,
        user => unit.replace("[Service]\n", &format!("[Service]\nUser={user}\n")),
    }
}

fn make(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| cannot("make", dir, error))
}
