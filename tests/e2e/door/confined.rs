//! What daemons and workers give up: scripts of the site that only judge, and a controller that is not root.
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use confine::CallFilter;

use super::processes::{as_user, own_user};
use crate::cluster::{Cluster, Folder, is_root, kill_9, new_dir};

const NODES: &str = "[[nodes]]\nnames = \"n1\"\ncpus = 4\nmemory_mb = 1000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

/// Does what its author never wrote, as if a job's text had taken it over. The words are put together, so that the
/// script does not look like a program.
const TAKEN_OVER: &str = r##"
local function try(name, attempt, ...)
    local is_done, first, why = pcall(attempt, ...)
    slurm.log_user("%s: %s", name, is_done and first and "done" or "refused")
end
function slurm_job_submit(job)
    local out = io["op" .. "en"]
    try("own", out, FOLDER .. "/limits")
    try("named", out, "NAMED")
    try("secret", out, FOLDER .. "/../secret")
    try("elsewhere", out, "/et" .. "c/hosts")
    try("environment", out, "/pro" .. "c/self/environ")
    try("write", out, FOLDER .. "/new", "w")
    try("append", out, FOLDER .. "/limits", "a")
    try("remove", function() return os["re" .. "move"](FOLDER .. "/limits") end)
    try("run", function() return os["exe" .. "cute"]("true") end)
    try("pipe", function() return io["po" .. "pen"]("true"):read("a") end)
    try("mask", function() return os.getenv("SPUR_TEST_SECRET") end)
    return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"##;

#[test]
fn submission_scripts_read_their_folder_and_do_nothing_else() {
    if !confine::shortcomings().is_empty() {
        return eprintln!("skipped: {}", confine::shortcomings().join("; "));
    }
    let dir = Folder::new();
    fs::create_dir(dir.join("site")).unwrap();
    fs::create_dir(dir.join("named")).unwrap();
    for name in ["site/limits", "secret", "named/file"] {
        fs::write(dir.join(name), "text").unwrap();
    }
    let named = dir.join("named/file").display().to_string();
    let folder = dir.join("site").display().to_string();
    let text = TAKEN_OVER.replace("NAMED", &named);
    // The folder is asked for, not written in quotes.
    let text = format!("local FOLDER = debug.getinfo(1, 'S').source:sub(2):match('(.*)/')\n{text}");
    fs::write(dir.join("site/job_submit.lua"), &text).unwrap();
    let conf = |folder: &str| format!("{NODES}[hooks]\njob_submit = [\"{folder}/job_submit.lua\"]\n");
    let head = Cluster::configured(&conf(&folder));
    let said = head.run("sbatch -H --wrap true");
    let told: Vec<&str> = said.err.lines().filter_map(|line| line.strip_prefix("sbatch: ")).collect();
    let expected = [
        "own: done",
        "named: done",
        "secret: refused",
        "elsewhere: refused",
        "environment: refused",
        "write: refused",
        "append: refused",
        "remove: refused",
        "run: refused",
        "pipe: refused",
        "mask: refused",
    ];
    assert_eq!(told, expected, "{said:?}");
    assert!(!dir.join("site/new").exists() && dir.join("site/limits").exists());
    // One that says that it is a program is one.
    fs::write(dir.join("site/job_submit.lua"), format!("-- spur: unconfined\n{text}")).unwrap();
    head.ok("scontrol reconfigure");
    let said = head.wait_until("sbatch -H --wrap true", |said| said.err.contains("run: done"));
    assert!(said.err.contains("elsewhere: done") && said.err.contains("write: done"), "{said:?}");
}

/// What `spur install` keeps a controller from (`SystemCallFilter`, `RestrictNamespaces`), by the numbers of the calls.
fn filter_of_the_unit() -> CallFilter {
    let kept_from = [
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_settimeofday,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_ptrace,
        libc::SYS_perf_event_open,
        libc::SYS_pidfd_getfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_reboot,
        libc::SYS_kexec_load,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_personality,
    ];
    const NUMBERS: libc::c_long = 463;
    let others: Vec<libc::c_long> = (0..NUMBERS).filter(|number| !kept_from.contains(number)).collect();
    CallFilter::default().allow(&others)
}

