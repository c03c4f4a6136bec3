//! What `scontrol` changes of jobs that run or have run, and what the newer data parsers make of what is shown.
use crate::cluster::{Cluster, kill_9};

#[test]
fn a_running_job_gives_nodes_back_and_its_shell_hears_of_it() {
    let cluster = Cluster::up("--nodes 3 --cpus 2");
    let script = "scontrol update JobId=$SLURM_JOB_ID NumNodes=1 && . ./slurm_job_${SLURM_JOB_ID}_resize.sh && \
        echo $SLURM_NNODES $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE > shrunk; touch told; while [ ! -e go ]; do sleep 0.05; done; srun printenv SLURMD_NODENAME";
    let job = cluster.sbatch(&format!("-N3 --exclusive --wrap '{script}'"));
    cluster.wait_until("ls told", |said| said.code == 0);
    assert_eq!(cluster.file("shrunk"), "1 n1 2\n", "{}", cluster.file(&format!("slurm-{job}.out")));
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%D %N'")), "1 n1");
    // What it gave back is there for others, also after the controller was killed.
    kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%D %N'")), "1 n1");
    assert_eq!(cluster.ok("srun -N2 --exclusive printenv SLURMD_NODENAME | sort | xargs"), "n2 n3");
    for (change, told) in [
        ("NumNodes=2", "Requested operation not supported on this system"),
        ("NodeList=n2", "Invalid node name specified"),
        ("NumNodes=0", "Node count specification invalid"),
    ] {
        let said = cluster.run(&format!("scontrol update JobId={job} {change}"));
        assert_eq!(said.err, format!("{told} for job {job}\n"), "{change}");
    }
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{job}.out")).lines().last(), Some("n1"));
}

#[test]
fn tasks_on_a_node_that_is_given_back_end_and_the_others_go_on() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    // Whoever is not the first says so, and would run on.
    let program = "echo $$ > pid$SLURM_PROCID.tmp; mv pid$SLURM_PROCID.tmp pid$SLURM_PROCID; [ $SLURM_PROCID = 0 ] || exec sleep 1000; \
        until [ -e go ]; do sleep 0.05; done; echo well";
    std::fs::write(cluster.dir.join("work/program"), program).unwrap();
    for launcher in ["srun -N2", "salloc -Q -N2 srun"] {
        cluster.ok("rm -f pid0 pid1 go");
        cluster.ok(&format!("({launcher} sh program > out 2> err; echo $? > code) > /dev/null 2>&1 &"));
        cluster.wait_until("ls pid0 pid1", |said| said.code == 0);
        let job = cluster.ok("squeue -h -o %i");
        cluster.wait_for(&format!("squeue -hs -j {job} -o '%N'"), "n[1-2]");
        // What is just being started is waited for.
        cluster.wait_until(&format!("scontrol update JobId={job} NodeList=n1"), |said| said.code == 0);
        assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%D %N'")), "1 n1");
        cluster.wait_until("kill -0 $(cat pid1)", |said| said.code != 0);
        assert!(cluster.run("kill -0 $(cat pid0)").code == 0, "the first goes on");
        // The node is others' when what ran there is gone.
        assert_eq!(cluster.ok("srun -w n2 --exclusive printenv SLURMD_NODENAME"), "n2");
        cluster.ok("touch go");
        cluster.wait_until("cat code", |said| said.code == 0 && !said.out.is_empty());
        let (out, err) = (cluster.file("out"), cluster.file("err"));
        assert_eq!(out.lines().last(), Some("well"), "{launcher}: {err}");
        assert!(err.contains("srun: error: n2: task 1: Killed") && !err.contains("NODE FAILURE"), "{launcher}: {err}");
        assert_eq!(cluster.ok("cat code; rm code"), "137", "{launcher}: {err}");
        // The next one looks for the only job there is.
        cluster.wait_for("squeue -h", "");
    }
}

