//! `burst_buffer/datawarp` with programs that tell of every call.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cluster::{Cluster, Folder, Said};

struct Site {
    cluster: Cluster,
    dir: Folder,
}

impl Site {
    fn new(more: &str) -> Site {
        let dir = Folder::new();
        fs::create_dir_all(dir.join("bb")).unwrap();
        for (name, text) in
            [("dw_wlm_cli", include_str!("../burst/dw_wlm_cli")), ("dwstat", include_str!("../burst/dwstat"))]
        {
            fs::write(dir.join(name), text).unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let text = format!(
            "[controller]\nmin_job_age = 600\n[[nodes]]\nnames = \"n[1-2]\"\ncpus = 4\nmemory_mb = 1000\n[[partitions]]\n\
             name = \"main\"\nnodes = \"ALL\"\ndefault = true\n[burst_buffer]\ntype = \"datawarp\"\n\
             get_sys_state = \"{0}/dw_wlm_cli\"\nget_sys_status = \"{0}/dwstat\"\nallow_root = true\n\
             teardown_interval = 1\nrestart_delay = 1\nvalidate_timeout = 60\n{more}\n",
            dir.display()
        );
        let site = Site { cluster: Cluster::configured(&text), dir };
        site.cluster.wait_until("scontrol show burst", |said| said.out.contains("DefaultPool=wlm_pool"));
        site
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.cluster.dir.join("work")).unwrap();
        fs::write(self.cluster.dir.join("work").join(name), text).unwrap();
    }

    fn control(&self, name: &str, text: &str) {
        fs::write(self.dir.join("bb").join(name), format!("{text}\n")).unwrap();
    }

    fn forget(&self, name: &str) {
        fs::remove_file(self.dir.join("bb").join(name)).unwrap();
    }

