//! The site's own programs around jobs: where and when they run, what they are told, what follows when they fail, and kills.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::cluster::{Cluster, kill_9, new_dir};

const SITE: &str = "ClusterName=site\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nKillWait=1\n\
    NodeName=n[1-2] CPUs=2 RealMemory=1000\nPartitionName=debug Nodes=ALL Default=YES\n";

/// A cluster whose four programs note each call in `calls`, wait while `KIND.slow` exists, and fail while `KIND.fail` does.
struct Site {
    cluster: Cluster,
    dir: PathBuf,
}

impl Site {
    fn up(kinds: &[&str], more: &str) -> Site {
        let cluster = Cluster { dir: new_dir() };
        let dir = cluster.dir.join("site");
        fs::create_dir_all(&dir).unwrap();
        let mut conf = format!("{SITE}{more}\n");
        for kind in kinds {
            let here = dir.display();
            let body = format!(
                "#!/bin/bash\necho \"{kind} $SLURM_JOB_ID ${{SLURMD_NODENAME:-controller}}\" >> {here}/calls\n\
                 /usr/bin/env | /usr/bin/sort > {here}/{kind}.env\n\
                 while [ -e {here}/{kind}.slow ]; do /bin/sleep 0.02; done\n\
                 if [ -e {here}/{kind}.fail ]; then echo no good; exit 3; fi\n"
            );
            fs::write(dir.join(kind), body).unwrap();
            fs::set_permissions(dir.join(kind), fs::Permissions::from_mode(0o755)).unwrap();
            conf.push_str(&format!("{kind}={here}/{kind}\n"));
        }
        let file = dir.join("slurm.conf");
        fs::write(&file, conf).unwrap();
        cluster.start(&format!("--config {}", file.display()));
        Site { cluster, dir }
    }

    fn set(&self, what: &str) {
        fs::write(self.dir.join(what), "").unwrap();
    }

    fn unset(&self, what: &str) {
        fs::remove_file(self.dir.join(what)).unwrap();
    }

    fn calls(&self) -> Vec<String> {
        fs::read_to_string(self.dir.join("calls")).unwrap_or_default().lines().map(String::from).collect()
    }

    fn wait_call(&self, call: &str) {
        self.cluster.wait_until(&format!("cat {}/calls", self.dir.display()), |said| said.out.contains(call));
    }

    fn environment(&self, kind: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(format!("{kind}.env"))).unwrap_or_default();
        text.lines().map(String::from).collect()
    }
}

#[test]
fn each_runs_where_slurm_runs_it_and_is_told_of_the_job() {
    let site = Site::up(&["Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"], "");
    let job = site.cluster.sbatch("-N2 -J named --comment 'a b' -o out --wrap 'echo ran >> calls; exit 4'");
    site.cluster.wait_state(&job, "FAILED");
    let mut calls = site.calls();
    assert_eq!(calls[..2], [format!("PrologSlurmctld {job} controller"), format!("Prolog {job} n1")]);
    assert_eq!(calls[4], format!("EpilogSlurmctld {job} controller"));
    calls[2..4].sort();
    assert_eq!(calls[2..4], [format!("Epilog {job} n1"), format!("Epilog {job} n2")]);
    let told = site.environment("Prolog");
    let user = site.cluster.ok("id -un");
    for entry in [
        format!("SLURM_JOB_ID={job}"),
        format!("SLURM_JOB_USER={user}"),
        "SLURMD_NODENAME=n1".into(),
        "SLURM_JOB_NODELIST=n[1-2]".into(),
        "SLURM_JOB_COMMENT=a b".into(),
        "SLURM_SCRIPT_CONTEXT=prolog_slurmd".into(),
        "SLURM_CLUSTER_NAME=site".into(),
    ] {
        assert!(told.contains(&entry), "{entry} is not in {told:?}");
    }
    assert!(!told.iter().any(|entry| entry.starts_with("HOME=")), "{told:?}");
    let told = site.environment("Epilog");
    for entry in ["SLURM_JOB_EXIT_CODE2=4:0", "SLURM_JOB_EXIT_CODE=1024", "SLURM_SCRIPT_CONTEXT=epilog_slurmd"] {
        assert!(told.contains(&entry.to_string()), "{entry} is not in {told:?}");
    }
    assert!(site.environment("EpilogSlurmctld").contains(&"SLURM_SCRIPT_CONTEXT=epilog_slurmctld".to_string()));
    let shown = site.cluster.ok("scontrol show config | grep -E '^(Prolog|EpilogSlurmctld) '");
    assert!(shown.contains(&format!("= {}/Prolog", site.dir.display())), "{shown}");
}

