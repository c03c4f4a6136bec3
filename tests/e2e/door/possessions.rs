//! What a victim has and what belongs to the site: looked at before and after others have walked.
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::walkers::{VICTIM, WalkerRights};
use crate::cluster::{Cluster, is_root};

/// A thing, and what it looked like.
pub type Possession = (String, String);

/// A job that waits, one that has run, a trigger and a file of the victim's; the job that waits.
pub fn endow(head: &Cluster) -> String {
    let home = head.dir.join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("diary"), "nobody reads this").unwrap();
    fs::write(home.join("program"), "#!/bin/sh\n").unwrap();
    if is_root() {
        head.ok(&format!("chown -R {0}:{0} {1} && chmod 700 {1}", VICTIM.1, home.display()));
    }
    let done = head.ok(&as_victim("sbatch --parsable -D / -o /dev/null -J past --comment kept --wrap true"));
    head.wait_until(&format!("sacct -nP -j {done} -o State"), |said| said.out.starts_with("COMPLETED"));
    let job = head.ok(&as_victim("sbatch --parsable -H -D / -o /dev/null -J victim --comment precious --wrap true"));
    // Users set none: it is the site's, about the victim's job.
    head.ok(&format!("strigger --set -j {job} --fini -p {}/program", home.display()));
    job
}

fn as_victim(line: &str) -> String {
    match is_root() {
        true => format!("setpriv --reuid={0} --regid={0} --clear-groups {line}", VICTIM.1),
        false => line.to_owned(),
    }
}

/// What nobody with these rights may change.
pub fn possessions(head: &Cluster, job: &str, rights: WalkerRights) -> Vec<Possession> {
    let of_the_site = [
        // What a partition's nodes have together, a node may say for itself.
        "scontrol show partition | grep -vi total".to_owned(),
        // The other node, which nobody walks from.
        "sinfo -h -N -n a2 -o '%N %f %G %E'".into(),
        format!("cat {0}/spur.conf {0}/state/tls/ca.pem", head.dir.display()),
        "sacctmgr -nP show qos".into(),
    ];
    let of_the_victim = [
        format!("squeue -h -j {job} -o '%i %j %u %T %r %k %Q %l %P %v'"),
        format!("sacct -nP -u {} -n -o JobID,JobName,State,ExitCode,Comment,Account,Start,End", victim_name(head)),
        format!("strigger --get -j {job} | grep {}/home | tr -s ' '", head.dir.display()),
        "scontrol show reservation".into(),
        "sacctmgr -nP show assoc".into(),
        "sacctmgr -nP show user".into(),
    ];
    let lines: Vec<String> = match rights {
        WalkerRights::None => of_the_site.into_iter().chain(of_the_victim).collect(),
        WalkerRights::Jobs => of_the_site.into(),
        WalkerRights::All => Vec::new(),
    };
    let mut found: Vec<Possession> = lines.into_iter().map(|line| (line.clone(), head.ok(&line))).collect();
    found.push(("the victim's files".into(), tree(&head.dir.join("home"))));
    found
}

fn victim_name(head: &Cluster) -> String {
    if is_root() { VICTIM.0.to_owned() } else { head.ok("id -un") }
}

/// Names, owners, modes, lengths and contents of all below.
fn tree(at: &Path) -> String {
    let about = fs::symlink_metadata(at).unwrap();
    let mut text = format!("{} {} {} {:o} {}\n", at.display(), about.uid(), about.gid(), about.mode(), about.mtime());
    if about.is_dir() {
        let mut below: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
        below.sort();
        below.iter().for_each(|path| text += &tree(path));
    } else if about.is_file() {
        text += &String::from_utf8_lossy(&fs::read(at).unwrap());
    }
    text
}

/// A process that must neither end nor be another one afterwards.
#[derive(Debug, PartialEq, Eq)]
pub struct LivingDaemon {
    pub name: String,
    pub pid: i32,
    /// In the kernel's ticks since it began.
    started: String,
}

impl LivingDaemon {
    pub fn new(name: &str, pid: i32) -> LivingDaemon {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let after_name = stat.rsplit_once(')').expect("a name in brackets").1;
        let started = after_name.split_whitespace().nth(19).expect("the time it started").to_owned();
        LivingDaemon { name: name.into(), pid, started }
    }

    /// The most that it ever had resident.
    pub fn resident_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) >> 10
    }
}

/// Every line of a machine's daemons that tells of a fault of their own.
pub fn faults_in_logs(machine: &Cluster) -> Vec<String> {
    let Ok(files) = fs::read_dir(machine.dir.join("log")) else { return Vec::new() };
    let texts = files.flatten().map(|file| String::from_utf8_lossy(&fs::read(file.path()).unwrap()).into_owned());
    let is_fault = |line: &&str| ["panicked at", "a bug:", "stack overflow"].iter().any(|word| line.contains(word));
    texts.flat_map(|text| text.lines().filter(is_fault).map(str::to_owned).collect::<Vec<_>>()).collect()
}