#[test]
fn requeues_may_be_special_or_only_of_what_runs() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let job = cluster.sbatch("--wrap true");
    cluster.wait_state(&job, "COMPLETED");
    cluster.ok(&format!("scontrol requeuehold State=SpecialExit {job}"));
    assert_eq!(cluster.ok(&format!("squeue -h -t SE -j {job} -o '%T %t'")), "SPECIAL_EXIT SE");
    assert!(cluster.run(&format!("scontrol requeuehold State=Nonsense {job}")).err.contains("SpecialExit"));
    cluster.ok(&format!("scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
    // The last task to start has the number of the whole array, and is still one of many.
    let array = cluster
        .sbatch("-a 1-3 --wrap '[ $SLURM_ARRAY_TASK_ID = 1 ] || { echo $SLURM_RESTART_COUNT >> runs; sleep 100; }'");
    cluster.wait_state(&format!("{array}_1"), "COMPLETED");
    cluster.wait_until("cat runs", |said| said.out.lines().count() == 2);
    cluster.ok(&format!("scontrol requeue incomplete {array}"));
    cluster.wait_until("cat runs", |said| said.out.lines().count() == 4);
    assert_eq!(cluster.ok(&format!("squeue -h -t all -j {array}_1 -o %T")), "COMPLETED");
    assert_eq!(cluster.ok(&format!("sacct -nXP -j {array}_1 -o state")), "COMPLETED");
    cluster.ok(&format!("scancel {array}"));
}

#[test]
fn signals_reach_what_the_tasks_have_started_or_only_the_tasks() {
    const PROGRAM: &str = "trap 'echo task >> heard' USR1\n\
        bash -c 'trap \"echo child >> heard\" USR1; touch ready; until [ -e enough ]; do sleep 0.05; done' &\n\
        until [ -e enough ]; do sleep 0.05; done\nwait\n";
    for (setting, heard) in [("", "child task"), ("[agent]\nsignal_tasks_only = true\n", "task")] {
        let nodes = "[[nodes]]\nnames = 'n1'\ncpus = 2\n[[partitions]]\nname = 'main'\nnodes = 'n1'\n";
        let cluster = Cluster::configured(&format!("{setting}{nodes}"));
        cluster.ok("true");
        std::fs::write(cluster.dir.join("work/program"), PROGRAM).unwrap();
        let job = cluster.sbatch("--wrap 'srun bash program'");
        cluster.wait_for("ls ready", "ready");
        cluster.ok(&format!("scancel -s USR1 {job}"));
        cluster.wait_until("cat heard", |said| heard.split(' ').all(|who| said.out.contains(who)));
        // Whoever has a signal waiting answers it before it looks whether that is enough.
        cluster.ok("touch enough");
        cluster.wait_state(&job, "COMPLETED");
        assert_eq!(cluster.ok("sort heard | tr '\\n' ' '").trim(), heard, "{setting}");
    }
}

#[test]
fn a_signal_to_a_script_and_all_of_its_own_is_heard_once() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    cluster.ok("true");
    let step = "trap 'echo step >> heard' USR1; touch ready; until [ -e enough ]; do sleep 0.05; done";
    std::fs::write(cluster.dir.join("work/step"), step).unwrap();
    let job = cluster.sbatch("--wrap 'trap \"echo script >> heard\" USR1; srun bash step & wait; wait; wait'");
    cluster.wait_for("ls ready", "ready");
    cluster.ok(&format!("scancel --full -s USR1 {job}"));
    cluster.wait_until("cat heard", |said| said.out.contains("script") && said.out.contains("step"));
    // Signals of the same number that wait are one: a second is seen when the first has been answered.
    cluster.ok("sleep 0.5; touch enough");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.ok("sort heard | tr '\\n' ' '").trim(), "script step");
}

#[test]
fn jobs_outside_leave_the_first_cores_to_their_reservation() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let create = "scontrol create reservation reservationname=first starttime=now duration=10 users=$(id -un) nodes=n1";
    cluster.ok(&format!("{create} corecnt=2 flags=first_cores"));
    let cpus = |options: &str| {
        let job = cluster.sbatch(&format!("-n1 {options} --wrap 'sleep 1000'"));
        cluster.wait_state(&job, "RUNNING");
        cluster.ok(&format!("scontrol show -d job {job} | grep -o 'CPU_IDs=[^ ]*'"))
    };
    assert_eq!(["", "--reservation=first", ""].map(cpus), ["CPU_IDs=2", "CPU_IDs=0", "CPU_IDs=3"]);
}