#[test]
fn a_failed_prolog_drains_its_node_and_the_job_is_held() {
    let site = Site::up(&["Prolog"], "PrologFlags=Alloc\nAuthInfo=cred_expire=5");
    site.set("Prolog.fail");
    let job = site.cluster.sbatch("-w n1 --wrap true");
    site.cluster.wait_for(&format!("squeue -h -j {job} -o '%T|%r'"), "PENDING|launch failed requeued held");
    assert_eq!(site.cluster.ok("sinfo -h -N -n n1 -o '%T %E'"), "drained Prolog error");
    let shown = site.cluster.ok(&format!("scontrol show job {job} | grep -o 'Reason=[^ ]*'"));
    assert_eq!(shown, "Reason=launch_failed_requeued_held");
    let given_up = site.cluster.sbatch("-w n2 --no-requeue --wrap true");
    site.cluster.wait_state(&given_up, "CANCELLED");
    let revoked = site.cluster.run("scontrol update nodename=n2 state=resume; salloc -w n2 true");
    assert_eq!(revoked.code, 1, "{revoked:?}");
    assert!(revoked.err.contains("has been revoked"), "{revoked:?}");
    site.unset("Prolog.fail");
    site.cluster.ok(&format!("scontrol update nodename=n[1-2] state=resume; scontrol release {job}"));
    site.cluster.wait_state(&job, "COMPLETED");
    let told = site.cluster.run("salloc -w n2 true").err;
    assert!(told.contains("salloc: Granted job allocation") && !told.contains("revoked"), "{told}");
}

#[test]
fn a_failed_epilog_drains_its_node_and_a_failed_controller_prolog_tries_again_later() {
    let site = Site::up(&["Epilog", "PrologSlurmctld"], "");
    site.set("Epilog.fail");
    let job = site.cluster.sbatch("-w n1 --wrap true");
    site.cluster.wait_state(&job, "COMPLETED");
    assert_eq!(site.cluster.ok("sinfo -h -N -n n1 -o '%T %E'"), "drained Epilog error");
    site.unset("Epilog.fail");
    site.set("PrologSlurmctld.fail");
    let job = site.cluster.sbatch("-w n2 --wrap true");
    site.cluster.wait_for(&format!("squeue -h -j {job} -o '%T|%r'"), "PENDING|BeginTime");
    let ended = site.cluster.run("srun -w n2 true");
    assert_ne!(ended.code, 0, "{ended:?}");
}

