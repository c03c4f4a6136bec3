//! Room for burst buffers: foreign files in a pool, jobs that take more than they asked for, nodes that never return, and what users
//! put into their trees.
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::burst::{burst_with, empty, movers};
use crate::cluster::kill_9;

/// A small file system below a pool's root; says whether there is one.
fn mount(cluster: &crate::cluster::Cluster, root: &Path, size: &str) -> bool {
    let line = format!("mkdir -p {0} && mount -t tmpfs -o size={size},mode=0755 none {0}", root.display());
    let is_there = cluster.run(&line).code == 0;
    if !is_there {
        eprintln!("SKIPPED: only root can make a small file system");
    }
    is_there
}

#[test]
fn foreign_files_take_of_what_is_free() {
    let burst = burst_with("measure_interval = 0.3");
    let cluster = &burst.cluster;
    for root in ["flash", "n1"] {
        if !mount(cluster, &burst.pools.join(root), "40m") {
            return;
        }
    }
    let free = |pool: &str| format!("scontrol show burst | tr ' ' '\n' | grep -A4 {pool} | grep FreeSpace");
    // The pools have 64 MiB, their file systems 40 MiB.
    cluster.wait_until(&free("DefaultPool=flash"), |said| said.out.trim() == "FreeSpace=40MiB");
    // Of the nodes' 128 MiB, n1's file system has 40.
    cluster.wait_until(&free("]=local"), |said| said.out.trim() == "FreeSpace=104MiB");
    for root in ["flash", "n1"] {
        fs::write(burst.pools.join(root).join("foreign"), vec![7; 36 << 20]).unwrap();
    }
    cluster.wait_until(&free("DefaultPool=flash"), |said| said.out.trim() == "FreeSpace=4MiB");
    cluster.wait_until(&free("]=local"), |said| said.out.trim() == "FreeSpace=68MiB");
    let shared = burst.submit("shared", "", "flash", "true");
    let private = burst.submit("private", "-w n1", "local", "true");
    for job in [&shared, &private] {
        let line = format!("squeue -h -j {job} -o '%T %r'");
        let said = cluster.wait_until(&line, |said| !said.out.contains("None") && !said.out.contains("(null)"));
        assert!(said.out.starts_with("PENDING"), "{said:?}");
    }
    let said = cluster.ok(&format!("squeue -h -j {shared} -o %r"));
    assert_eq!(said, "BurstBufferResources");
    for root in ["flash", "n1"] {
        fs::write(burst.pools.join(root).join("crumb"), vec![7; 200_000]).unwrap();
        fs::remove_file(burst.pools.join(root).join("foreign")).unwrap();
    }
    for job in [&shared, &private] {
        cluster.wait_state(job, "COMPLETED");
    }
    // Less than a hundredth is nothing to make a fuss about, except for who asks for all.
    cluster.wait_until(&free("DefaultPool=flash"), |said| said.out.trim() == "FreeSpace=39MiB");
    cluster.wait_until(&free("]=local"), |said| said.out.trim() == "FreeSpace=103MiB");
    let whole = cluster.sbatch("--bb='capacity=40MiB pool=flash' -o whole.out --wrap true");
    cluster.wait_until(&format!("squeue -h -j {whole} -o %r"), |said| said.out.trim() == "BurstBufferResources");
    for root in ["flash", "n1"] {
        fs::remove_file(burst.pools.join(root).join("crumb")).unwrap();
    }
    cluster.wait_state(&whole, "COMPLETED");
    cluster.wait_until(&free("]=local"), |said| said.out.trim() == "FreeSpace=104MiB");
    burst.nothing_is_left();
    for root in ["flash", "n1"] {
        let gone = cluster.run(&format!("umount -l {}", burst.pools.join(root).display()));
        assert_eq!(gone.code, 0, "{gone:?}");
    }
}

