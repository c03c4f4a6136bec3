//! What programs inherit: limits, environments, descriptors, and everything else that a daemon was started with.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use model::command::Blob;
use model::spec::ResourceLimit;
use model::{JobKind, JobSpec, codec};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use super::processes::{as_user, own_user, shared};
use crate::cluster::{Cluster, is_alive, is_root, kill_9, new_dir};

const CONF: &str = "cluster_name = \"hardening\"\n\
    [[nodes]]\nnames = \"n1\"\ncpus = 16\nmemory_mb = 4000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

/// What the daemons are started with, and nobody else is to see.
const SECRET: &str = "SPUR_TEST_SECRET";

/// As programs of the site have it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Submits what no command would, as this user.
fn submit(head: &Cluster, uid: u32, spec: JobSpec, script: &str) -> String {
    let script = Blob::of(script.as_bytes().to_vec());
    let spec = JobSpec { kind: JobKind::Batch { script: script.id }, user: "x".into(), ..spec };
    let body =
        written(&[(1, FieldContent::Bytes(codec::encode(&spec))), (2, FieldContent::Bytes(codec::encode(&script)))]);
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid, gid: uid };
    on_own_thread(async move {
        RawCaller::open(&entrance, &[])
            .await
            .call("/spur.v1.Controller/Submit", body, false)
            .await
            .expect("it is taken");
    });
    head.ok("squeue -h -t all -o %i | sort -n | tail -n 1")
}

#[test]
fn limits_of_jobs_stay_below_those_of_their_node() {
    if !is_root() {
        eprintln!("skipped: only root could raise its limits");
        return;
    }
    let head = Cluster { dir: new_dir() };
    fs::write(head.dir.join("wanted.conf"), CONF).unwrap();
    let up = format!(
        "ulimit -n 4000; ulimit -c 0; ulimit -u 30000; spur up --dir {0} --config {0}/wanted.conf",
        head.dir.display()
    );
    head.ok(&up);
    head.ok("chmod 1777 .");
    let everything = |resource: libc::__rlimit_resource_t| ResourceLimit { resource, soft: 100_000, hard: 1_000_000 };
    let limits = [libc::RLIMIT_NOFILE, libc::RLIMIT_CORE, libc::RLIMIT_NPROC].map(everything).to_vec();
    let work_dir = head.dir.join("work").display().to_string();
    let spec = JobSpec { limits, work_dir, stdout: Some("limits".into()), ..JobSpec::default() };
    let job = submit(&head, own_user(), spec, "#!/bin/bash\nulimit -Sn; ulimit -Hn; ulimit -Hc; ulimit -Hu\n");
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("limits"), "4000\n4000\n0\n30000\n");
    // Limits below those of the node are the user's own choice.
    let job = head.ok(&as_user(own_user(), "ulimit -n 300; sbatch --parsable -o lower --wrap \"ulimit -Hn\""));
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("lower"), "300\n");
}