#[test]
fn jobs_are_changed_by_name_and_steps_get_another_limit() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let job = cluster.sbatch("-J mine -H --wrap true");
    let said = cluster.run("scontrol update JobName=nobody UserID=1 Comment=x");
    assert_eq!((said.err.as_str(), said.code), ("scontrol: error: No jobs with user ID 1 and name 'nobody'\n", 1));
    cluster.ok("scontrol update JobName=mine Comment=found");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -O comment")).trim(), "found");
    cluster.ok(&format!("scontrol update jobid={job} comment later"));
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -O comment")).trim(), "later");
    cluster.ok(&format!("scontrol update jobid={job} numcpus=3"));
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o %C")), "3");
    let job = cluster.sbatch("-t 5 --wrap 'srun -t 4 sleep 100'");
    cluster.wait_for(&format!("scontrol show step {job}.0 | grep -o TimeLimit=.*"), "TimeLimit=00:04:00");
    cluster.ok(&format!("scontrol update StepId={job} TimeLimit=2"));
    assert_eq!(cluster.ok(&format!("scontrol show step {job}.0 | grep -o TimeLimit=.*")), "TimeLimit=00:02:00");
    assert!(cluster.run(&format!("scontrol update StepId={job}.7 TimeLimit=2")).code == 1);
    assert!(cluster.ok("scontrol show slurmd n1").contains(&format!("Active Steps             = {job}.")));
    cluster.ok(&format!("scancel {job}"));
    let said = cluster.run("scontrol show step 777.0");
    assert_eq!(said.err, "slurm_get_job_steps error: Invalid job id specified\n");
}

#[test]
fn labels_layouts_and_hints_are_taken_as_slurm_takes_them() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    cluster.ok("srun -n2 -l -o out.%t printf 'a\\nb'");
    assert_eq!((cluster.file("out.0"), cluster.file("out.1")), ("0: a\n0: b\n".into(), "1: a\n1: b\n".into()));
    for (given, told) in
        [("*:*", "block:cyclic"), ("cyclic:block:fcyclic", "cyclic:block:fcyclic"), ("*,nopack", "block,nopack")]
    {
        assert_eq!(cluster.ok(&format!("srun -n1 -m '{given}' printenv SLURM_DISTRIBUTION")), told);
    }
    assert!(cluster.run("srun -m block:round true").err.contains("Invalid --distribution specification"));
    // Where CPUs are free, and not where they will be when a job before has gone.
    let alone = |line: &str| {
        cluster.wait_for("squeue -h", "");
        cluster.ok(line)
    };
    assert_eq!(alone("srun -N2 -n4 -m pack printenv SLURMD_NODENAME | sort | uniq -c | xargs"), "3 n1 1 n2");
    assert_eq!(alone("srun -N2 -n4 -m nopack -l printenv SLURMD_NODENAME | sort | xargs"), "0: n1 1: n1 2: n2 3: n2");
    let said = cluster.run("srun -v --hint=nomultithread --threads-per-core=1 true");
    assert!(said.err.contains("Ignoring --hint."), "{said:?}");
    // A file that several parts of a step share has all of their lines.
    cluster.ok("srun -n1 -l -o both echo one : -n1 echo two");
    let mut lines: Vec<String> = cluster.file("both").lines().map(str::to_string).collect();
    lines.sort();
    assert_eq!(lines, ["0: one", "1: two"]);
}