#[test]
fn who_takes_more_than_was_asked_for_is_told_and_ended() {
    let burst = burst_with("measure_interval = 0.2\nend_over_limit = true");
    let cluster = &burst.cluster;
    let fill = "head -c 12000000 /dev/zero | tr '\\0' x > $DW_JOB_STRIPED/in/large; sleep 300";
    let job = burst.submit("greedy", "", "flash", fill);
    cluster.wait_state(&job, "FAILED");
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    assert!(shown.contains("overlimit: holds") && shown.contains("of 8MiB"), "{shown}");
    // What it has made is brought back all the same.
    cluster.ok(&format!("test -s back-{job}/large"));
    burst.nothing_is_left();

    let kept = burst_with("measure_interval = 0.2");
    let cluster = &kept.cluster;
    let job = kept.submit(
        "greedy",
        "",
        "flash",
        &fill.replace("sleep 300", "while test -e $DW_JOB_STRIPED/in/large; do sleep 0.1; done"),
    );
    cluster.wait_until("scontrol show burst", |said| said.out.contains("State=overlimit"));
    // It may have been measured while the job was still writing.
    cluster.wait_until("scontrol -d show burst", |said| said.out.contains(" Used=13") && said.out.contains("Nodes=n"));
    cluster.ok(&format!("rm {}/flash/jobs/*/shared/in/large", kept.pools.display()));
    cluster.wait_state(&job, "COMPLETED");
    kept.nothing_is_left();
}

#[test]
fn what_was_moved_is_told_file_by_file() {
    let burst = burst_with("bandwidth = \"64MiB\"");
    let cluster = &burst.cluster;
    fs::write(cluster.dir.join("work/input/two\nlines"), "odd").unwrap();
    let job = burst.submit("told", "-N2", "local", "sleep 300");
    burst.wait(&job, "running");
    let files = cluster.ok(&format!("scontrol show bbstat job {job} files"));
    assert_eq!(files.lines().count(), 82, "{files}");
    let one = format!("n2 in 50KB {}/n2/jobs/{job}.1/private/in/f7", burst.pools.display());
    assert!(files.lines().any(|line| line == one), "{one}\n{files}");
    assert!(files.contains("/in/two\\nlines"), "{files}");
    let manifest = cluster.ok(&format!("scontrol show bbstat job {job} manifest"));
    let sums: Vec<&str> = manifest.lines().filter(|line| line.ends_with("/f7")).collect();
    assert_eq!(sums.len(), 2);
    assert_eq!(sums[0].split("  ").next(), sums[1].split("  ").next(), "the same bytes on both nodes");
    assert!(sums[0].split("  ").nth(1) == Some("50000"), "{sums:?}");
    assert_eq!(cluster.ok(&format!("scontrol show bbstat job {job} errors")), "");
    let said = cluster.run(&format!("scontrol show bbstat job {job} colours"));
    assert!(said.code != 0 && (said.err + &said.out).contains("files, errors or manifest"));
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");

    // Everything that is wrong is told, not only the first.
    for name in ["f1", "f2", "f3"] {
        fs::remove_file(cluster.dir.join("work/input").join(name)).unwrap();
        std::os::unix::fs::symlink("/nowhere", cluster.dir.join("work/input").join(name)).unwrap();
    }
    let text = "#!/bin/sh\n#DW jobdw capacity=8MiB\n\
                #DW stage_in type=directory source=input destination=$DW_JOB_STRIPED/in symlinks=fail\ntrue\n";
    fs::write(cluster.dir.join("work/wrong"), text).unwrap();
    let job = cluster.sbatch("wrong");
    cluster.wait_until(&format!("squeue -h -j {job} -o %r"), |said| said.out.contains("(2 more)"));
    let errors = cluster.ok(&format!("scontrol show bbstat job {job} errors"));
    assert_eq!(errors.lines().filter(|line| line.contains("in error:")).count(), 3, "{errors}");
    // How far it had come is told even of what failed within a moment.
    cluster.wait_until(&format!("scontrol show job {job}"), |said| said.out.contains("BurstBufferProgress=stage-in "));
    cluster.ok(&format!("scancel {job}"));
    burst.nothing_is_left();
}

