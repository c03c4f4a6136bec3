//! Real bytes through burst buffers: staged in, used, staged out, compared; through kills of everything that moves them.
use std::fs;

use crate::burst::empty;
use crate::cluster::kill_9;

const PRIVATE: &str = r#"#!/bin/sh
#SBATCH -N 2 --ntasks-per-node=1 -o private.out
#DW jobdw capacity=8MiB access_mode=private pool=local
#DW stage_in type=directory source=input destination=$DW_JOB_PRIVATE/in
#DW stage_out type=directory source=$DW_JOB_PRIVATE/in destination=back-%n
srun sh -c 'echo "$SLURMD_NODENAME $SPUR_BB_PATH $(ls $DW_JOB_PRIVATE/in/sub | wc -l)"; echo $SLURMD_NODENAME > $DW_JOB_PRIVATE/in/who'
"#;

#[test]
fn every_node_has_its_own_copy_and_brings_its_own_results_back() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    burst.fill("input/sub", 50, 20_000);
    burst.write("private.sh", PRIVATE);
    let job = cluster.sbatch("private.sh");
    let watched = cluster.ok(&format!("spur stage watch {job}"));
    assert!(watched.contains(&format!("JobId={job} ")) && watched.contains("complete"), "{watched}");
    cluster.wait_state(&job, "COMPLETED");
    let said = cluster.file("private.out");
    for node in ["n1", "n2"] {
        let line = said.lines().find(|line| line.starts_with(node)).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(&format!("/{node}/jobs/{job}.")) && line.ends_with("/private 50"), "{line}");
        assert_eq!(cluster.file(&format!("back-{node}/who")), format!("{node}\n"));
        cluster.ok(&format!("diff -r input/sub back-{node}/sub"));
        let pool = line.split_whitespace().nth(1).unwrap().split("/jobs/").next().unwrap();
        for name in ["jobs", ".spur", ".trash"] {
            assert_eq!(fs::read_dir(format!("{pool}/{name}")).unwrap().count(), 0, "{pool}/{name}");
        }
    }
    let shown = cluster.ok("scontrol show burstbuffer");
    assert!(!shown.contains("Allocated Buffers"), "{shown}");
    assert_ne!(cluster.run("spur stage watch 77").code, 0);
    assert_ne!(cluster.run("spur stage watch").code, 0);
}

const SHARED: &str = r#"#!/bin/sh
#SBATCH -o shared.out
#DW jobdw capacity=40MiB access_mode=striped pool=flash
#DW stage_in type=directory source=input destination=$DW_JOB_STRIPED/in
#DW stage_out type=directory source=$DW_JOB_STRIPED/in destination=back
cat $DW_JOB_STRIPED/in/sub/* | wc -c
exit 3
"#;

#[test]
fn kills_of_controller_and_agents_while_data_moves_cost_no_byte() {
    let burst = empty(2, "bandwidth = \"1MiB\"");
    let cluster = &burst.cluster;
    burst.fill("input/sub", 300, 30_000);
    burst.write("shared.sh", SHARED);
    let job = cluster.sbatch("shared.sh");
    let wait = |state: &str| {
        cluster.wait_until(&format!("scontrol show job {job}"), |said| {
            said.out.contains(&format!("BurstBufferState={state}"))
        });
    };
    for state in ["staging-in", "staging-out"] {
        wait(state);
        kill_9(cluster.controller_pid());
        kill_9(cluster.agent_pid("n1"));
        kill_9(cluster.agent_pid("n2"));
        cluster.start("");
    }
    cluster.wait_state(&job, "FAILED");
    assert_eq!(cluster.file("shared.out"), "9000000\n");
    cluster.ok("diff -r input back");
    // The job has ended; its space comes back when the directory is gone.
    cluster.wait_until("scontrol show burstbuffer", |said| {
        said.out.contains("TotalSpace=") && !said.out.contains("Allocated Buffers")
    });
}

#[test]
fn what_cannot_be_staged_in_holds_the_job_with_the_reason_and_a_release_tries_again() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    burst.fill("input/sub", 3, 1000);
    burst.write("private.sh", &PRIVATE.replace("source=input", "source=missing"));
    let job = cluster.sbatch("private.sh");
    let shown = format!("scontrol show job {job}");
    let is_held = |out: &str| out.contains("failed:") && out.contains("JobState=PENDING");
    let said = cluster.wait_until(&shown, |said| is_held(&said.out));
    assert!(said.out.contains("missing: No such file or directory"), "{said:?}");
    cluster.ok("mv input missing; ln -s missing input");
    cluster.ok(&format!("scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
    cluster.ok("diff -r missing/sub back-n1/sub");
}

#[test]
fn an_allocation_is_given_with_its_buffer_and_told_where_it_is() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    let said =
        cluster.ok("salloc -Q --bb='capacity=1MiB pool=local' sh -c 'echo $DW_JOB_PRIVATE; ls -d $SPUR_BB_PATH'");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1] && lines[0].contains("/n1/jobs/1."), "{said}");
}

#[test]
fn data_is_given_up_where_the_environment_says_so() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    burst.write("shared.sh", &SHARED.replace("exit 3", "sleep 300").replace("#DW stage_in", "#"));
    let job = cluster.sbatch("shared.sh");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok(&format!("SCANCEL_HURRY=1 scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    cluster.wait_until("scontrol show burstbuffer", |said| !said.out.contains("Allocated Buffers"));
    assert!(!cluster.dir.join("work/back").exists());
}

#[test]
fn tasks_and_components_are_watched_by_the_names_users_know() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    let array = "#!/bin/sh\n#SBATCH --array=1-2 -o /dev/null\n#DW jobdw capacity=1MiB\ntrue\n";
    let het =
        "#!/bin/sh\n#SBATCH -o /dev/null\n#DW jobdw capacity=1MiB\n#SBATCH hetjob\n#DW jobdw capacity=1MiB\ntrue\n";
    for (text, name) in [(array, "_2"), (het, "+1")] {
        burst.write("job.sh", text);
        let job = cluster.sbatch("job.sh");
        cluster.wait_until("squeue -h", |said| said.code == 0 && said.out.trim().is_empty());
        let watched = cluster.ok(&format!("spur stage watch {job}{name}"));
        assert!(watched.starts_with("JobId=") && watched.contains("COMPLETED complete"), "{watched}");
    }
    for (name, words) in [("1_9", "Invalid job id specified"), ("x", "is not the number of a job")] {
        let said = cluster.run(&format!("spur stage watch {name}"));
        assert!(said.code != 0 && said.err.contains(words), "{said:?}");
    }
}
