//! History outlives jobs, controllers and even the state.
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::{Cluster, kill_9};

/// Without it sacct begins at midnight, which may pass during a test.
const EVER: &str = "-S 2020-01-01";

fn states(cluster: &Cluster, arguments: &str) -> Vec<String> {
    let text = cluster.ok(&format!("sacct -n -P -o jobid,state,exitcode {arguments}"));
    text.lines().map(str::to_string).collect()
}

#[test]
fn sacct_tells_what_became_of_jobs_and_steps_at_once() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let job = cluster.sbatch("-H -J named --comment 'a b' --wrap='srun true; srun false; exit 3'");
    assert_eq!(states(&cluster, &format!("-j {job}")), [format!("{job}|PENDING|0:0")]);
    assert_eq!(states(&cluster, ""), Vec::<String>::new(), "what is not eligible is shown by name only");
    cluster.ok(&format!("scontrol release {job}"));
    cluster.wait_state(&job, "FAILED");
    let expected = ["|FAILED|3:0", ".batch|FAILED|3:0", ".extern|COMPLETED|0:0", ".0|COMPLETED|0:0", ".1|FAILED|1:0"];
    assert_eq!(states(&cluster, &format!("-j {job}")), expected.map(|end| format!("{job}{end}")));
    let fields = cluster.ok(&format!("sacct -X -n -P -j {job} -o jobname,comment,alloccpus,nodelist,derivedexitcode"));
    assert_eq!(fields, "named|a b|1|n1|1:0");
    let unknown = cluster.run("sacct -P -j 999999");
    assert_eq!((unknown.out.lines().count(), unknown.code), (1, 0), "a heading and no row");
    let json = cluster.ok(&format!("sacct --json=v0.0.38 -j {job}"));
    assert!(json.contains("\"current\": \"FAILED\"") && json.contains("\"return_code\": 3"), "{json}");
}

#[test]
fn arrays_and_requeues_have_their_rows() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let array = cluster.sbatch("-a 0-2 --wrap='exit $SLURM_ARRAY_TASK_ID'");
    for task in 0..3 {
        let state = if task == 0 { "COMPLETED" } else { "FAILED" };
        cluster.wait_state(&format!("{array}_{task}"), state);
    }
    let mut rows = states(&cluster, &format!("-X -j {array}"));
    rows.sort();
    let expected = ["_0|COMPLETED|0:0", "_1|FAILED|1:0", "_2|FAILED|2:0"];
    assert_eq!(rows, expected.map(|end| format!("{array}{end}")));
    assert_eq!(states(&cluster, &format!("-X -j {array}_1")), [format!("{array}_1|FAILED|1:0")]);
    let waiting = cluster.sbatch("-H -a 0-7%4 --wrap=true");
    assert_eq!(states(&cluster, &format!("-X -j {waiting}")), [format!("{waiting}_[0-7%4]|PENDING|0:0")]);
    let again = cluster.sbatch("--wrap='[ $SLURM_RESTART_COUNT ] || sleep 1000'");
    cluster.wait_state(&again, "RUNNING");
    cluster.ok(&format!("scontrol requeue {again}"));
    cluster.wait_state(&again, "COMPLETED");
    assert_eq!(states(&cluster, &format!("-X -j {again}")), [format!("{again}|COMPLETED|0:0")]);
    let both = states(&cluster, &format!("-X -D -j {again}"));
    assert_eq!(both, [format!("{again}|REQUEUED|0:0"), format!("{again}|COMPLETED|0:0")]);
}

#[test]
fn nothing_is_lost_or_doubled_when_the_controller_dies() {
    let cluster = Cluster::up("--nodes 1 --cpus 8");
    let mut jobs = Vec::new();
    for _ in 0..4 {
        for _ in 0..5 {
            jobs.push(cluster.sbatch("--wrap=true"));
        }
        kill_9(cluster.controller_pid());
        cluster.start("");
    }
    for job in &jobs {
        cluster.wait_state(job, "COMPLETED");
    }
    let expected: Vec<String> = jobs.iter().map(|job| format!("{job}|COMPLETED|0:0")).collect();
    assert_eq!(states(&cluster, &format!("-X -D {EVER}")), expected);
}

#[test]
fn ids_go_on_where_a_lost_state_ended() {
    let cluster = Cluster::up("--nodes 1");
    for _ in 0..3 {
        cluster.sbatch("--wrap=true");
    }
    let last = cluster.sbatch("--wrap=true");
    cluster.wait_state(&last, "COMPLETED");
    assert_eq!(states(&cluster, &format!("-X {EVER}")).len(), 4);
    cluster.ok(&format!("spur down --dir {}", cluster.dir.display()));
    std::fs::remove_dir_all(cluster.dir.join("state/journal")).unwrap();
    cluster.start("");
    let next: u32 = cluster.sbatch("--wrap=true").parse().unwrap();
    assert!(next > last.parse().unwrap(), "{next} after {last}");
    cluster.wait_state(&next.to_string(), "COMPLETED");
    assert_eq!(states(&cluster, &format!("-X {EVER}")).len(), 5);
}