/// What no buffer has made goes when it is old; what is young may be somebody's yet. Named buffers are nobody's to remove.
#[test]
fn old_strays_go_and_young_ones_and_named_ones_stay() {
    let burst = burst_with("measure_interval = 0.3");
    let stray = |path: &str| {
        let path = burst.pools.join(path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("data"), vec![7; 1 << 20]).unwrap();
        path
    };
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    // Old when it is seen first: what there is, is told again only when it has changed.
    let made = stray("made/private");
    fs::File::open(&made).unwrap().set_modified(long_ago).unwrap();
    let old = burst.pools.join("n1/jobs/990001.1/private");
    fs::create_dir_all(burst.pools.join("n1/jobs")).unwrap();
    fs::rename(burst.pools.join("made"), burst.pools.join("n1/jobs/990001.1")).unwrap();
    let young = stray("n2/jobs/990002.1/private");
    let named = stray("flash/persistent/library");
    burst.cluster.wait_until(&format!("ls {}", old.display()), |said| said.code != 0);
    assert!(young.join("data").exists() && named.join("data").exists());
    // As old as the other, it goes as well, at the latest when its agent comes back.
    fs::File::open(&young).unwrap().set_modified(long_ago).unwrap();
    kill_9(burst.cluster.agent_pid("n2"));
    burst.cluster.start("");
    burst.cluster.wait_until(&format!("ls {}", young.display()), |said| said.code != 0);
    assert!(named.join("data").exists());
    fs::remove_dir_all(&named).unwrap();
}

/// Agents need no restart to look after pools that come and go.
#[test]
fn a_pool_comes_and_goes_with_a_reconfiguration() {
    let burst = burst_with("measure_interval = 0.3");
    let cluster = &burst.cluster;
    let file = cluster.dir.join("spur.conf");
    let before = fs::read_to_string(&file).unwrap();
    let root = burst.pools.join("fresh");
    let pool = format!(
        "\n[[burst_buffer.pools]]\nname = \"fresh\"\nroot = \"{}\"\ngranularity = \"1MiB\"\ntotal = \"16MiB\"\n",
        root.display()
    );
    fs::write(&file, format!("{before}{pool}")).unwrap();
    cluster.ok("scontrol reconfigure");
    let job = burst.submit("fresh", "", "fresh", "while test ! -e go; do sleep 0.05; done");
    cluster.wait_state(&job, "RUNNING");
    let files = cluster.ok(&format!("scontrol show bbstat job {job} files"));
    assert_eq!(files.lines().count(), 40, "{files}");
    cluster.wait_until("scontrol -d show burst", |said| said.out.contains(" Used="));
    // It goes with a buffer in it, which others may not follow.
    let waiting = burst.submit("waiting", "--hold", "fresh", "true");
    fs::write(&file, &before).unwrap();
    cluster.ok("scontrol reconfigure");
    cluster.ok(&format!("scontrol release {waiting}"));
    let shown = cluster.ok("scontrol show burst");
    assert!(shown.contains("=fresh Granularity=1 TotalSpace=0 FreeSpace=0 UsedSpace=8MiB"), "{shown}");
    let files = cluster.ok(&format!("scontrol show bbstat job {job} files"));
    assert_eq!(files.lines().count(), 40, "{files}");
    let reason = format!("squeue -h -j {waiting} -o %r");
    cluster.wait_until(&reason, |said| said.out.trim() == "BurstBufferResources");
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    burst.same(&format!("back-{job}"));
    cluster.wait_until("scontrol show burst", |said| !said.out.contains("fresh"));
    assert_eq!(fs::read_dir(root.join("jobs")).unwrap().count(), 0);
    cluster.ok(&format!("scancel {waiting}"));
    burst.nothing_is_left();
}