/// A program that tells in a file of this name what it was born with.
fn teller(head: &Cluster, name: &str) -> String {
    let path = head.dir.join(name);
    let told = head.dir.join("work").join(format!("{name}.told"));
    let body = format!(
        "#!/bin/bash\n{{ /usr/bin/env -0 | /usr/bin/tr '\\n\\0' ' \\n'; echo \"cwd $PWD\"; echo \"umask $(umask)\"\n\
         /bin/ls /proc/self/fd | /bin/sed 's/^/fd /'\n/bin/grep -E '^Sig(Blk|Ign)' /proc/self/status; }} > {0}.new\n\
         /bin/mv -f {0}.new {0}\n",
        told.display()
    );
    fs::create_dir_all(head.dir.join("work")).unwrap();
    fs::set_permissions(head.dir.join("work"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(&path, body).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn programs_of_the_site_inherit_nothing_of_the_daemons() {
    let head = Cluster { dir: new_dir() };
    let names = ["prolog", "epilog", "controller_prolog", "controller_epilog", "check", "mail", "trigger"];
    let program: Vec<String> = names.iter().map(|name| teller(&head, name)).collect();
    let conf = format!(
        "cluster_name = \"hardening\"\n[controller]\nmail_program = \"{5}\"\n[agent]\nheartbeat = 1\n\
         [hooks]\nprolog = [\"{0}\"]\nepilog = [\"{1}\"]\ncontroller_prolog = [\"{2}\"]\ncontroller_epilog = [\"{3}\"]\n\
         [health]\ncheck = \"{4}\"\ncheck_interval = 1\n\
         [[nodes]]\nnames = \"n1\"\ncpus = 16\nmemory_mb = 4000\n\
         [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
        program[0], program[1], program[2], program[3], program[4], program[5]
    );
    fs::write(head.dir.join("wanted.conf"), conf).unwrap();
    head.start(&format!("--config {}/wanted.conf", head.dir.display()));
    started_from_a_shell_full_of_secrets(&head);
    let daemons = [head.controller_pid(), head.agent_pid("n1")];
    for pid in daemons {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(String::from_utf8_lossy(&environment).contains(SECRET), "the daemon itself has it");
    }
    let job = head.sbatch("-H --mail-type=BEGIN -o env --wrap 'srun -o step env; env; ls /proc/self/fd'");
    head.ok(&format!("strigger --set -j {job} --fini -p {} && scontrol release {job}", program[6]));
    head.wait_state(&job, "COMPLETED");
    for name in names {
        let told = head.wait_file(&format!("{name}.told"), |text| !text.is_empty());
        // Prologs and epilogs have none, as in Slurm.
        let path = told.lines().find_map(|line| line.strip_prefix("PATH="));
        assert!(path.is_none_or(|path| path == PATH), "{name}: {path:?}");
        assert_harmless(name, &told, false);
    }
    let (batch, step) = (head.file("env"), head.file("step"));
    assert!(batch.contains("SLURM_JOB_ID=") && step.contains("SLURM_STEP_ID="), "{batch}{step}");
    assert!(!batch.contains(SECRET) && !step.contains(SECRET), "{batch}{step}");
    // Neither do the processes between the daemons and the jobs, which users could look into.
    let running = head.sbatch("-o /dev/null --wrap 'sleep 600'");
    head.wait_state(&running, "RUNNING");
    let supervisors = head.ok(&format!("pgrep -x spurstepd -P {}", daemons[1]));
    assert!(!supervisors.is_empty());
    for pid in supervisors.lines() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains(SECRET), "spurstepd {pid}");
    }
}

/// Ends the daemons, and starts them as a careless administrator would: from a shell full of secrets, with a file open.
fn started_from_a_shell_full_of_secrets(head: &Cluster) {
    kill_9(head.agent_pid("n1"));
    kill_9(head.controller_pid());
    let again = format!(
        "export {SECRET}=1 LD_LIBRARY_PATH=/nowhere BASH_ENV=/nowhere; cd /var; umask 0; exec 7</etc/passwd; trap '' USR1\n\
         setsid spurctld -f {0}/spur.conf > {0}/log/ctld 2>&1 &\nsetsid spurd -f {0}/spur.conf -N n1 > {0}/log/d 2>&1 &",
        head.dir.display()
    );
    head.ok(&again);
    head.wait_until("sinfo -h -o %t", |said| {
        said.out.trim() == "idle" && is_alive(head.controller_pid()) && is_alive(head.agent_pid("n1"))
    });
}

/// What such a program tells holds nothing of the daemon that began it; of a worker between the two it may hold
/// descriptors. 3 is the directory that ls reads.
fn assert_harmless(name: &str, told: &str, has_own_descriptors: bool) {
    let lines: BTreeSet<&str> = told.lines().collect();
    assert!(!told.contains(SECRET) && !told.contains("/nowhere"), "{name}: {told}");
    assert!(lines.contains("cwd /") && lines.contains("umask 0022"), "{name}: {told}");
    let open: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("fd ")).collect();
    assert!(has_own_descriptors || open == ["0", "1", "2", "3"], "{name}: {open:?}");
    assert!(!open.contains(&"7"), "{name}: {open:?}");
    // The C library ignores two signals of its own in what it starts for a script.
    let of_library = |line: &str| has_own_descriptors && line == "SigIgn:\t0000000180000000";
    let is_reset = |line: &&str| !line.starts_with("Sig") || line.ends_with("0000000000000000") || of_library(line);
    assert!(lines.iter().all(is_reset), "{name}: {told}");
}

