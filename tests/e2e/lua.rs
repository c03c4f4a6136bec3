//! `burst_buffer/lua` with a script that tells of every call.
use std::fs;
use std::path::Path;

use crate::cluster::{Cluster, Folder, Said, kill_9, new_dir};

/// A cluster whose burst_buffer.lua is the one in tests/burst.
pub struct Site {
    pub cluster: Cluster,
    dir: Folder,
}

impl Site {
    pub fn new(more: &str) -> Site {
        Site::with_script(more, include_str!("../burst/burst_buffer.lua"))
    }

    fn with_script(more: &str, script: &str) -> Site {
        Site::started(more, script, "")
    }

    /// With more words for `spur up`.
    fn started(more: &str, script: &str, words: &str) -> Site {
        let dir = Folder::new();
        fs::create_dir_all(dir.join("bb")).unwrap();
        fs::write(dir.join("burst_buffer.lua"), script).unwrap();
        let text = format!(
            "[controller]\nmin_job_age = 600\n[[nodes]]\nnames = \"n[1-2]\"\ncpus = 4\nmemory_mb = 1000\n[[partitions]]\n\
             name = \"main\"\nnodes = \"ALL\"\ndefault = true\n[burst_buffer]\ntype = \"lua\"\nscript = \"{}\"\n\
             allow_root = true\npoll_interval = 1\nteardown_interval = 1\npools_interval = 1\nrestart_delay = 1\n{more}\n",
            dir.join("burst_buffer.lua").display()
        );
        let file = dir.join("wanted.conf");
        fs::write(&file, text).unwrap();
        let cluster = Cluster { dir: new_dir() };
        cluster.start(&format!("--config {} {words}", file.display()));
        let site = Site { cluster, dir };
        site.cluster.wait_until("scontrol show burst", |said| said.out.contains("PoolName[1]=p2"));
        site
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.cluster.dir.join("work")).unwrap();
        fs::write(self.cluster.dir.join("work").join(name), text).unwrap();
    }

    /// Has a function answer so from now on.
    fn control(&self, name: &str, text: &str) {
        fs::write(self.dir.join("bb").join(name), format!("{text}\n")).unwrap();
    }

    fn forget(&self, name: &str) {
        fs::remove_file(self.dir.join("bb").join(name)).unwrap();
    }

    fn told(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join("bb").join(name)).unwrap_or_default()
    }

    /// The calls so far that are about this job, by their names.
    fn calls(&self, job: &str) -> Vec<String> {
        let is_its = |line: &&str| line.split(' ').nth(1) == Some(job);
        let log = self.told("calls.log");
        log.lines().filter(is_its).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn line(&self, name: &str, job: &str) -> String {
        let log = self.told("calls.log");
        let start = format!("{name} {job} ");
        log.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no {start}in\n{log}")).to_owned()
    }

    fn wait_buffer(&self, job: &str, state: &str) -> Said {
        self.cluster.wait_until(&format!("scontrol show job {job}"), |said| {
            said.out.contains(&format!("BurstBufferState={state}\n"))
        })
    }

    fn wait_reason(&self, job: &str, text: &str) {
        self.cluster.wait_for(&format!("squeue -h -t all -j {job} -o %r"), text);
    }
}

fn ids() -> String {
    // SAFETY: plain system calls.
    unsafe { format!("{} {}", libc::getuid(), libc::getgid()) }
}

const FULL: &str = "#!/bin/bash\n#SBATCH -o full.out\n#BB_LUA pool=p1 capacity=1K set=%j\n#BB_LUA more \\\n#BB_LUA  words\nenv | grep ^BB_ | sort\n";