/// The data of a node that does not come back is neither lost in silence nor waited for without end.
#[test]
fn a_node_that_never_returns_keeps_its_data_until_an_operator_gives_it_up() {
    let burst = empty(2, "bandwidth = \"256KiB\"\nstage_out_timeout = 8");
    burst.fill("input", 4, 50_000);
    let cluster = &burst.cluster;
    // Little goes in, and what comes out takes longer than it may.
    let more = "srun -N2 sh -c 'head -c 4000000 /dev/zero > $DW_JOB_PRIVATE/in/more'";
    let job = burst.submit("away", "-N2 --ntasks-per-node=1", "local", more);
    burst.wait(&job, "staging-out");
    kill_9(cluster.agent_pid("n2"));
    movers(&burst.pools.join("n2")).into_iter().for_each(kill_9);
    // Of the other node everything arrives, or its time is up as well; the job is not done, and says for whom it waits.
    let said = cluster.wait_until(&format!("squeue -h -j {job} -o '%t %r'"), |said| said.out.contains("failed:"));
    assert!(said.out.starts_with("SO "), "{said:?}");
    assert!(burst.pools.join(format!("n2/jobs/{job}.1/private/in/f1")).exists(), "the data is kept");
    cluster.ok(&format!("scontrol delete burstbuffer {job}"));
    cluster.wait_state(&job, "COMPLETED");
    cluster.wait_until("scontrol show burst", |said| !said.out.contains("Allocated Buffers"));
    // When it does return, what nobody knows of any more goes.
    cluster.start("");
    cluster.wait_until(&format!("ls {0}/n1/jobs {0}/n2/jobs {0}/n2/.spur", burst.pools.display()), |said| {
        said.out.lines().all(|line| line.is_empty() || line.ends_with(':'))
    });
    burst.nothing_is_left();
}

/// Whatever a user piles up is moved as far as it can be, and goes away.
#[test]
fn odd_trees_come_back_as_they_were_and_leave_nothing() {
    let burst = burst_with("");
    let cluster = &burst.cluster;
    let make = r#"
cd "$DW_JOB_STRIPED/in"
printf a > $'two\nlines'
printf b > ' leading'
printf c > ./-rf
printf d > $'\\back\tslash'
printf e > $'\xff\xfe'
mkfifo fifo
printf f > setuid; chmod 6755 setuid
ln f1 hard
ln -s /etc/passwd link
ln -s nowhere dangling
mkdir empty; chmod 500 empty
mkdir many; (cd many; touch $(seq 0 2999))
pwd > "$SLURM_SUBMIT_DIR/made"
deeper=$(printf 'deeper/%.0s' $(seq 500))
for n in 1 2 3 4 5; do mkdir -p "$deeper" && cd "$deeper" || exit; done
while [ ! -e "$SLURM_SUBMIT_DIR/go" ]; do sleep 0.05; done
"#;
    fs::write(cluster.dir.join("work/make.sh"), make).unwrap();
    let job = burst.submit("odd", "", "flash", "bash make.sh");
    let base = cluster.wait_file("made", |text| text.ends_with('\n'));
    let _socket = UnixListener::bind(Path::new(base.trim_end()).join("socket")).unwrap();
    cluster.ok("touch go");
    // So deep a tree is refused, but told clearly; what is not too deep has been copied.
    let said = cluster.wait_until(&format!("squeue -h -j {job} -o '%t %r'"), |said| said.out.contains("failed:"));
    assert!(said.out.contains("levels deep"), "{said:?}");
    let back = cluster.dir.join("work").join(format!("back-{job}"));
    for (name, content) in
        [("two\nlines", "a"), (" leading", "b"), ("-rf", "c"), ("\\back\tslash", "d"), ("setuid", "f")]
    {
        assert_eq!(fs::read_to_string(back.join(name)).unwrap(), content);
    }
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::read(back.join(std::ffi::OsStr::from_bytes(b"\xff\xfe"))).unwrap(), b"e");
    assert_eq!(fs::metadata(back.join("setuid")).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(fs::read(back.join("hard")).unwrap(), fs::read(back.join("f1")).unwrap());
    assert_eq!(fs::read_link(back.join("link")).unwrap(), Path::new("/etc/passwd"));
    assert!(!back.join("fifo").exists() && !back.join("socket").exists());
    assert_eq!(fs::read_dir(back.join("many")).unwrap().count(), 3000);
    assert_eq!(fs::metadata(back.join("empty")).unwrap().permissions().mode() & 0o777, 0o500);
    let errors = cluster.ok(&format!("scontrol show bbstat job {job} errors"));
    assert!(errors.contains("warning: ") && errors.contains("fifo is neither a file nor a directory"), "{errors}");
    cluster.ok(&format!("scancel --hurry {job}"));
    cluster.wait_state(&job, "COMPLETED");
    burst.nothing_is_left();
    cluster.ok(&format!("chmod -R u+rwx back-{job}; rm -rf back-{job}"));
}