#[test]
fn documents_have_the_shape_of_the_parser_that_is_asked_for() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    let job = cluster.sbatch("-N2 -t 5 --wrap 'sleep 1000'");
    cluster.wait_state(&job, "RUNNING");
    let read = |line: &str| -> serde_json::Value {
        serde_json::from_str(&cluster.ok(line)).unwrap_or_else(|why| panic!("{line}: {why}"))
    };
    let number = |number: u32| serde_json::json!({"set": true, "infinite": false, "number": number});
    for line in ["squeue --json=v0.0.41", "scontrol --json=v0.0.41 show job"] {
        let shown = read(line);
        assert_eq!(shown["meta"]["plugin"]["data_parser"], "data_parser/v0.0.41", "{line}");
        let shown = &shown["jobs"][0];
        assert_eq!(shown["job_state"], serde_json::json!(["RUNNING"]), "{line}");
        assert_eq!((&shown["node_count"], &shown["time_limit"]), (&number(2), &number(5)), "{line}");
        assert_eq!(shown["job_resources"]["nodes"]["allocation"][1]["name"], "n2", "{line}");
    }
    assert_eq!(read("squeue --json")["jobs"][0]["job_state"][0], "RUNNING");
    assert_eq!(read("squeue --json=v0.0.38")["jobs"][0]["job_state"], "RUNNING");
    assert_eq!(read("scontrol ping --json")["pings"][0]["pinged"], "UP");
    assert_eq!(read("scontrol show licenses --json")["licenses"], serde_json::json!([]));
    cluster.ok("scontrol create reservation reservationname=kept starttime=now+1hour duration=10 nodes=n1 user=root");
    assert_eq!(read("scontrol show reservation --json")["reservations"][0]["node_list"], "n1");
    assert!(read("sdiag --json")["statistics"]["jobs_submitted"].as_u64() >= Some(1));
    cluster.ok("sacctmgr -i add qos fast priority=7");
    assert_eq!(read("sacctmgr show qos fast --json")["qos"][0]["priority"], number(7));
    assert_eq!(read("sshare -a --json")["shares"]["shares"][0]["name"], "root");
    assert_eq!(read("squeue --json=v0.0.40")["jobs"][0]["job_resources"]["allocated_nodes"][0]["nodename"], "n1");
    let shown = read("sinfo --json=v0.0.41");
    assert_eq!(
        (&shown["sinfo"][0]["nodes"]["total"], &shown["sinfo"][0]["node"]["state"][0]),
        (&2.into(), &"MIXED".into())
    );
    let dated = |line: &str| {
        let told = read(line);
        assert!(told["last_update"]["number"].as_u64() > Some(1_700_000_000), "{line}: {told}");
        told
    };
    assert_eq!(dated("squeue --json")["jobs"][0]["show_flags"], serde_json::json!(["ALL", "DETAIL", "LOCAL"]));
    let told = read("squeue --json");
    assert_eq!(told["last_backfill"]["set"], true);
    assert_eq!(told["jobs"][0]["stdout_expanded"], told["jobs"][0]["standard_output"]);
    assert!(read("sdiag --json")["statistics"]["bf_last_depth"].is_u64());
    for line in
        ["scontrol show nodes", "scontrol show partition", "scontrol show reservation", "scontrol show licenses"]
    {
        dated(&format!("{line} --json"));
    }
    assert_eq!(read("sdiag --json")["statistics"]["rpcs_by_message_type"][0]["queued"], 0);
    assert_eq!(read("sacctmgr show cluster --json")["clusters"][0]["associations"]["root"]["user"], "");
    let run = &read("sacct -a --json")["jobs"][0];
    assert_eq!((&run["time"]["planned"], &run["stdout_expanded"]), (&number(0), &run["stdout"]));
    let step = &run["steps"][0];
    assert_eq!(step["statistics"]["energy"]["consumed"], number(0));
    assert_eq!((&step["CPU"]["requested_frequency"]["min"], &step["CPU"]["governor"]), (&number(0), &"".into()));
    let load = &shown["sinfo"][0];
    assert!(load["memory"]["free"]["maximum"]["number"].as_u64() > Some(0), "{load}");
    assert!(load["cpus"]["load"]["maximum"].is_u64() && load["port"]["minimum"].is_u64(), "{load}");
    let shown = read("scontrol --json=v0.0.41 show nodes");
    assert_eq!(shown["nodes"][0]["state"][0], "MIXED");
    assert_eq!(shown["nodes"][0]["energy"]["current_watts"], number(0));
    assert_eq!(read("scontrol --json=v0.0.41 show partition")["partitions"][0]["nodes"]["total"], 2);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_for(&format!("sacct -nXP -j {job} -o state | cut -d' ' -f1"), "CANCELLED");
    let shown = read(&format!("sacct -j {job} --json=v0.0.41"));
    assert_eq!(shown["jobs"][0]["state"]["current"], serde_json::json!(["CANCELLED"]));
    assert_eq!(shown["jobs"][0]["time"]["limit"], number(5));
    assert!(cluster.ok("squeue --json=list").contains("data_parser/v0.0.41\n"));
    let said = cluster.run("squeue --json=nonsense");
    assert_eq!((said.err.as_str(), said.code), ("squeue: fatal: Unable to find plugin: nonsense\n", 1));
    // Both notations say the same.
    assert!(cluster.ok("squeue --yaml=v0.0.38").starts_with("---\nmeta:\n"));
}

