//! What a real Slurm answered to the same commands, word for word (`tests/golden`, recorded by running one).
use crate::cluster::{Cluster, is_root};

/// The recorded Slurm's nodes and partitions.
const CONF: &str = "cluster_name = \"oracle\"\n\
    [[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 4000\nfeatures = [\"fast\", \"amd\"]\n\
    [[nodes]]\nnames = \"n[5-6]\"\ncpus = 8\nmemory_mb = 4000\nfeatures = [\"big\"]\n\
    [[nodes]]\nnames = \"n[7-8]\"\ncpus = 8\nmemory_mb = 4000\nfeatures = [\"big\"]\ngres = \"gpu:2\"\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"n[1-8]\"\ndefault = true\n\
    [[partitions]]\nname = \"down\"\nnodes = \"n[1-8]\"\nstate = \"DOWN\"\n";

/// Command, standard error, exit code.
fn recorded() -> Vec<(&'static str, String, i32)> {
    let mut all = Vec::new();
    let (mut command, mut said) = ("", String::new());
    for line in include_str!("../golden/refusals.txt").lines() {
        if let Some(next) = line.strip_prefix("$ ") {
            (command, said) = (next, String::new());
        } else if let Some(code) = line.strip_prefix("= ") {
            all.push((command, std::mem::take(&mut said), code.parse().expect("an exit code")));
        } else if !line.starts_with('#') {
            said.push_str(line);
            said.push('\n');
        }
    }
    all
}

#[test]
fn refusals_are_those_of_a_real_slurm() {
    let cluster = Cluster::configured(CONF);
    cluster.ok("printf '#!/bin/sh\\ntrue\\n' > ok.sh");
    let all = recorded();
    assert!(all.len() > 180, "{} recordings", all.len());
    // All in one shell: what each prints goes to a file of its own.
    let script: String = all
        .iter()
        .enumerate()
        .map(|(at, (command, ..))| format!("( {command} ) </dev/null >out.{at} 2>err.{at}; echo $? >code.{at}\n"))
        .collect();
    cluster.ok(&format!("cat > all.sh <<'END'\n{script}END\nbash all.sh"));
    let mut differ = Vec::new();
    for (at, (command, said, code)) in all.iter().enumerate() {
        if command.contains("--uid") && !is_root() {
            eprintln!("SKIPPED: {command}: recorded as root");
            continue;
        }
        let got =
            (cluster.file(&format!("err.{at}")), cluster.file(&format!("code.{at}")).trim().parse().unwrap_or(-1));
        if (&got.0, got.1) != (said, *code) {
            differ.push(format!("$ {command}\n  Slurm: {code} {said:?}\n  here:  {} {:?}", got.1, got.0));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), all.len(), differ.join("\n"));
}