/// Which they are is told as long as there is a buffer; that there were some, also afterwards.
#[test]
fn what_is_not_copied_is_remembered() {
    let burst = burst_with("");
    let cluster = &burst.cluster;
    cluster.ok("mkfifo input/fifo");
    let job = burst.submit("odd", "", "flash", "mkfifo $DW_JOB_STRIPED/in/other $DW_JOB_STRIPED/in/third");
    cluster.wait_state(&job, "COMPLETED");
    burst.nothing_is_left();
    let told = format!("sacct -X -n -P -j {job} -o SystemComment");
    let said = cluster.wait_until(&told, |said| said.out.contains("stage-out"));
    let parts: Vec<&str> = said.out.trim_end().split("; ").collect();
    assert!(parts[0].ends_with("s, 1 skipped") && parts[1].ends_with("s, 2 skipped"), "{said:?}");
}

#[test]
fn a_command_can_wait_until_the_data_is_back() {
    let burst = burst_with("bandwidth = \"4MiB\"");
    let cluster = &burst.cluster;
    let job = burst.submit("waits", "--wait-bb", "flash", "true");
    burst.same(&format!("back-{job}"));
    assert!(!cluster.ok("scontrol show burst").contains("Allocated Buffers"));
    let directives = "#DW jobdw capacity=8MiB\n#DW stage_in type=directory source=input destination=in\n\
                      #DW stage_out type=directory source=in destination=back-";
    for program in ["salloc", "srun"] {
        fs::write(cluster.dir.join("work/directives"), format!("{directives}{program}\n")).unwrap();
        cluster.ok(&format!("{program} --wait-bb --bbf=directives true"));
        burst.same(&format!("back-{program}"));
    }
    // What cannot come back is told, and waited for no longer.
    fs::write(cluster.dir.join("work/blocked"), "a file").unwrap();
    let text = "#!/bin/sh\n#DW jobdw capacity=8MiB\n#DW stage_out type=file source=$DW_JOB_STRIPED/x destination=blocked/x\n\
                echo x > $DW_JOB_STRIPED/x\n";
    fs::write(cluster.dir.join("work/stuck"), text).unwrap();
    let said = cluster.run("sbatch --wait-bb stuck");
    assert!(said.code == 1 && said.err.contains("sbatch: error: burst_buffer/native: stage_out failed"), "{said:?}");
    let job = said.out.split_whitespace().last().unwrap().to_owned();
    cluster.ok(&format!("scancel --hurry {job}"));
    burst.nothing_is_left();
}

/// Whoever removes a shared home is not always the one who has made it.
#[test]
fn a_persistent_buffer_leaves_no_records_of_those_who_made_it() {
    let burst = empty(2, "flags = [\"EnablePersistent\"]");
    let cluster = &burst.cluster;
    burst.write("make", "#!/bin/sh\n#BB create_persistent name=library capacity=1MiB\n");
    burst.write("destroy", "#!/bin/sh\n#BB destroy_persistent name=library\n");
    for _ in 0..2 {
        for script in ["make", "destroy"] {
            let job = cluster.sbatch(&format!("-N0 {script}"));
            cluster.wait_state(&job, "COMPLETED");
            assert_eq!(burst.pools.join("flash/persistent/library").exists(), script == "make");
        }
        burst.nothing_is_left();
    }
}