#[test]
fn whoever_holds_an_allocation_is_notified_and_estimates_are_shown() {
    let cluster = Cluster::up("--nodes 3 --cpus 2");
    let mut salloc = cluster.shell("salloc -J held sleep 100 2> told").spawn().unwrap();
    cluster.wait_until("cat told", |said| said.out.contains("Granted"));
    let job = cluster.ok("squeue -h -n held -o %i");
    cluster.ok(&format!("scontrol notify {job} time for tea"));
    cluster.wait_until("cat told", |said| said.out.contains("salloc: time for tea\n"));
    // A job that waits would need so many nodes at least.
    let waiting = cluster.sbatch("-H -n 5 --wrap true");
    assert_eq!(cluster.ok(&format!("squeue -h -j {waiting} -o %D")), "3");
    cluster.ok(&format!("scancel {job} {waiting}"));
    cluster.wait_until("cat told", |said| said.out.contains("has been revoked"));
    let _ = salloc.kill();
    let _ = salloc.wait();
}

#[test]
fn the_log_is_made_louder_and_quieter_while_the_controller_runs() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let level = || cluster.ok("scontrol show config | grep -E '^(SlurmctldDebug|DebugFlags) ' | tr -s ' '");
    assert_eq!(level(), "DebugFlags = (null)\nSlurmctldDebug = info");
    let log = format!("{}/log/controller.log", cluster.dir.display());
    cluster.ok("sbatch --wrap true");
    assert_eq!(cluster.run(&format!("grep -c JobSubmitted {log}")).out, "0\n");
    cluster.ok("scontrol setdebugflags +tracejobs +Protocol; scontrol setdebug debug");
    assert_eq!(level(), "DebugFlags = Protocol,TraceJobs\nSlurmctldDebug = debug");
    cluster.ok("sbatch --wrap true");
    cluster.wait_until(&format!("cat {log}"), |said| {
        said.out.contains("JobSubmitted") && said.out.contains("spur.v1.Controller/Submit")
    });
    cluster.ok("scontrol setdebugflags -TraceJobs; scontrol update SlurmctldDebug=2");
    assert_eq!(level(), "DebugFlags = Protocol\nSlurmctldDebug = error");
    // What was changed holds until the file is read again.
    cluster.ok("scontrol reconfigure");
    assert_eq!(level(), "DebugFlags = (null)\nSlurmctldDebug = info");
    for (line, told) in [
        ("setdebug loud", "invalid debug level: loud\n"),
        ("setdebugflags TraceJobs", "Usage: setdebugflags [+|-]NAME\n"),
        ("setdebugflags +Nonsense", "invalid debug flag: Nonsense\n"),
    ] {
        let said = cluster.run(&format!("scontrol {line}"));
        assert_eq!((said.err.as_str(), said.code), (told, 1));
    }
    // What the machine has left, and how busy it is, is measured.
    let shown =
        cluster.wait_until("scontrol show node n1 | grep -oE '(CPULoad|FreeMem)=[0-9.]+'", |said| said.code == 0);
    assert_eq!(shown.out.lines().count(), 2, "{}", shown.out);
    let shown = cluster.ok("sinfo -hN -o '%O %e'");
    assert!(shown.split(' ').all(|word| word.parse::<f64>().is_ok()), "{shown}");
}

#[test]
fn of_several_nodes_those_that_are_down_are_resumed_whatever_the_others_are() {
    let cluster = Cluster::up("--nodes 3");
    cluster.ok("scontrol update nodename=n1,n3 state=down reason=test");
    let told = cluster.run("scontrol update nodename=ALL state=resume");
    assert_eq!((told.code, told.err.trim_end()), (1, "slurm_update error: Invalid node state specified"));
    assert_eq!(cluster.ok("sinfo -h -o '%T %D'"), "idle 3");
    let again = cluster.run("scontrol update nodename=n[1-3] state=resume");
    assert_eq!(again.code, 1, "{again:?}");
    let job = cluster.sbatch("-o /dev/null --wrap='srun sleep 600'");
    cluster.wait_for(&format!("squeue -h -s -j {job} -o %i | grep -c '\\.0$'"), "1");
    let signalled = cluster.run(&format!("scancel -v -s HUP {job}.0"));
    assert!(signalled.err.contains(&format!("scancel: Signal 1 to step {job}.0")), "{signalled:?}");
}