    /// The calls so far, in full.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.join("bb/calls.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
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

const JOB: &str = "#!/bin/bash\n#SBATCH -N2 -o dw.out\n#DW jobdw type=scratch access_mode=striped capacity=40GiB\n\
                   #DW stage_in type=file source=/a destination=$DW_JOB_STRIPED/%j\n#DW stage_out type=file source=x destination=y\n\
                   echo $DWPATHS\n";

#[test]
fn every_call_has_its_arguments() {
    let site = Site::new("");
    site.write("job.sh", JOB);
    let job = site.cluster.sbatch("job.sh");
    site.wait_buffer(&job, "complete");
    assert_eq!(site.cluster.file("dw.out"), "/tmp/dw\n");
    // SAFETY: plain system calls.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let calls = site.calls();
    let expected = [
        "job_process --job SCRIPT".to_owned(),
        format!(
            "setup --token {job} --caller SLURM --user {uid} --groupid {gid} --capacity wlm_pool:200GiB --job SCRIPT"
        ),
        format!("data_in --token {job} --job SCRIPT"),
        format!("real_size --token {job}"),
        format!("paths --job SCRIPT --token {job} --pathfile FILE"),
        format!("pre_run --token {job} --job SCRIPT --nodehostnamefile n1,n2,"),
        format!("post_run --token {job} --job SCRIPT"),
        format!("data_out --token {job} --job SCRIPT"),
        format!("teardown --token {job} --job SCRIPT"),
    ];
    assert_eq!(calls, expected);
    let script = fs::read_to_string(site.dir.join("bb/script.data_in")).unwrap();
    assert!(script.contains(&format!("destination=$DW_JOB_STRIPED/{job}\n")), "{script}");
    let shown = site.cluster.ok("scontrol show burst");
    assert!(
        shown.starts_with(
            "Name=datawarp DefaultPool=wlm_pool Granularity=200GiB TotalSpace=5800GiB FreeSpace=5800GiB UsedSpace=0\n  \
             Flags=DisablePersistent\n"
        ),
        "{shown}"
    );
    assert!(shown.contains(&format!("  GetSysState={}/dw_wlm_cli\n", site.dir.display())), "{shown}");
    // It has two seconds, whatever else the machine has to do.
    site.cluster.wait_until("scontrol show dwstat sessions 'a b'", |said| {
        said.out.trim_end() == "    pool units quantity    free    gran\n[sessions]\n[a b]"
    });
    assert_eq!(site.cluster.ok("scontrol show bbstat fail"), "Error running dwstat");
}

#[test]
fn the_short_form_is_translated_and_interactive_jobs_have_buffers() {
    let site = Site::new("");
    let said =
        site.cluster.ok("salloc -Q --bb='capacity=1G access=striped type=scratch' sh -c 'echo $DWPATHS $SLURM_JOB_ID'");
    let job = said.strip_prefix("/tmp/dw ").expect(&said);
    let shown = site.wait_buffer(job, "complete").out;
    assert!(shown.contains("BurstBuffer=#DW jobdw capacity=1GiB access_mode=striped type=scratch\n"), "{shown}");
    let script = fs::read_to_string(site.dir.join("bb/script.job_process")).unwrap();
    assert_eq!(script, "#!/bin/bash\n#DW jobdw capacity=1GiB access_mode=striped type=scratch\n");
    site.cluster.ok("sbatch -N2 --bb='swap=3' --wrap=true");
    site.cluster.wait_until("true", |_| {
        site.calls().iter().any(|call| call.starts_with("setup") && call.contains("wlm_pool:200GiB"))
    });
    for (bb, why) in [
        ("capacity=0", "not a size: expected digits and K, M, G, T, P, KB, KiB, …, and more than zero"),
        ("capacity=1G pool=nope", "Invalid pool requested (nope)"),
        (
            "#BB create_persistent name=x capacity=1",
            "persistent buffers are created and destroyed in a script or with --bbf",
        ),
        ("#DW stage_in type=file source=a destination=b", "no buffer is asked for: add jobdw, persistentdw or swap"),
    ] {
        let said = site.cluster.run(&format!("sbatch --bb='{bb}' --wrap=true"));
        assert!(said.err.starts_with(&format!("sbatch: error: burst_buffer/datawarp: {why}\n")), "{said:?}");
        assert!(said.err.ends_with("Batch job submission failed: Burst Buffer request invalid\n"), "{said:?}");
    }
    site.control("job_process.rc", "1");
    site.control("job_process.out", "bad directive");
    let said = site.cluster.run("sbatch --bb='capacity=1G' --wrap=true");
    assert!(said.err.starts_with("sbatch: error: burst_buffer/datawarp: bad directive\n"), "{said:?}");
}

#[test]
fn persistent_buffers_are_created_used_and_destroyed() {
    let site = Site::new("flags = [\"EnablePersistent\", \"EmulateCray\"]");
    // SAFETY: a plain system call.
    let uid = unsafe { libc::getuid() };
    site.write(
        "create.sh",
        "#!/bin/bash\n#BB create_persistent name=data capacity=300GB access=striped type=scratch\n",
    );
    let job = site.cluster.sbatch("-N0 create.sh");
    site.cluster.wait_state(&job, "COMPLETED");
    assert_eq!(
        site.calls(),
        [format!("create_persistent -c CLI -t data -u {uid} -C wlm_pool:429496729600 -a striped -T scratch")],
        "nothing else is called"
    );
    let shown = site.cluster.ok("scontrol show burst");
    assert!(
        shown.contains("    Name=data CreateTime=20") && shown.contains("Pool=wlm_pool Size=400GiB State=allocated")
    );
    assert!(shown.contains("FreeSpace=5400GiB UsedSpace=400GiB"), "{shown}");
    site.write("use.sh", "#!/bin/bash\n#DW persistentdw name=data\ntrue\n");
    let job = site.cluster.sbatch("use.sh");
    site.wait_buffer(&job, "complete");
    assert!(site.calls().iter().any(|call| call.starts_with(&format!("setup --token {job} "))), "{:?}", site.calls());
    // Creation that is refused holds the job with the program's own words.
    site.control("create_persistent.more.out", "no room");
    site.control("create_persistent.more.rc", "1");
    site.write("more.sh", "#!/bin/bash\n#BB create_persistent name=more capacity=1GB\n");
    let job = site.cluster.sbatch("-N0 more.sh");
    site.wait_reason(&job, "no room");
    assert!(!site.cluster.ok("scontrol show burst").contains("Name=more "));
    site.write("destroy.sh", "#!/bin/bash\n#BB destroy_persistent name=data hurry\n");
    let job = site.cluster.sbatch("-N0 destroy.sh");
    site.cluster.wait_state(&job, "COMPLETED");
    assert_eq!(site.calls().last().unwrap(), "teardown --token data --job SCRIPT --hurry");
    assert!(!site.cluster.ok("scontrol show burst").contains("Name=data "));
    for (line, why) in [
        ("sbatch -N0 --wrap=true", "Node count specification invalid"),
        ("sbatch -N0 --bb='capacity=1G' --wrap=true", "Burst Buffer request invalid"),
        ("sbatch -N0 --array=1-2 create.sh", "Node count specification invalid"),
    ] {
        let said = site.cluster.run(line);
        assert!(said.err.ends_with(&format!("Batch job submission failed: {why}\n")), "{line}: {said:?}");
    }
}

#[test]
fn what_the_program_refuses_is_told_and_what_is_gone_is_no_failure() {
    let site = Site::new("");
    site.write("job.sh", &JOB.replace(" -o dw.out", ""));
    for (function, text) in [
        ("setup", "burst_buffer/datawarp: setup: broken"),
        ("data_in", "burst_buffer/datawarp: dws_data_in: broken"),
        ("paths", "burst_buffer/datawarp: paths failed: broken"),
        ("pre_run", "Burst buffer pre_run error"),
        ("post_run", "burst_buffer/datawarp: dws_post_run: broken"),
        ("data_out", "burst_buffer/datawarp: dws_data_out: broken"),
    ] {
        site.control(&format!("{function}.rc"), "1");
        site.control(&format!("{function}.out"), "broken");
        let job = site.cluster.sbatch("job.sh");
        site.wait_reason(&job, text);
        if function == "setup" {
            assert!(site.cluster.ok("scontrol show burst").contains("UsedSpace=0\n"), "nothing was allocated");
        }
        let comment = site.cluster.ok(&format!("scontrol show job {job}"));
        assert!(comment.contains(": broken"), "{comment}");
        site.cluster.run(&format!("scancel --hurry {job}"));
        site.wait_buffer(&job, "complete");
        site.forget(&format!("{function}.rc"));
        site.forget(&format!("{function}.out"));
    }
    for function in ["data_in", "data_out", "teardown"] {
        site.control(&format!("{function}.rc"), "1");
        site.control(&format!("{function}.out"), "No matching session");
    }
    site.control("paths.rc", "1");
    site.control("paths.out", "job_file_valid True");
    let job = site.cluster.sbatch("job.sh");
    site.wait_buffer(&job, "complete");
    site.cluster.wait_state(&job, "COMPLETED");
    // A teardown that fails is tried for ever.
    site.control("teardown.out", "stuck");
    let job = site.cluster.sbatch("job.sh");
    site.wait_buffer(&job, "teardown-fail");
    let n_teardowns =
        || site.calls().iter().filter(|call| call.starts_with(&format!("teardown --token {job} "))).count();
    site.cluster.wait_until("true", |_| n_teardowns() > 3);
    assert!(site.cluster.ok("scontrol show burst").contains("State=teardown-fail"));
    site.forget("teardown.rc");
    site.wait_buffer(&job, "complete");
}