#[test]
fn all_functions_are_called_in_order_with_their_arguments() {
    let site = Site::new("");
    site.write("full.sh", FULL);
    site.control("slurm_bb_test_data_in.busy", "2");
    site.control("slurm_bb_test_data_out.busy", "1");
    let job = site.cluster.sbatch("-N1 full.sh");
    let shown = site.wait_buffer(&job, "complete").out;
    assert!(shown.contains("   BurstBuffer=#BB_LUA pool=p1 capacity=1K set=%j\n#BB_LUA more words\n"), "{shown}");
    assert_eq!(site.cluster.file("full.out"), format!("BB_NODES=n1\nBB_PATH=/bb/{job}\n"));
    let expected = [
        "setup",
        "data_in",
        "test_data_in",
        "test_data_in",
        "test_data_in",
        "real_size",
        "paths",
        "pre_run",
        "post_run",
        "data_out",
        "test_data_out",
        "test_data_out",
        "job_teardown",
    ];
    assert_eq!(site.calls(&job), expected);
    let ids = ids();
    let first = site.told("calls.log").lines().next().unwrap_or_default().to_owned();
    assert_eq!(first, format!("job_process {ids} info=0/pending/nil"));
    assert_eq!(site.line("setup", &job), format!("setup {job} {ids} p1 1024 info={job}/staging-in/nil"));
    assert_eq!(site.line("data_in", &job), format!("data_in {job} {ids} info={job}/staging-in/nil"));
    assert_eq!(site.line("real_size", &job), format!("real_size {job} {ids} info={job}/staging-in/nil"));
    assert_eq!(site.line("paths", &job), format!("paths {job} {ids} info={job}/pre-run/n1"));
    assert_eq!(site.line("pre_run", &job), format!("pre_run {job} {ids} info={job}/pre-run/n1"));
    assert_eq!(site.line("post_run", &job), format!("post_run {job} {ids} info={job}/post-run/n1"));
    assert_eq!(site.line("data_out", &job), format!("data_out {job} {ids} info={job}/staging-out/n1"));
    assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} false {ids}"));
    // Symbols are replaced in what hooks read after the submission; the submission's hook reads the script itself.
    assert_eq!(site.told("script.job_process").trim_end(), FULL.trim_end());
    let replaced = format!("#!/bin/sh\n#BB_LUA pool=p1 capacity=1K set={job}\n#BB_LUA more words\n\n");
    assert_eq!(site.told("script.data_in"), replaced);
    let folder = site.told("paths");
    let folder = Path::new(folder.trim()).parent().unwrap();
    // It goes a moment after the job has gone.
    site.cluster.wait_until("true", |_| !folder.exists());
}

const BARE: &str = "#!/bin/bash\n#BB_LUA\nsleep ${1:-0}\n";

#[test]
fn a_submission_that_makes_no_sense_is_refused_in_slurms_words() {
    let site = Site::new("validate_timeout = 10");
    let refused = |line: &str, err: &str| {
        let said = site.cluster.run(line);
        assert_eq!((said.err.as_str(), said.code), (err, 1), "{line}");
    };
    const INVALID: &str = "sbatch: error: Batch job submission failed: Burst Buffer request invalid\n";
    for (words, why) in [
        (
            "capacity=1K",
            "Must specify pool with capacity for burst buffer\nsbatch: error:   #BB_LUA capacity=1K\nsbatch: error:           ^^^^^^^^^^^",
        ),
        (
            "pool=none capacity=1",
            "Invalid pool requested (none)\nsbatch: error:   #BB_LUA pool=none capacity=1\nsbatch: error:           ^^^^^^^^^",
        ),
        (
            "pool=p1 capacity=0",
            "Invalid capacity (must be greater than 0) in burst buffer line\nsbatch: error:   #BB_LUA pool=p1 capacity=0\nsbatch: error:                   ^^^^^^^^^^",
        ),
        (
            "pool=p1 capacity=1.5G",
            "not a size: expected digits and K, M, G, T, P, KB, KiB, …, and more than zero\nsbatch: error:   #BB_LUA pool=p1 capacity=1.5G\nsbatch: error:                   ^^^^^^^^^^^^^",
        ),
    ] {
        site.write("bad.sh", &format!("#!/bin/bash\n#BB_LUA {words}\n"));
        refused("sbatch bad.sh", &format!("sbatch: error: burst_buffer/lua: {why}\n{INVALID}"));
    }
    site.write("bare.sh", BARE);
    refused(
        "sbatch -N0 bare.sh",
        &format!(
            "sbatch: error: burst_buffer/lua: a job without nodes has no buffer\nsbatch: error:   #BB_LUA\nsbatch: error:   ^^^^^^^\n{INVALID}"
        ),
    );
    let said = site.cluster.run("salloc --bb='capacity=1K' true");
    assert!(said.err.ends_with("Burst Buffer request invalid\n") && said.code == 1, "{said:?}");
    site.control("slurm_bb_job_process.rc", "1");
    site.control("slurm_bb_job_process.msg", "no such set");
    refused("sbatch bare.sh", &format!("sbatch: error: burst_buffer/lua: no such set\n{INVALID}"));
    site.control("slurm_bb_job_process.rc", "0");
    site.control("slurm_bb_job_process.loop", "");
    refused("sbatch bare.sh", &format!("sbatch: error: burst_buffer/lua: timed out after 10 seconds\n{INVALID}"));
    assert_eq!(site.cluster.ok("squeue -h"), "");
    // A pool without capacity is a remark to the script; other keywords are none of ours.
    site.forget("slurm_bb_job_process.loop");
    site.write("bare.sh", "#!/bin/bash\n#BB_LUA pool=p1\n#BB_LUAX pool=none\n#DW jobdw\n");
    site.cluster.sbatch("-H bare.sh");
}