#[test]
fn nothing_runs_beside_them_and_kills_do_not_run_them_twice() {
    let site = Site::up(&["Prolog", "Epilog", "PrologSlurmctld"], "PrologFlags=Alloc");
    site.set("PrologSlurmctld.slow");
    let job = site.cluster.sbatch("-w n1 --exclusive -o out --wrap 'echo ran'");
    site.wait_call(&format!("PrologSlurmctld {job}"));
    site.cluster.wait_for(&format!("squeue -h -j {job} -o '%T|%r'"), "CONFIGURING|Prolog");
    kill_9(site.cluster.controller_pid());
    site.cluster.start("");
    site.set("Prolog.slow");
    site.unset("PrologSlurmctld.slow");
    site.wait_call(&format!("Prolog {job} n1"));
    site.cluster.wait_for(&format!("squeue -h -j {job} -o '%T|%r'"), "RUNNING|Prolog");
    kill_9(site.cluster.agent_pid("n1"));
    kill_9(site.cluster.controller_pid());
    site.cluster.start("");
    assert_eq!(site.cluster.file("out"), "");
    site.set("Epilog.slow");
    site.unset("Prolog.slow");
    site.wait_call(&format!("Epilog {job} n1"));
    site.cluster.wait_state(&job, "COMPLETING");
    assert_eq!(site.cluster.file("out"), "ran\n");
    let next = site.cluster.sbatch("-w n1 --exclusive --wrap true");
    site.cluster.wait_for(&format!("squeue -h -j {next} -o '%T|%r'"), "PENDING|Resources");
    kill_9(site.cluster.agent_pid("n1"));
    kill_9(site.cluster.controller_pid());
    site.cluster.start("");
    site.cluster.wait_for(&format!("squeue -h -j {next} -o %T"), "PENDING");
    site.unset("Epilog.slow");
    site.cluster.wait_state(&job, "COMPLETED");
    site.cluster.wait_state(&next, "COMPLETED");
    let of_job: Vec<String> = site.calls().into_iter().filter(|call| call.contains(&format!(" {job} "))).collect();
    let once = [format!("PrologSlurmctld {job} controller"), format!("Prolog {job} n1"), format!("Epilog {job} n1")];
    assert_eq!(of_job, once);
    // What was durable is forgotten, so that the spool does not grow.
    site.cluster.wait_for(&format!("find {} -path '*hooks*' -name '{job}.*' | wc -l", site.cluster.dir.display()), "0");
}

#[test]
fn with_no_hold_the_job_runs_and_only_what_is_launched_waits() {
    let site = Site::up(&["Prolog"], "PrologFlags=Alloc,NoHold");
    site.set("Prolog.slow");
    let job = site.cluster.sbatch("-o out --wrap 'echo ran'");
    site.wait_call(&format!("Prolog {job} n1"));
    site.cluster.wait_for(&format!("squeue -h -j {job} -o '%T %r'"), "RUNNING None");
    assert_eq!(site.cluster.file("out"), "");
    site.unset("Prolog.slow");
    site.cluster.wait_state(&job, "COMPLETED");
    assert_eq!(site.cluster.file("out"), "ran\n");
}

#[test]
fn serial_prologs_of_a_node_follow_each_other() {
    let site = Site::up(&["Prolog"], "PrologFlags=Alloc,Serial");
    site.set("Prolog.slow");
    let jobs: Vec<String> = (0..2).map(|_| site.cluster.sbatch("-w n1 --wrap true")).collect();
    site.cluster.wait_for("squeue -h -o %t | sort | uniq -c | xargs", "2 R");
    site.wait_call("Prolog");
    assert_eq!(site.calls().len(), 1, "{:?}", site.calls());
    site.unset("Prolog.slow");
    jobs.iter().for_each(|job| site.cluster.wait_state(job, "COMPLETED"));
    assert_eq!(site.calls().len(), 2);
}