#[test]
fn scripts_and_programs_of_buffers_and_reboots_inherit_nothing() {
    let functions =
        hooks::FUNCTIONS.map(|name| format!("function {name}(...) return slurm.SUCCESS, '' end\n")).concat();
    for kind in ["lua", "datawarp"] {
        let head = Cluster { dir: new_dir() };
        let reboot = teller(&head, "reboot");
        let tell = teller(&head, "buffer");
        let script = head.dir.join("burst_buffer.lua");
        let pools = "function slurm_bb_pools() os.execute(TELL) return slurm.SUCCESS, '{\"pools\":[]}' end\n";
        let pools = pools.replace("TELL", &format!("'{tell}; true'"));
        fs::write(&script, format!("{functions}{pools}")).unwrap();
        let buffer = match kind {
            "lua" => format!("type = \"lua\"\nscript = \"{}\"\npools_interval = 1\n", script.display()),
            _ => format!("type = \"datawarp\"\nget_sys_state = \"{tell}\"\nget_sys_status = \"{tell}\"\n"),
        };
        let submit = head.dir.join("job_submit.lua");
        let text = "function slurm_job_submit(job) slurm.log_user('secret is %s', tostring(os.getenv('SECRET'))) end\n\
                    function slurm_job_modify() end\n";
        fs::write(&submit, text.replace("SECRET", SECRET)).unwrap();
        let conf = format!(
            "{CONF}[burst_buffer]\n{buffer}[health]\nreboot_program = \"{reboot}\"\n[hooks]\njob_submit = [\"{}\"]\n",
            submit.display()
        );
        fs::write(head.dir.join("wanted.conf"), conf).unwrap();
        head.start(&format!("--config {}/wanted.conf", head.dir.display()));
        started_from_a_shell_full_of_secrets(&head);
        let told = head.dir.join("work/buffer.told");
        let _ = fs::remove_file(&told);
        head.ok("scontrol reconfigure");
        assert_harmless(kind, &head.wait_file("buffer.told", |text| !text.is_empty()), true);
        assert!(head.run("sbatch -H --wrap true").err.contains("secret is nil"));
        head.ok("scontrol reboot n1");
        assert_harmless("reboot", &head.wait_file("reboot.told", |text| !text.is_empty()), false);
    }
}

#[test]
fn jobs_inherit_three_descriptors() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let tell = "ls -l /proc/self/fd | grep -o \"[0-9]* -> .*\"";
    let list = |file: &str| -> Vec<String> {
        let text = head.file(file);
        // One is that of the directory which ls reads.
        let fds = text.lines().filter_map(|line| line.split_once(" -> ")).filter(|(_, to)| !to.starts_with("/proc/"));
        fds.map(|(fd, _)| fd.to_string()).collect()
    };
    fs::write(head.dir.join("work/job.sh"), format!("#!/bin/bash\n{tell}\nsrun -n2 -o step.%t bash -c '{tell}'\nsrun -n1 --mpi=pmi2 -o pmi bash -c '{tell}; echo $PMI_FD'\n")).unwrap();
    let job = head.ok(&as_user(uid, "sbatch --parsable -n2 -o batch job.sh"));
    head.wait_state(&job, "COMPLETED");
    for file in ["batch", "step.0", "step.1"] {
        assert_eq!(list(file), ["0", "1", "2"], "{file}: {}", head.file(file));
    }
    let told = head.file("pmi");
    let line = told.lines().last().unwrap_or_default();
    assert_eq!(list("pmi").iter().filter(|fd| !["0", "1", "2", line].contains(&fd.as_str())).count(), 0, "{told}");
}

#[test]
fn jobs_gain_no_privileges_without_setuid_helpers() {
    let Some(head) = shared(CONF) else { return };
    let tell = |head: &Cluster, name: &str| {
        let script = "grep NoNewPrivs /proc/self/status; srun grep NoNewPrivs /proc/self/status";
        let job = head.ok(&as_user(own_user(), &format!("sbatch --parsable -o {name} --wrap \"{script}\"")));
        head.wait_state(&job, "COMPLETED");
        head.file(name)
    };
    assert_eq!(tell(&head, "without"), "NoNewPrivs:\t1\nNoNewPrivs:\t1\n");
    let root = head.sbatch("-o root --wrap 'grep NoNewPrivs /proc/self/status'");
    head.wait_state(&root, "COMPLETED");
    assert_eq!(head.file("root"), "NoNewPrivs:\t0\n");
    let conf = format!("[agent]\nsetuid_helpers = [\"/usr/bin/sudo\"]\n{}", CONF.split_once('\n').unwrap().1);
    let Some(head) = shared(&conf) else { return };
    assert_eq!(tell(&head, "with"), "NoNewPrivs:\t0\nNoNewPrivs:\t0\n");
}