#[test]
fn what_is_shown_of_pools_and_buffers_is_as_slurm_shows_it() {
    let site = Site::new("flags = \"TeardownFailure\"");
    site.write("bare.sh", &BARE.replace("#BB_LUA", "#BB_LUA pool=p1 capacity=1500"));
    let job = site.cluster.sbatch("bare.sh 300");
    site.wait_buffer(&job, "running");
    let user = site.cluster.ok("id -un");
    let uid = site.cluster.ok("id -u");
    let shown = site.cluster.ok("scontrol show burst");
    let (head, tail) = shown.split_once("  Allocated Buffers:\n").expect("a buffer");
    assert_eq!(
        head,
        "Name=lua DefaultPool=(null) Granularity=1 TotalSpace=0 FreeSpace=0 UsedSpace=0\n  \
         PoolName[0]=p1 Granularity=1KiB TotalSpace=1000KiB FreeSpace=996KiB UsedSpace=4KiB\n  \
         PoolName[1]=p2 Granularity=2 TotalSpace=10 FreeSpace=6 UsedSpace=0\n  \
         Flags=DisablePersistent,TeardownFailure\n  PollInterval=1\n  \
         StageInTimeout=86400 StageOutTimeout=86400 ValidateTimeout=5 OtherTimeout=300\n  \
         GetSysState=(null)\n  GetSysStatus=(null)\n"
    );
    let (line, users) = tail.split_once("\n  Per User Buffer Use:\n").expect("a user");
    assert!(line.starts_with(&format!("    JobID={job} CreateTime=20")), "{line}");
    assert!(line.ends_with(&format!("Pool=p1 Size=4KiB State=allocated UserID={user}({uid})")), "{line}");
    assert_eq!(users, format!("    UserID={user}({uid}) Used=4KiB"));
    let one = site.cluster.ok("scontrol -o show burst");
    assert!(one.lines().next().unwrap().ends_with("OtherTimeout=300 GetSysState=(null) GetSysStatus=(null)"), "{one}");
    let line = site.cluster.ok(&format!("squeue -h -j {job} -O BurstBuffer:40,BurstBufferState:20"));
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["#BB_LUA", "pool=p1", "capacity=1500", "running"]);
    assert_eq!(site.cluster.ok("scontrol show bbstat a 'b c'"), "status|a|b c");
    assert_eq!(site.cluster.ok("scontrol show dwstat"), "status");
    assert!(site.told("calls.log").contains(&format!("get_status {} a b c\n", ids())));
    site.control("slurm_bb_get_status.rc", "1");
    assert_eq!(site.cluster.ok("scontrol show bbstat x"), "Error running slurm_bb_get_status");
    // The pools may change at any time; one that is gone has nothing.
    site.control("pools.json", r#"{"pools":[{"id":"p2","quantity":7,"granularity":2},{"id":"p3"}]}"#);
    site.cluster.wait_until("scontrol show burst", |said| {
        said.out.contains("=p1 Granularity=1KiB TotalSpace=0 FreeSpace=0 UsedSpace=4KiB")
            && said.out.contains("=p2 Granularity=2 TotalSpace=14 FreeSpace=14 ")
            && said.out.contains("=p3 Granularity=1 TotalSpace=0 ")
    });
    site.control("pools.json", "rubbish");
    site.cluster.ok(&format!("scancel --hurry {job}"));
    site.wait_buffer(&job, "complete");
    assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} true {}", ids()));
    assert!(site.cluster.ok("scontrol show burst").contains("TotalSpace=14"), "kept");
}

