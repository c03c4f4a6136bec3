//! What clients and administrators' tools ask the commands, and what these say to it.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cluster::{Cluster, is_root};

const SITE: &str = "[[nodes]]\nnames = \"n[1-2]\"\ncpus = 2\nmemory_mb = 1000\ngres = \"gpu:2\"\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n\
    [[partitions]]\nname = \"hid\"\nnodes = \"n1\"\nhidden = true\n\
    [scheduler]\npriority = \"multifactor\"\nweight_age = 100\n";

#[test]
fn history_fields_have_their_second_names() {
    let cluster = Cluster::configured(SITE);
    assert_eq!(cluster.ok("sacct -nP -j 99 --fields=jobid,state; sacct -P -j 99 --fields=jobid,state"), "JobID|State");
    assert_eq!(cluster.ok("sacct --help-fields"), cluster.ok("sacct --helpformat"));
    assert!(cluster.ok("sacct --helpstate").contains("OUT_OF_MEMORY"));
    assert!(cluster.ok("sacct --helpreason").starts_with("None "));
    assert_eq!(cluster.ok("squeue --helpstate | head -2"), "pending\nrunning");
    assert!(cluster.ok("sinfo --helpFormat").contains("statecompact"));
    assert!(cluster.ok("sprio --helpformat").contains("%i    "));
    assert_eq!(cluster.ok("sbatch --autocomplete=--exclusive").trim_end(), "--exclusive=\n--exclusive");
    let job = cluster.sbatch("-H --wrap true");
    cluster.ok(&format!("scancel --cron {job}"));
    cluster.wait_until(&format!("sacct -X -n -P -j {job} -o state,start"), |said| said.out.contains("CANCELLED"));
    assert!(cluster.ok(&format!("sacct -X -n -P -j {job} -o start")).ends_with("None"));
    cluster.ok("sdiag --no-trunc");
    let heading = cluster.ok("sreport -T cpu cluster utilization; sreport -T cpu job sizesbyaccount");
    assert!(heading.contains("Usage reported in TRES Minutes") && heading.contains("TRES type is cpu\n"), "{heading}");
}

#[test]
fn sattach_tells_a_debugger_where_the_tasks_are() {
    let cluster = Cluster::configured(SITE);
    let job = cluster.sbatch("-N2 -n2 -o /dev/null --wrap 'srun sleep 600'");
    cluster.wait_for(&format!("squeue -h -s -j {job} -o %i | grep -v batch | grep -v extern"), &format!("{job}.0"));
    let enough = |said: &crate::cluster::Said| said.err.lines().count() == 2;
    let said = cluster.wait_until(&format!("sattach --debugger-test {job}.0"), enough);
    for (rank, node) in ["n1", "n2"].iter().enumerate() {
        let line = said.err.lines().nth(rank).unwrap();
        assert!(line.starts_with(&format!("sattach: task:{rank}, host:{node}, pid:")), "{line}");
        assert!(line.ends_with(", executable:sleep"), "{line}");
        let pid: i32 = line.split("pid:").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        assert!(crate::cluster::is_alive(pid));
    }
}

#[test]
fn waiting_job_is_told_when_it_would_start() {
    let cluster = Cluster::configured(SITE);
    let first = cluster.sbatch("-N2 --exclusive -t 5 -o /dev/null --wrap 'sleep 600'");
    cluster.wait_state(&first, "RUNNING");
    let said = cluster.run("sbatch --test-only -N2 -n4 -t 10 --wrap true");
    let job = cluster.sbatch("-N2 -n4 -t 10 --wrap true");
    let shown = cluster.wait_until(&format!("squeue -h --start -j {job} -o '%S'"), |said| said.out.starts_with("20"));
    let start = shown.out.trim();
    let expected =
        format!("sbatch: Job {job} to start at {start} using 4 processors on nodes n[1-2] in partition main\n");
    assert_eq!((said.err.as_str(), said.code), (expected.as_str(), 0), "{said:?}");
}

#[test]
fn reservation_may_begin_when_the_last_job_is_shown_to_end() {
    let cluster = Cluster::configured(SITE);
    let job = cluster.sbatch("-w n1 -t 5 -o /dev/null --wrap 'sleep 600'");
    cluster.wait_state(&job, "RUNNING");
    let end = cluster.ok(&format!("scontrol show job {job} | grep -o 'EndTime=[^ ]*' | tail -1 | cut -d= -f2"));
    let early = cluster.run(&format!(
        "scontrol create res=e starttime=$(date -d '{end} 1 second ago' +%FT%T) duration=5 nodes=n1 user=root"
    ));
    assert!(early.err.contains("Requested nodes are busy"), "{early:?}");
    let said = cluster.ok(&format!("scontrol create res=r starttime={end} duration=5 nodes=n1 user=root"));
    assert_eq!(said, "Reservation created: r");
}

