//! What a site decides for all jobs, and what jobs ask of the kinds of their nodes, with real processes.
use crate::cluster::Cluster;

const FILE: &str = "kill_on_bad_exit = 1\n\
    [jobs]\nrequeue_exit = \"3\"\nmail_domain = \"example.org\"\nmax_script_bytes = 1000\n\
    [[nodes]]\nnames = \"n[1-2]\"\ncpus = 2\nmemory_mb = 1000\nfeatures = [\"a\"]\n\
    [[nodes]]\nnames = \"n3\"\ncpus = 2\nmemory_mb = 1000\nfeatures = [\"b\"]\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"ALL\"\ndefault = true\n";

#[test]
fn a_sites_rules_hold_where_jobs_say_nothing() {
    let cluster = Cluster::configured(FILE);
    // Its second task would sleep for a minute.
    let fails = "sh -c 'test $SLURM_PROCID = 1 && exec sleep 60; exit 7'";
    let ended = cluster.run(&format!("timeout 40 srun -N1 -n2 {fails}"));
    assert!(ended.code == 143 && ended.err.contains("Terminating StepId="), "{}: {}", ended.code, ended.err);
    let goes_on = cluster.run("srun -K0 -N1 -n2 sh -c 'test $SLURM_PROCID = 0 && exit 7; sleep 1; echo on'");
    assert_eq!((goes_on.out.trim(), goes_on.code), ("on", 7), "{}", goes_on.err);
    let again = cluster.run("timeout 60 sbatch -W -o /dev/null --wrap 'test \"$SLURM_RESTART_COUNT\" = 1 || exit 3'");
    assert_eq!(again.code, 0, "{}", again.err);
    let long = cluster.run("(echo '#!/bin/sh'; head -c 1000 /dev/zero | tr '\\0' '#') | sbatch");
    assert!(long.err.ends_with("other parameter too long\n"), "{}", long.err);
    let held = "scontrol show job $(sbatch -H --parsable --mail-type=END --wrap true) | grep -o 'MailUser=.*'";
    assert!(cluster.ok(held).ends_with("@example.org MailType=END"), "{}", cluster.ok(held));
}

#[test]
fn nodes_of_a_job_are_of_the_kinds_it_asks_for() {
    let cluster = Cluster::configured(FILE);
    let nodes = |constraint: &str, n: u32| {
        cluster.run(&format!("srun -N{n} -C '{constraint}' sh -c 'echo $SLURMD_NODENAME' | sort | tr '\\n' ' '"))
    };
    assert_eq!(nodes("[a|b]", 2).out.trim(), "n1 n2");
    assert_eq!(nodes("[b|a]", 1).out.trim(), "n3");
    assert_eq!(nodes("b*1", 2).out.trim(), "n1 n3");
    assert_eq!(nodes("[a*2&b*1]", 3).out.trim(), "n1 n2 n3");
    let never = cluster.run("sbatch -N3 -C '[a|b]' --wrap true");
    assert!(never.err.contains("Requested node configuration is not available"), "{}", never.err);
    for wrong in ["[a|b", "a*0", "[a|b]&[a|b]", "[a|nosuch]", "nosuch*1"] {
        let refused = cluster.run(&format!("sbatch -C '{wrong}' --wrap true"));
        assert!(refused.err.contains("Invalid feature specification"), "{wrong}: {}", refused.err);
    }
}

#[test]
fn letters_of_accounts_may_be_large_and_idle_nodes_may_be_made_idle() {
    let cluster = Cluster::configured(FILE);
    let shown = cluster.ok("sbatch -H -A MyProject -q NorMal --wrap true > /dev/null; squeue -h -o '%a %q'");
    assert_eq!(shown, "myproject normal");
    cluster.ok("scontrol update nodename=n1 state=down reason=test");
    cluster.ok("scontrol update nodename=n[1-3] state=idle reason=test");
    assert_eq!(cluster.ok("sinfo -h -o %T"), "idle");
    assert_eq!(cluster.run("scontrol update nodename=n1 state=resume").code, 1);
}
