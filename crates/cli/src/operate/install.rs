//! `spur install`: the binary, its names and the systemd units, where a system expects them.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Config;
use model::pool::Plugin;

use super::folder::{cannot, replace_link};
use super::{Call, options};
use crate::getopt::{Value, flag};

const BIN: &str = "usr/local/bin";
const UNITS: &str = "etc/systemd/system";
const USERS: &str = "usr/lib/sysusers.d";

/// Jobs outlive their agent: only the daemon itself is ended with its unit. Jobs inherit what their agent is kept from, so it is
/// kept from nothing that a job may do. It makes `/run/spur` itself: as a `RuntimeDirectory` of both units, the
/// directory would become that of whichever started last.
const AGENT_UNIT: &str = "\
[Unit]
Description=Spur agent: runs the jobs of this node
# The agent is root, since it runs jobs of all users. Filters, name spaces, and limits of capabilities would be those of
# its jobs, too; what keeps jobs in bounds is in spur.conf (see SECURITY.md).
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
UMask=0022
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
UMask=0022
KeyringMode=private
ProtectSystem=full
ProtectControlGroups=yes
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_PTRACE CAP_MKNOD
CapabilityBoundingSet=~CAP_LINUX_IMMUTABLE CAP_SYSLOG CAP_WAKE_ALARM CAP_BPF CAP_PERFMON CAP_MAC_ADMIN CAP_MAC_OVERRIDE

[Install]
WantedBy=multi-user.target
";

/// What a controller never does. Under a user's identity these lines end the power of setuid and setgid programs, too.
const FILTERS: &str = "\
NoNewPrivileges=yes
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
SystemCallFilter=~@clock @cpu-emulation @debug @keyring @module @mount @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
";

/// Programs that a controller of its own user starts are that user's: no homes, and no files of others in /tmp.
const OWN_PLACES: &str = "\
ProtectHome=yes
PrivateTmp=yes
";

/// Whose unit says nothing else.
const USUAL_USER: &str = "spur";
/// What asks for a controller as root, in its unit.
const WHY_NOT_ROOT: &str = "\
# The controller needs root for these alone: users' triggers (users_set_triggers), and site programs that do
# what only root may (burst_buffer lua and datawarp, controller_prolog). `spur install --user root` is for them.
";

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [
        flag("root", None, Value::Required),
        flag("user", None, Value::Required),
        flag("setuid-programs", None, Value::None),
    ];
    let parsed = options(&flags, call.arguments)?;
    let root = PathBuf::from(parsed.value("root").unwrap_or("/"));
    let (user, why) = match parsed.value("user") {
        Some(user) => (user, None),
        None => usual_user(&root),
    };
    let user = if user == "root" { "" } else { user };
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return Err(format!("{user:?} cannot be a user's name"));
    }
    let runs_setuid = parsed.has("setuid-programs");
    if runs_setuid && user.is_empty() {
        return Err("--setuid-programs is for a controller that runs as another user: name it with --user".into());
    }
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
    if let Some(why) = why {
        say!("the controller runs as root: {why}; `--user {USUAL_USER}` has it run as {USUAL_USER}");
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

/// Whom the controller runs as where nobody said so, and why it is root if it is.
fn usual_user(root: &Path) -> (&'static str, Option<&'static str>) {
    let unit = fs::read_to_string(root.join(UNITS).join("spurctld.service")).unwrap_or_default();
    if !unit.is_empty() && !unit.contains("\nUser=") {
        return ("root", Some("its unit had it so"));
    }
    match config::load(&root.join("etc/spur/spur.conf")).ok().and_then(|config| needs_root(&config)) {
        Some(why) => ("root", Some(why)),
        None => (USUAL_USER, None),
    }
}

/// What a configuration asks of a controller that only root can do.
fn needs_root(config: &Config) -> Option<&'static str> {
    let has_scripts = config.burst_buffer.as_ref().is_some_and(|burst| burst.plugin != Plugin::Native);
    [
        // Systemd gives the controller's user all that is below its state.
        (config.agent.spool_dir.starts_with("/var/lib/spur"), "its agents keep their spool below /var/lib/spur"),
        (config.jobs.users_set_triggers, "users_set_triggers has it run programs of users"),
        (has_scripts, "its burst buffer's programs may need root"),
        (!config.hooks.controller_prolog.is_empty(), "its controller_prolog may need root"),
        (!config.hooks.controller_epilog.is_empty(), "its controller_epilog may need root"),
    ]
    .into_iter()
    .find_map(|(is_so, why)| is_so.then_some(why))
}

/// Root needs no line.
fn controller_unit(user: &str, runs_setuid: bool) -> String {
    let unit = match runs_setuid {
        true => CONTROLLER_UNIT.to_owned(),
        false => CONTROLLER_UNIT.replace("\n[Install]", &format!("{FILTERS}\n[Install]")),
    };
    match user {
        "" => unit,
        user => unit
            .replace("[Service]\n", &format!("[Service]\n{WHY_NOT_ROOT}User={user}\n"))
            .replace("\n[Install]", &format!("{OWN_PLACES}\n[Install]")),
    }
}

fn make(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| cannot("make", dir, error))
}