#[test]
fn what_fails_before_the_run_holds_the_job_with_the_hooks_words() {
    let site = Site::new("");
    site.write("bare.sh", &BARE.replace("#BB_LUA", "#BB_LUA pool=p1 capacity=1"));
    for function in ["setup", "data_in", "test_data_in", "real_size"] {
        site.control(&format!("slurm_bb_{function}.rc"), "1");
        site.control(&format!("slurm_bb_{function}.msg"), "no such set");
        let job = site.cluster.sbatch("bare.sh");
        let text = format!("burst_buffer/lua: JobHeldAdmin: slurm_bb_{function} failed: no such set");
        site.wait_reason(&job, &text);
        let shown = site.cluster.ok(&format!("scontrol show job {job}"));
        assert!(shown.contains(&format!("Reason={} ", text.replace(' ', "_"))), "{shown}");
        assert!(shown.contains(" Priority=0 ") || shown.contains("   Priority=0 "), "{shown}");
        assert!(shown.contains(&format!(" burst_buffer/lua: slurm_bb_{function}: no such set")), "{shown}");
        assert!(shown.contains("BurstBufferState=staging-in"), "{shown}");
        assert!(site.cluster.ok("scontrol show burst").contains("UsedSpace=1KiB"));
        site.forget(&format!("slurm_bb_{function}.rc"));
        site.forget(&format!("slurm_bb_{function}.msg"));
        // Released, it begins again: what is there is torn down first.
        site.cluster.ok(&format!("scontrol release {job}"));
        site.wait_buffer(&job, "complete");
        let calls = site.calls(&job);
        let second = calls.iter().rposition(|call| call == "setup").unwrap();
        assert_eq!(calls[second - 1], "job_teardown", "{calls:?}");
        assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} true {}", ids()));
    }
}

#[test]
fn what_fails_at_the_start_or_after_the_end_is_kept_or_torn_down() {
    let site = Site::new("");
    site.write("bare.sh", BARE);
    for (function, text) in
        [("paths", "slurm_bb_paths failed: cannot mount"), ("pre_run", "slurm_bb_pre_run failed: cannot mount")]
    {
        site.control(&format!("slurm_bb_{function}.rc"), "1");
        site.control(&format!("slurm_bb_{function}.msg"), "cannot mount");
        let job = site.cluster.sbatch("bare.sh");
        site.wait_reason(&job, &format!("burst_buffer/lua: JobHeldAdmin: {text}"));
        site.wait_buffer(&job, "pending");
        assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} true {}", ids()));
        site.wait_reason(&job, &format!("burst_buffer/lua: JobHeldAdmin: {text}"));
        site.forget(&format!("slurm_bb_{function}.rc"));
        site.cluster.ok(&format!("scontrol release {job}"));
        site.cluster.wait_state(&job, "COMPLETED");
    }
    for function in ["post_run", "data_out", "test_data_out"] {
        site.control(&format!("slurm_bb_{function}.rc"), "1");
        site.control(&format!("slurm_bb_{function}.msg"), "disk full");
        let job = site.cluster.sbatch("bare.sh");
        let text = format!("burst_buffer/lua: JobHeldAdmin: slurm_bb_{function} failed: disk full");
        site.wait_reason(&job, &text);
        let said = site.cluster.run(&format!("squeue -h -j {job} -o '%t %R'; scancel -v {job}"));
        assert!(said.out.starts_with(&format!("SO ({text})\n")), "{said:?}");
        assert!(said.err.contains("Job/step already completing or completed"), "{said:?}");
        match function {
            // Retried, or given up.
            "data_out" => {
                site.forget("slurm_bb_data_out.rc");
                site.cluster.ok(&format!("scontrol release {job}"));
            }
            _ => drop(site.cluster.ok(&format!("scancel --hurry {job}"))),
        }
        site.wait_buffer(&job, "complete");
        let hurry = function != "data_out";
        assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} {hurry} {}", ids()));
        let _ = fs::remove_file(site.dir.join("bb").join(format!("slurm_bb_{function}.rc")));
    }
    site.control("slurm_bb_job_teardown.rc", "1");
    site.control("slurm_bb_job_teardown.msg", "stuck");
    let job = site.cluster.sbatch("bare.sh");
    let shown = site.wait_buffer(&job, "complete").out;
    assert!(shown.contains("burst_buffer/lua: teardown: stuck"), "{shown}");
    assert_eq!(site.calls(&job).iter().filter(|call| *call == "job_teardown").count(), 3);
    assert!(!site.cluster.ok("scontrol show burst").contains("Allocated Buffers"));
}

