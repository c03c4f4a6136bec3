//! Secrets that a cluster must have: they are in its journal and nowhere that somebody else looks.
use std::fs;
use std::path::Path;

use super::answers::{all_answers, family, files_below};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{free_port, join};

const NOBODY: u32 = 65_534;
/// In the job's script, environment and the site's prolog, and nowhere else.
const PLANTED: &str = "xyzzy-planted";

/// What follows these bytes.
fn after<'a>(whole: &'a [u8], mark: &[u8], n_bytes: usize) -> &'a [u8] {
    let at = whole.windows(mark.len()).position(|window| window == mark).expect("the mark is there");
    &whole[at + mark.len()..][..n_bytes]
}

/// The keys of the authority and of the tokens, as a backup holds them.
fn keys(head: &Cluster) -> Vec<(&'static str, Vec<u8>)> {
    head.ok("spur backup keys.backup");
    let backup = fs::read(head.dir.join("work/keys.backup")).unwrap();
    fs::remove_file(head.dir.join("work/keys.backup")).unwrap();
    let pem = after(&backup, b"PRIVATE KEY-----", 60).trim_ascii_start().to_vec();
    // A value of 32 bytes, after its name.
    let jwt = after(&backup, b"jwt_key\xc4\x20", 32).to_vec();
    vec![("the authority's key", pem), ("the key of tokens", jwt)]
}

/// What holds the key as it is, or as a log would print bytes.
fn holds(text: &[u8], secret: &[u8]) -> bool {
    let as_list = secret.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let as_hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    [secret, as_list.as_bytes(), as_hex.as_bytes()]
        .iter()
        .any(|form| text.windows(form.len()).any(|window| window == *form))
}

/// These must have what they are for: the log, what was started and is to start, keys, the site's own files.
fn may_hold(file: &Path) -> bool {
    let names = ["journal", "spool", "tls", "work", "bin"];
    file.components().any(|part| names.iter().any(|name| part.as_os_str() == *name))
        || file.file_name().is_some_and(|name| name == "spur.conf")
}

#[test]
fn secrets_of_keys_and_jobs_are_told_nobody_else() {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    let said = head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    let word = said.rsplit_once(' ').unwrap().1.to_owned();
    let node = join(&word, "--node a1 --cpus 4 --memory 1G");
    // All that the logs can say.
    head.ok("scontrol setdebug debug5");
    for flag in ["Protocol", "TraceJobs", "Steps", "Agent", "Script", "Triggers", "Backfill"] {
        head.run(&format!("scontrol setdebugflags +{flag}"));
    }
    let token = head.ok("scontrol token lifespan=600");
    // By now there is a key that signs tokens.
    let mut secrets = keys(&head);
    secrets.push(("a user's token", token.trim_start_matches("SLURM_JWT=").as_bytes().to_vec()));
    let join_word = head.ok("spur token").split_whitespace().last().unwrap().to_owned();
    secrets.push(("a join token", join_word.into_bytes()));
    secrets.push(("the first join token", word.into_bytes()));
    secrets.push(("a job's script and environment", PLANTED.as_bytes().to_vec()));
    let script = format!("#!/bin/sh\n# {PLANTED} of the script\nsrun -D / true\nsleep 1000\n");
    fs::write(head.dir.join("work/job.sh"), script).unwrap();
    let job = head.ok(&format!("PASSWORD={PLANTED} sbatch --parsable -D / -o /dev/null job.sh"));
    head.wait_state(&job, "RUNNING");
    let failing = head.ok(&format!("PASSWORD={PLANTED} sbatch --parsable -D /none -o /none/out job.sh"));
    head.wait_until(&format!("squeue -h -t all -j {failing} -o %T"), |said| said.out.trim() != "PENDING");
    let mut told = all_answers(&head, 0);
    if is_root() {
        told.extend(all_answers(&head, NOBODY));
    }
    for line in [
        "squeue -o %all",
        "squeue --json",
        "scontrol show job -d",
        "scontrol show job --json",
        "scontrol show step",
        "scontrol show config",
        "scontrol show node",
        "sacct -a -P -o ALL",
        "sacct -a --json",
        "sdiag",
        "spur audit --all",
        "spur status",
        "spur why 1",
    ] {
        let said = head.run(line);
        told.push((line.to_owned(), format!("{}{}", said.out, said.err).into_bytes()));
    }
    for (file, content) in files_below(&head.dir).into_iter().chain(files_below(&node.0.dir)) {
        if !may_hold(&file) {
            told.push((file.display().to_string(), content));
        }
    }
    let logs = told.iter().filter(|(place, _)| place.ends_with(".log")).map(|(_, text)| text.len()).sum::<usize>();
    assert!(logs > 1000, "there are no logs: {:?}", told.iter().map(|(place, _)| place).collect::<Vec<_>>());
    for pid in family(head.controller_pid()).into_iter().chain(family(node.0.agent_pid("a1"))) {
        told.push((format!("cmdline of {pid}"), fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()));
    }
    let mut leaks = Vec::new();
    for (what, secret) in &secrets {
        assert!(secret.len() >= 10, "{what}: {secret:?}");
        leaks.extend(told.iter().filter(|(_, said)| holds(said, secret)).map(|(place, _)| format!("{what}: {place}")));
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
    head.ok(&format!("scancel {job}"));
}