/// A controller of this test's, which ends with it.
struct HardenedController(Child);

impl Drop for HardenedController {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn controller_serves_all_users_without_root_and_under_its_units_filters() {
    if !is_root() {
        return eprintln!("skipped: only root has several users");
    }
    const OWN: u32 = 1;
    // Where nobody but root makes directories: only there is another user's controller believed, because root put it
    // there.
    let head = Cluster { dir: format!("/run/spur-e2e-{}", std::process::id()).into() };
    fs::create_dir(&head.dir).unwrap();
    fs::write(head.dir.join("wanted.conf"), NODES).unwrap();
    head.start(&format!("--config {}/wanted.conf", head.dir.display()));
    kill_9(head.controller_pid());
    head.ok(&format!("cd {0} && chown -R {OWN}:{OWN} . && chown -R 0:0 spool && mkdir -p work", head.dir.display()));
    head.ok("chmod 1777 .");
    let log = fs::File::options().append(true).create(true).open(head.dir.join("log/controller.log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spur"));
    command.args(["spurctld", "-f"]).arg(head.dir.join("spur.conf")).current_dir("/");
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    // SAFETY: the filter allocates between fork and exec, while no other thread of this test process does.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0o022);
            let identity = libc::setgroups(0, std::ptr::null()) | libc::setresgid(OWN, OWN, OWN);
            if identity | libc::setresuid(OWN, OWN, OWN) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            confine::give_up_new_rights()?;
            filter_of_the_unit().install()
        });
    }
    let controller = HardenedController(command.spawn().unwrap());
    head.wait_until("sinfo -h -o %t", |said| said.out.trim() == "idle");
    let status = fs::read_to_string(format!("/proc/{}/status", controller.0.id())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1\n") && status.contains("Uid:\t1\t1\t1\t1\n"), "{status}");
    let uid = own_user();
    let job = head.ok(&as_user(uid, "sbatch --parsable -n2 -o told --wrap \"id -u; srun id -u\""));
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("told"), format!("{uid}\n{uid}\n{uid}\n"));
    head.ok("scontrol update nodename=n1 state=drain reason=test && scontrol update nodename=n1 state=resume");
    head.ok("scontrol reconfigure");
    let strangers = head.ok(&as_user(own_user(), "squeue -h -t all -o %T"));
    assert_eq!(strangers, "COMPLETED");
    head.ok("sacct -n -o state | grep COMPLETED");
}

#[test]
fn cluster_of_a_user_refuses_strangers_jobs_however_it_was_started() {
    if !is_root() {
        return eprintln!("skipped: only root has several users");
    }
    let head = Cluster { dir: new_dir() };
    let dir = head.dir.display();
    let as_owner = "setpriv --reuid=1 --regid=1 --clear-groups env HOME=/tmp";
    let as_stranger = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp";
    head.ok(&format!("chown 1:1 {dir} && {as_owner} spur up --nodes 1 --dir {dir}"));
    let node = head.ok("sinfo -h -N -o %N");
    kill_9(head.agent_pid(&node));
    kill_9(head.controller_pid());
    // By hand, as an ordinary daemon: nothing says that it is one user's cluster, and the state of an earlier life is
    // forgotten.
    let by_hand = |what: &str| {
        head.ok(&format!("setsid {as_owner} {what} -f {dir}/spur.conf > {dir}/log/hand 2>&1 < /dev/null &"));
    };
    by_hand("spurctld -c");
    head.wait_until("scontrol ping", |said| said.out.contains("UP"));
    let refuse = |caller: &str| {
        for line in ["sbatch -D / -o /dev/null --wrap true", "srun -D / true", "salloc -D / true"] {
            let said = head.run(&format!("{caller} {line}"));
            assert!(said.code != 0 && said.err.contains("run no jobs of"), "{caller} {line}: {said:?}");
        }
    };
    refuse(as_stranger);
    by_hand(&format!("spurd -N {node}"));
    head.wait_until("sinfo -h -o %t", |said| said.out.trim() == "idle");
    refuse(as_stranger);
    refuse("");
    let job = head.ok(&format!("{as_owner} sbatch --parsable -D / -o /dev/null --wrap true"));
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.ok("squeue -h -t all -o '%i %T'"), format!("{job} COMPLETED"));
}