#[test]
fn every_function_may_loop_for_ever_and_harms_only_its_own_job() {
    // Long enough for hooks that do not loop, beside nine that do, on a busy machine.
    let site = Site::new("validate_timeout = 10\nother_timeout = 10\nstage_in_timeout = 10\nstage_out_timeout = 10");
    site.write("bare.sh", &BARE.replace("#BB_LUA", "#BB_LUA pool=p1 capacity=1"));
    let functions = [
        ("setup", "PD"),
        ("data_in", "PD"),
        ("test_data_in", "PD"),
        ("real_size", "PD"),
        ("paths", "PD"),
        ("pre_run", "PD"),
        ("post_run", "SO"),
        ("data_out", "SO"),
        ("test_data_out", "SO"),
    ];
    let mut jobs = Vec::new();
    for (number, (function, _)) in (1..).zip(functions) {
        site.control(&format!("slurm_bb_{function}.{number}.loop"), "");
        jobs.push(site.cluster.sbatch("bare.sh"));
    }
    site.control("slurm_bb_job_teardown.10.loop", "");
    let stuck = site.cluster.sbatch("bare.sh");
    assert_eq!((jobs[0].as_str(), stuck.as_str()), ("1", "10"));
    for (job, (function, state)) in jobs.iter().zip(functions) {
        let text = format!("burst_buffer/lua: JobHeldAdmin: slurm_bb_{function} failed: timed out after 10 seconds");
        site.wait_reason(job, &text);
        assert_eq!(site.cluster.ok(&format!("squeue -h -j {job} -o %t")), state);
    }
    site.wait_buffer(&stuck, "complete");
    // Somebody else's job is none the worse for it, nor is the controller.
    site.control("slurm_bb_get_status.loop", "");
    assert_eq!(site.cluster.ok("scontrol show bbstat"), "Error running slurm_bb_get_status");
    site.control("slurm_bb_pools.loop", "");
    let job = site.cluster.sbatch("bare.sh");
    site.wait_buffer(&job, "complete");
}