#[test]
fn postgres_keeps_the_same_history() {
    let Some(server) = Server::start() else {
        eprintln!("SKIPPED: initdb and postgres are not found, or cannot be run as this user");
        return;
    };
    let nodes = "[[nodes]]\nnames = \"n1\"\ncpus = 4\nmemory_mb = 1000\n";
    let cluster =
        Cluster::configured(&format!("{nodes}[accounting]\ndatabase = \"{}\"\nkeep_scripts = true\n", server.url()));
    let job = cluster.sbatch("--wrap='srun true; exit 2'");
    cluster.wait_state(&job, "FAILED");
    let expected = ["|FAILED|2:0", ".batch|FAILED|2:0", ".extern|COMPLETED|0:0", ".0|COMPLETED|0:0"];
    assert_eq!(states(&cluster, &format!("-j {job}")), expected.map(|end| format!("{job}{end}")));
    assert!(cluster.ok(&format!("sacct -B -j {job}")).contains("srun true; exit 2"));
    // While the database is away jobs run, and nothing is forgotten.
    server.signal("STOP");
    let unseen = cluster.sbatch("--wrap=true");
    cluster.wait_state(&unseen, "COMPLETED");
    server.signal("CONT");
    assert_eq!(states(&cluster, &format!("-X -j {unseen}")), [format!("{unseen}|COMPLETED|0:0")]);
}

/// A PostgreSQL server of the test's own, reached through a socket.
struct Server {
    dir: tempdir::Dir,
    process: std::process::Child,
}

impl Server {
    fn start() -> Option<Server> {
        let dir = tempdir::Dir::new();
        let as_user = |line: &str| {
            // PostgreSQL refuses to run as root. SAFETY: getuid cannot fail.
            let is_root = unsafe { libc::getuid() } == 0;
            let mut command = Command::new(if is_root { "setpriv" } else { "sh" });
            if is_root {
                command.args(["--reuid=nobody", "--clear-groups", "sh"]);
            }
            command.args(["-c", line]).current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let data = dir.path().join("data");
        let made = as_user(&format!("initdb -D {} -A trust -U spur", data.display())).status().ok()?;
        if !made.success() {
            return None;
        }
        let options = format!("-k {} -c listen_addresses= -c fsync=off", dir.path().display());
        let process = as_user(&format!("exec postgres -D {} {options}", data.display())).spawn().ok()?;
        let server = Server { dir, process };
        // The server says there when it takes connections.
        let status = data.join("postmaster.pid");
        for _ in 0..1000 {
            if std::fs::read_to_string(&status).is_ok_and(|text| text.contains("ready")) {
                return Some(server);
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        None
    }

    fn url(&self) -> String {
        format!("postgres:///postgres?user=spur&host={}", self.dir.path().display())
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {0}; pkill -{name} -P {0}; true", self.process.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the process is a child of ours that has not been waited for.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGQUIT) };
        let _ = self.process.wait();
    }
}

mod tempdir {
    use super::Path;

    /// A directory anyone may write to, gone with the value.
    pub struct Dir(std::path::PathBuf);

    impl Dir {
        pub fn new() -> Dir {
            let path = std::env::temp_dir().join(format!("spur-postgres-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
            Dir(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// `sacctmgr modify job`: of a job that the controller knows, of one that it has forgotten, and by whom.
#[test]
fn what_is_said_of_a_job_afterwards_is_kept() {
    let cluster = Cluster::configured(
        "[controller]\nmin_job_age = 0.1\n[accounting]\nenforce = \"nosteps\"\n[[nodes]]\nnames = \"n1\"\ncpus = 2\n[[partitions]]\nname = \"p\"\nnodes = \"n1\"\ndefault = true\n",
    );
    let amended =
        |job: &str| cluster.ok(&format!("sacct -n -X -P -j {job} -o comment,admincomment,derivedexitcode,wckey"));
    let old = cluster.sbatch("--comment=own --wrap=true");
    // It is known for a moment only.
    cluster.wait_until(&format!("scontrol show job {old}"), |said| said.code != 0);
    assert_eq!(states(&cluster, &format!("-j {old}")), [format!("{old}|COMPLETED|0:0")]);
    assert_eq!(cluster.ok(&format!("sacct -n -P -j {old} -o jobid")), old, "no steps are recorded");
    let told = cluster.ok(&format!("sacctmgr -i modify job jobid={old} set DerivedExitCode=512"));
    assert!(told.starts_with(&format!(" Modified jobs...\n  {old} submitted at ")), "{told}");
    assert_eq!(amended(&old), "own||2:0|");
    cluster
        .ok(&format!("sacctmgr -i modify job where jobid={old} set Comment='not mine' AdminComment=seen NewWCKey=w"));
    assert_eq!(amended(&old), "not mine|seen|2:0|w");

    // Its row is written again when it ends, and says it still.
    let young = cluster.sbatch("--wrap='while ! test -e go; do sleep 0.1; done'");
    cluster.wait_state(&young, "RUNNING");
    cluster.ok(&format!("sacctmgr -i modify job where jobid={young} set Comment=watch"));
    assert!(cluster.ok(&format!("scontrol show job {young}")).contains("Comment=watch"));
    cluster.ok("touch go");
    cluster.wait_until(&format!("scontrol show job {young}"), |said| said.code != 0);
    assert_eq!(amended(&young), "watch||0:0|");

    let refused = cluster.run("sacctmgr -i modify job where jobid=4000 set Comment=x");
    assert_eq!((refused.code, refused.out.as_str()), (1, " Nothing modified\n"));
    let discarded = cluster.ok(&format!("printf 'n\\n' | sacctmgr modify job where jobid={old} set Comment=x"));
    assert!(discarded.ends_with("Changes Discarded"), "{discarded}");
    assert_eq!(amended(&old), "not mine|seen|2:0|w");
}