#[test]
fn devices_hidden_partitions_and_the_queue_are_shown_to_administrators() {
    let cluster = Cluster::configured(SITE);
    assert!(cluster.ok("scontrol show partition main").contains("TRES=cpu=4,mem=2000M,node=2,billing=4,gres/gpu=4"));
    let tres = "billing=4,cpu=4,energy=0,fs/disk=0,gres/gpu=4,mem=2000M,node=2,pages=0,vmem=0";
    assert_eq!(cluster.ok("sacctmgr -nP show cluster format=tres"), tres);
    // Whoever runs the cluster is its SlurmUser.
    assert_eq!(cluster.ok("sinfo -h -o %R | sort | uniq | tr '\\n' ' '"), "hid main");
    assert!(cluster.ok("scontrol show partition").contains("PartitionName=hid"));
    let held = cluster.sbatch("-p hid -H --wrap true");
    assert_eq!(cluster.ok("squeue -h -o %i"), held);
    cluster.sbatch("--begin=now+1hour --wrap true");
    let array = cluster.sbatch("-a 0-3%1 -n4 -o /dev/null --wrap 'sleep 600'");
    cluster.sbatch(&format!("-d afterok:{array} --wrap true"));
    let waits = cluster.sbatch("-n4 -w n1,n2 -N2 --wrap true");
    cluster.wait_for(&format!("squeue -h -j {waits} -o %r"), "Resources");
    assert_eq!(cluster.ok("sprio -h -o %i | tr -d ' '"), waits);
    if is_root() {
        let seen =
            cluster.ok("chmod 755 .. && setpriv --reuid=65534 --regid=65534 --clear-groups sinfo -h -o %R | sort -u");
        assert_eq!(seen, "main");
    }
}

#[test]
fn tasks_that_are_not_there_are_named() {
    let cluster = Cluster::configured(SITE);
    let job = cluster.sbatch("-H -a 3-6 --wrap true");
    let said = cluster.run(&format!("scancel {job}_[1-4]"));
    assert_eq!((said.err.as_str(), said.code), ("", 0));
    let said = cluster.run(&format!("scancel -v {job}_[5-20]"));
    let expected = format!(
        "scancel: Terminating job {job}_[5-20]\n\
         scancel: error: Kill job error on job id {job}_[5-20]: Invalid job id specified\n"
    );
    assert_eq!((said.err.as_str(), said.code), (expected.as_str(), 0));
}

#[test]
fn burst_buffer_lines_without_buffers_are_named() {
    let cluster = Cluster::configured(SITE);
    cluster.ok("printf '#!/bin/sh\\n#DW jobdw capacity=1GB\\ntrue\\n' > script");
    let said = cluster.run("sbatch -H script");
    let expected = "sbatch: warning: line 2: #DW jobdw capacity=1GB: this cluster has no burst buffers\n";
    assert_eq!((said.err.as_str(), said.code), (expected, 0), "{said:?}");
}

#[test]
fn programs_of_triggers_find_the_clusters_commands() {
    let cluster = Cluster::configured(SITE);
    let path = cluster.dir.join("program");
    let told = cluster.dir.join("work/told");
    let body = format!("#!/bin/sh\nsinfo -h -o %P > {0}.new && mv {0}.new {0}\n", told.display());
    cluster.ok("true");
    fs::write(&path, body).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let warned = cluster.run(&format!("strigger --set -g -p {}", path.display()));
    assert!(warned.code == 0 && warned.err.contains("primary_slurmdbd_failure never happens"), "{warned:?}");
    cluster.ok(&format!("strigger --set --resume -n n1 -p {}", path.display()));
    cluster.ok(&format!("strigger --set --draining -p {}", path.display()));
    let types = cluster.ok("strigger --get -N | tr -s ' ' | cut -d' ' -f 3,5");
    assert_eq!(types, "slurmdbd primary_slurmdbd_failure\nnode resume\nnode draining");
    cluster.ok("scontrol update nodename=n1 state=drain reason=x && scontrol update nodename=n1 state=resume");
    cluster.wait_file("told", |text| text.contains("main*"));
}