#[test]
fn a_configured_task_prolog_changes_what_tasks_find() {
    let cluster = Cluster { dir: new_dir() };
    let dir = cluster.dir.join("site");
    fs::create_dir_all(&dir).unwrap();
    for (name, text) in [
        ("before", "echo export FOO=from the site; echo unset BAR; echo print told by the site"),
        ("after", "echo $SLURM_PROCID $FOO >> ended"),
    ] {
        fs::write(dir.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let here = dir.display();
    fs::write(dir.join("slurm.conf"), format!("{SITE}TaskProlog={here}/before\nTaskEpilog={here}/after\n")).unwrap();
    cluster.start(&format!("--config {here}/slurm.conf"));
    assert_eq!(
        cluster.ok("BAR=mine srun -n1 sh -c 'echo $FOO, ${BAR-unset}'"),
        "told by the site\nfrom the site, unset"
    );
    cluster.wait_file("ended", |text| text == "0 from the site\n");
}

#[test]
fn srun_runs_its_own_programs_around_a_step() {
    let site = Site::up(&["SrunProlog", "SrunEpilog"], "");
    let here = site.dir.display().to_string();
    let note =
        |name: &str| format!("#!/bin/bash\necho {name} $SLURM_SCRIPT_CONTEXT $SLURM_NNODES \"$@\" >> {here}/notes\n");
    for name in ["before", "after"] {
        fs::write(site.dir.join(name), note(name)).unwrap();
        fs::set_permissions(site.dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    // The site's, around a job of srun's own, which is there before the first and gone after the second.
    assert_eq!(site.cluster.ok("srun -N2 -n2 printenv SLURM_NTASKS"), "2\n2");
    let calls = site.calls();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let job = calls[0].split(' ').nth(1).unwrap().to_string();
    assert_eq!(calls, [format!("SrunProlog {job} controller"), format!("SrunEpilog {job} controller")]);
    assert!(site.environment("SrunEpilog").contains(&"SLURM_SCRIPT_CONTEXT=epilog_srun".to_string()));
    site.cluster.wait_state(&job, "COMPLETED");
    assert_eq!(site.cluster.ok(&format!("sacct -nP -j {job} -o jobid,state | tail -1")), format!("{job}.0|COMPLETED"));
    // The user's own go before them; the exit code is the step's.
    let said = site.cluster.run(&format!("srun --prolog={here}/before --epilog={here}/after -N1 bash -c 'exit 3'"));
    assert_eq!(said.code, 3, "{said:?}");
    let noted = |name: &str| fs::read_to_string(site.dir.join(name)).unwrap_or_default();
    assert_eq!(noted("notes"), "before prolog_srun 1 bash -c exit 3\nafter epilog_srun 1 bash -c exit 3\n");
    // In an allocation, in parts, and not at all.
    site.cluster.ok(&format!(
        "rm {here}/calls; salloc -Q -n2 srun --epilog=none -n1 true; srun --prolog=none --epilog=none true"
    ));
    assert_eq!(site.calls().len(), 1, "{:?}", site.calls());
    site.cluster.ok(&format!("rm {here}/calls"));
    assert_eq!(site.cluster.ok("srun -l -n1 echo one : -n1 echo two | sort"), "0: one\n1: two");
    assert_eq!(site.calls().len(), 2, "{:?}", site.calls());
    let said = site.cluster.run("srun --prolog=/nowhere --epilog=none true");
    assert_eq!((said.code, said.err.as_str()), (0, "srun: Access denied for /nowhere: No such file or directory\n"));
    let shown = site.cluster.ok("scontrol show config | grep -E '^Srun(Prolog|Epilog) '");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains(&format!("= {here}/SrunProlog")), "{shown}");
    site.cluster.wait_for("squeue -h | wc -l", "0");
}

#[test]
fn a_prolog_hears_of_the_gpus_of_its_job_and_of_parts_of_them() {
    let nodes =
        "GresTypes=gpu,mps\nNodeName=g1 CPUs=2 RealMemory=1000 Gres=gpu:2,mps:200\nPartitionName=gpus Nodes=g1\n";
    let site = Site::up(&["Prolog", "Epilog"], nodes);
    for (options, told, untold) in [
        ("--gres=gpu:1", "CUDA_VISIBLE_DEVICES=0", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"),
        ("--gres=mps:50", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_VISIBLE_DEVICES=1"),
    ] {
        let job = site.cluster.sbatch(&format!("-p gpus {options} --wrap true"));
        site.wait_call(&format!("Epilog {job} g1"));
        site.cluster.wait_state(&job, "COMPLETED");
        for kind in ["Prolog", "Epilog"] {
            let environment = site.environment(kind);
            let has = |line: &str| environment.iter().any(|one| one == line);
            assert!(has(told) && has("SLURM_JOB_GPUS=0") && !has(untold), "{kind} {options}: {environment:?}");
        }
    }
}