#[test]
fn cancels_and_restarts_follow_the_tables() {
    let site = Site::new("");
    site.write("bare.sh", BARE);
    // Staging in: the hook is killed, the buffer torn down in a hurry.
    site.control("slurm_bb_data_in.1.sleep", "300");
    let job = site.cluster.sbatch("bare.sh");
    site.wait_buffer(&job, "staging-in");
    site.cluster.wait_until("true", |_| site.calls(&job).contains(&"data_in".to_owned()));
    site.cluster.ok(&format!("scancel {job}"));
    site.wait_buffer(&job, "complete");
    site.cluster.wait_state(&job, "CANCELLED");
    assert_eq!(site.calls(&job), ["setup", "data_in", "job_teardown"]);
    // Running: data is brought back all the same.
    let job = site.cluster.sbatch("bare.sh 300");
    site.wait_buffer(&job, "running");
    site.cluster.ok(&format!("scancel {job}"));
    site.wait_buffer(&job, "complete");
    assert_eq!(site.calls(&job)[5..], ["post_run", "data_out", "test_data_out", "job_teardown"]);
    assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} false {}", ids()));
    // A controller that dies while data comes in begins anew, after a while and a teardown; the hook died with it.
    site.control("slurm_bb_data_in.3.sleep", "300");
    let job = site.cluster.sbatch("bare.sh");
    let running = site.cluster.sbatch("bare.sh 300");
    site.wait_buffer(&running, "running");
    site.cluster.wait_until("true", |_| site.calls(&job).contains(&"data_in".to_owned()));
    kill_9(site.cluster.controller_pid());
    site.forget("slurm_bb_data_in.3.sleep");
    site.cluster.start("");
    site.wait_buffer(&job, "complete");
    let calls = site.calls(&job);
    assert_eq!(calls[..4], ["setup", "data_in", "job_teardown", "setup"], "{calls:?}");
    assert_eq!(site.line("job_teardown", &job), format!("job_teardown {job} true {}", ids()));
    assert!(!site.calls(&running).contains(&"post_run".to_owned()));
    // While data goes out: from the beginning of what follows a run.
    site.control(&format!("slurm_bb_data_out.{running}.sleep"), "300");
    site.cluster.ok(&format!("scancel {running}"));
    site.cluster.wait_until("true", |_| site.calls(&running).contains(&"data_out".to_owned()));
    kill_9(site.cluster.controller_pid());
    site.forget(&format!("slurm_bb_data_out.{running}.sleep"));
    site.cluster.start("");
    site.wait_buffer(&running, "complete");
    let calls = site.calls(&running);
    assert_eq!(
        calls[5..],
        ["post_run", "data_out", "post_run", "data_out", "test_data_out", "job_teardown"],
        "{calls:?}"
    );
}

#[test]
fn another_leader_begins_again_where_hooks_died_with_the_first() {
    use crate::failover::{leader, pid_of};
    let site = Site::started("", include_str!("../burst/burst_buffer.lua"), "--controllers 3");
    site.write("job.sh", "#!/bin/bash\n#SBATCH -o /dev/null\n#BB_LUA pool=p1 capacity=1K\necho ran >> ran\n");
    let asleep = |function: &str| site.dir.join("bb").join(format!("{function}.asleep"));
    for function in ["data_in", "data_out"] {
        let sleeps = format!("0; touch {}; sleep 300", asleep(function).display());
        site.control(&format!("slurm_bb_{function}.sleep"), &sleeps);
    }
    let job = site.cluster.sbatch("job.sh");
    let fails_over = |function: &str| {
        // From then on it needs nothing that is taken away here.
        site.cluster.wait_until("true", |_| asleep(function).exists());
        let first = leader(&site.cluster);
        site.forget(&format!("slurm_bb_{function}.sleep"));
        kill_9(pid_of(&site.cluster, first));
        site.cluster.wait_until("squeue -h", |said| said.code == 0);
        assert_ne!(leader(&site.cluster), first);
        site.cluster.start("");
    };
    fails_over("data_in");
    fails_over("data_out");
    site.wait_buffer(&job, "complete");
    let calls = site.calls(&job);
    assert_eq!(calls[..4], ["setup", "data_in", "job_teardown", "setup"], "{calls:?}");
    let after: Vec<&str> = calls.iter().map(String::as_str).skip_while(|call| *call != "post_run").collect();
    assert_eq!(after, ["post_run", "data_out", "post_run", "data_out", "test_data_out", "job_teardown"], "{calls:?}");
    assert_eq!(site.cluster.file("ran"), "ran\n", "the job itself runs once");
}

