//! What the mail program is called with: one mail for an array or a heterogeneous job, in a Slurm's words.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cluster::{Cluster, new_dir};

/// A cluster whose mail program notes the subjects, one to a line.
fn up() -> Cluster {
    let cluster = Cluster { dir: new_dir() };
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    let mailer = cluster.dir.join("mailer");
    let said = cluster.dir.join("work/mails");
    fs::write(
        &mailer,
        format!("#!/bin/sh\necho \"$2 [$SLURM_JOB_ID $SLURM_JOB_EXIT_CODE_MAX]\" >> {}\n", said.display()),
    )
    .unwrap();
    fs::set_permissions(&mailer, fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!(
        "[controller]\nmail_program = \"{}\"\n[[nodes]]\nnames = \"n[1-4]\"\ncpus = 4\nmemory_mb = 1000\n\
         [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
        mailer.display()
    );
    let file = cluster.dir.join("wanted.conf");
    fs::write(&file, text).unwrap();
    cluster.start(&format!("--config {}", file.display()));
    cluster
}

/// The mails about a job, sorted, when the one that ends has come and nothing more comes of it.
fn mails(cluster: &Cluster, job: &str) -> Vec<String> {
    let head = format!("Job_id={job}");
    let is_last = |line: &str| line.contains(&head) && (line.contains(" Ended") || line.contains(" Failed"));
    cluster.wait_file("mails", |text| text.lines().any(is_last));
    // What is still on its way has been handed in by now: the counters know.
    cluster.wait_until("sdiag | grep -A3 -i mail", |said| !said.out.contains("waiting: 1"));
    let text = cluster.file("mails");
    let mut lines: Vec<String> = text.lines().filter(|line| line.contains(&head)).map(String::from).collect();
    lines.sort();
    lines
}

#[test]
fn array_has_one_mail_of_its_beginning_and_one_of_its_end() {
    let cluster = up();
    let cases = [
        ("sleep 0.2", " Ended, COMPLETED, ExitCode [0-0]", "0"),
        ("exit $SLURM_ARRAY_TASK_ID", " Failed, Mixed, ExitCode [0-3]", "3"),
        ("[ $SLURM_ARRAY_TASK_ID = 1 ] && kill -9 $$; true", " Ended, Mixed, MaxSignal [9]", ""),
        ("exit 3", " Failed, FAILED, ExitCode [3-3]", "3"),
    ];
    for (script, end, code) in cases {
        // All of them start, and end, at once.
        let job = cluster.sbatch(&format!("-J x -a 0-3 -o /dev/null --mail-type=ALL --mail-user=me --wrap '{script}'"));
        let head = format!("Slurm Array Summary Job_id={job}_* ({job}) Name=x");
        let expected = [format!("{head} Began [{job} ]"), format!("{head}{end} [{job} {code}]")];
        assert_eq!(mails(&cluster, &job), expected, "{script}");
    }
}

#[test]
fn heterogeneous_job_has_the_mails_of_its_first_component() {
    let cluster = up();
    let options = "-J h -o /dev/null --mail-type=ALL --mail-user=me --wrap 'sleep 0.2' -n1 : -n1 --mail-type=ALL";
    let job = cluster.sbatch(options);
    let told = mails(&cluster, &job);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with(&format!("Slurm Job_id={job} Name=h Began, Queued time ")), "{told:?}");
    assert!(told[1].starts_with(&format!("Slurm Job_id={job} Name=h Ended, Run time ")), "{told:?}");
    let all = cluster.file("mails");
    assert_eq!(all.lines().count(), 2, "{all}");
}