#[test]
fn a_script_that_cannot_serve_keeps_the_controller_from_starting() {
    for (script, complaint) in [
        ("function slurm_bb_pools()\n  return 0\nend\nlocal x = = 1\n", "burst_buffer.lua:4:"),
        ("error('no')\n", "burst_buffer.lua:1: no"),
        ("return 5\n", "loading it returned 5"),
        ("function slurm_bb_pools() end\n", "functions are missing: slurm_bb_job_process, slurm_bb_job_teardown, "),
        ("while true do end\n", "loading it took longer than"),
    ] {
        let dir = new_dir();
        fs::write(dir.join("burst_buffer.lua"), script).unwrap();
        let conf = "[controller]\nsocket = \"c.sock\"\nstate_dir = \"state\"\n[[nodes]]\nnames = \"n1\"\ncpus = 1\nmemory_mb = 10\n[burst_buffer]\ntype = \"lua\"\n";
        fs::write(dir.join("spur.conf"), conf).unwrap();
        let bin = env!("CARGO_BIN_EXE_spur");
        let output =
            std::process::Command::new(bin).arg("spurctld").arg("-f").arg(dir.join("spur.conf")).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && err.contains(complaint), "{complaint}: {err}");
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn many_jobs_share_few_workers() {
    let site = Site::new("hooks = 1");
    site.write("bare.sh", BARE);
    let gate = site.cluster.dir.join("go");
    site.control("slurm_bb_data_in.sleep", &format!("0; until [ -e {} ]; do sleep 0.05; done", gate.display()));
    site.cluster.ok("for i in $(seq 8); do sbatch -Q -o /dev/null bare.sh || exit; done");
    let n_calls = |name: &str| site.told("calls.log").lines().filter(|line| line.starts_with(name)).count();
    site.cluster.wait_until("true", |_| n_calls("data_in ") > 0);
    let controller = site.cluster.controller_pid();
    let most = std::cell::Cell::new(0);
    most_workers(controller, &most);
    assert!(most.get() > 0, "it is under way");
    assert_eq!(n_calls("data_in "), 1, "one at once");
    fs::write(gate, "").unwrap();
    site.cluster.wait_until("scontrol show burst; squeue -h", |said| {
        most_workers(controller, &most);
        said.code == 0 && !said.out.contains("JobID=") && said.out.lines().all(|line| !line.contains("bare.sh"))
    });
    assert!(most.get() <= 5, "{} hooks at once, of one a stage", most.get());
    assert_eq!(n_calls("job_teardown "), 8);
}

/// Hooks of this controller that are under way; the highest count is kept.
fn most_workers(controller: i32, most: &std::cell::Cell<usize>) {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_hook = |dir: &fs::DirEntry| {
        let name = fs::read(dir.path().join("cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(dir.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        name.starts_with(b"spurhook\0") && parent == Some(controller)
    };
    most.set(most.get().max(processes.filter(is_hook).count()));
}

#[test]
fn a_pre_run_whose_nodes_are_taken_back_comes_to_its_end_and_runs_for_the_next() {
    let site = Site::new("");
    site.write("full.sh", FULL);
    let gate = site.cluster.dir.join("go");
    site.control("slurm_bb_pre_run.sleep", &format!("0; until [ -e {} ]; do sleep 0.05; done", gate.display()));
    let job = site.cluster.sbatch("-N1 -w n1 full.sh");
    site.wait_buffer(&job, "pre-run");
    // In the midst of the hook.
    site.cluster.wait_until("true", |_| site.calls(&job).iter().any(|call| call == "pre_run"));
    site.cluster.ok("scontrol update nodename=n1 state=down reason=test");
    site.wait_buffer(&job, "alloc-revoke");
    fs::write(gate, "").unwrap();
    site.wait_buffer(&job, "staged-in");
    site.cluster.ok("scontrol update nodename=n1 state=resume");
    site.wait_buffer(&job, "complete");
    let calls = site.calls(&job);
    let count = |name: &str| calls.iter().filter(|call| *call == name).count();
    assert_eq!((count("setup"), count("data_in"), count("pre_run"), count("job_teardown")), (1, 1, 2, 1), "{calls:?}");
}
