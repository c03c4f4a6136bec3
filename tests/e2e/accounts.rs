//! Accounts and users through `sacctmgr`, and jobs that are charged to them.
use crate::cluster::Cluster;

#[test]
fn a_tree_of_accounts_is_built_used_and_kept() {
    let cluster = Cluster::up("--nodes 1");
    let user = cluster.ok("id -un");
    // Nobody has configured anything: everybody is welcome, whatever account they name.
    let job = cluster.sbatch("-A anything --wrap=true");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.ok("sacctmgr -n list user"), "");

    cluster.ok("sacctmgr -i add account science description='all of it'");
    cluster.ok("sacctmgr -i add account physics,chemistry parent=science");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics,chemistry defaultaccount=physics"));
    cluster.ok("sacctmgr -i add qos high");
    let tree = cluster.ok("sacctmgr -n -P list assoc tree format=account,user");
    let places = format!("  chemistry|\n   chemistry|{user}\n  physics|\n   physics|{user}");
    assert!(tree.ends_with(&places), "{tree}");
    assert_eq!(
        cluster.ok(&format!("sacctmgr -n -P list user {user} format=defaultaccount")).lines().next(),
        Some("physics")
    );

    let charged = cluster.sbatch("--wrap=true");
    assert_eq!(cluster.ok(&format!("squeue -h -t all -j {charged} -o %a")), "physics");
    let refused = cluster.run("sbatch -A biology --wrap=true");
    assert_eq!(
        refused.err,
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n"
    );
    assert_eq!(
        cluster.run("sbatch -q high --wrap=true").err,
        "sbatch: error: Batch job submission failed: Invalid qos specification\n"
    );
    cluster.ok(&format!("sacctmgr -i modify user where name={user} account=physics set qos+=high defaultqos=high"));
    let chosen = cluster.sbatch("--wrap=true");
    assert_eq!(cluster.ok(&format!("squeue -h -t all -j {chosen} -o %q")), "high");

    // An account that goes below one of its own leaves its place to it.
    cluster.ok("sacctmgr -i modify account science set parent=physics");
    let parents = "sacctmgr -n -P list assoc account=science,physics user= format=account,parentname";
    assert_eq!(cluster.ok(parents).lines().filter(|line| !line.ends_with('|')).count(), 2);
    assert!(cluster.ok(parents).contains("science|physics"));
    cluster.ok("sacctmgr -i modify account physics set parent=science");
    cluster.wait_state(&chosen, "COMPLETED");
    cluster.wait_state(&charged, "COMPLETED");
    crate::cluster::kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.ok("sacctmgr -n -P list assoc tree format=account,user"), tree);
    assert!(cluster.ok("sshare -a -P").contains("\n  physics||1|"));
    cluster.ok("sacctmgr -i delete account chemistry");
    assert!(!cluster.ok("sacctmgr -n -P list account format=account").contains("chemistry"));
    assert!(cluster.ok("printf 'n\\n' | sacctmgr add account nothing").ends_with("(N/y): \n Changes Discarded"));
}

#[test]
fn limits_refuse_hold_and_let_go() {
    let cluster = Cluster::up("--nodes 1");
    let user = cluster.ok("id -un");
    cluster.ok("sacctmgr -i add account physics");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics"));
    cluster.ok(&format!("sacctmgr -i modify user {user} set maxjobs=1 maxsubmit=2"));
    let first = cluster.sbatch("-A physics --wrap='sleep 600'");
    let second = cluster.sbatch("-A physics --wrap=true");
    cluster.wait_state(&first, "RUNNING");
    cluster.wait_for(&format!("squeue -h -j {second} -o %r"), "AssocMaxJobsLimit");
    let refused = cluster.run("sbatch -A physics --wrap=true");
    assert_eq!(
        refused.err,
        "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS \
         policy (job submit limit, user's size and/or time limits)\n"
    );
    // The counts are part of the state.
    crate::cluster::kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.run("sbatch -A physics --wrap=true").code, 1);
    cluster.ok(&format!("scancel {first}"));
    cluster.wait_state(&second, "COMPLETED");
}

#[test]
fn jobs_use_the_clusters_part_of_a_servers_licences() {
    let cluster = Cluster::up("--nodes 1");
    let here = cluster.ok("sacctmgr -n -P list cluster format=cluster");
    let told = cluster.ok(&format!(
        "sacctmgr -i add resource matlab server=flex servertype=flexlm count=4 type=license cluster={here} percentallowed=50"
    ));
    assert!(told.contains(&format!("  matlab@flex\n   Cluster - {here}\t50%\n Settings\n")), "{told}");
    assert_eq!(
        cluster.ok("sacctmgr -P show resource withclusters"),
        format!(
            "Name|Server|Type|Count|% Allocated|ServerType|Cluster|% Allowed\nmatlab|flex|License|4|50|flexlm|{here}|50"
        )
    );
    assert_eq!(
        cluster.run("sbatch -L matlab@flex:3 --wrap=true").err,
        "sbatch: error: Batch job submission failed: Invalid license specification\n"
    );
    let first = cluster.sbatch("-L matlab@flex:2 --wrap='sleep 300'");
    cluster.wait_state(&first, "RUNNING");
    let second = cluster.sbatch("-L matlab@flex --wrap=true");
    cluster.wait_for(&format!("squeue -h -j {second} -o %r"), "Licenses");
    let shown = "scontrol -o show licenses matlab@flex";
    assert_eq!(cluster.ok(shown), "LicenseName=matlab@flex Total=2 Used=2 Free=0 Reserved=0 Remote=yes");
    let changed = cluster.ok(&format!("sacctmgr -i modify resource matlab cluster={here} set percentallowed=75"));
    assert_eq!(changed, format!(" Modified server resource ...\n  Cluster - {here}\t- matlab@flex"));
    // It starts by itself, and the number is kept.
    cluster.wait_state(&second, "COMPLETED");
    crate::cluster::kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.ok(shown), "LicenseName=matlab@flex Total=3 Used=2 Free=1 Reserved=0 Remote=yes");
    let deleted = cluster.ok("sacctmgr -i delete resource matlab");
    assert!(deleted.ends_with(&format!("  matlab@flex\n  Cluster - {here}\t- matlab@flex")), "{deleted}");
    assert_eq!(cluster.ok("scontrol show licenses"), "No licenses configured in Slurm.");
    let actions = cluster.ok("sacctmgr -n -P list transactions format=action,where");
    assert!(actions.contains("Add Resource|matlab@flex\nModify Resource|matlab@flex\n"), "{actions}");
}

#[test]
fn use_is_reported_shared_and_explained() {
    let cluster = Cluster::up("--nodes 1");
    let user = cluster.ok("id -un");
    cluster.ok("sacctmgr -i add account physics");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics"));
    let job = cluster.sbatch("-A physics --wrap='sleep 1.2'");
    cluster.wait_state(&job, "COMPLETED");
    let shares = cluster.ok("sshare -a -P -o account,user,rawusage,effectvusage,levelfs");
    let used = shares.lines().find(|line| line.starts_with(&format!("  physics|{user}|"))).expect(&shares);
    assert!(used.ends_with("|1.000000|1.000000") && !used.contains("|0|"), "{shares}");
    // Reports reach to the last whole second.
    let report = "sreport -n -P -t sec cluster AccountUtilizationByUser start=now-1hour end=now+1hour";
    cluster.wait_until(report, |said| said.out.lines().any(|line| line.contains(&format!("|physics|{user}|"))));
    let heading = cluster.ok("sreport cluster utilization start=now-1hour end=now");
    assert!(heading.contains("\nUsage reported in CPU Minutes\n"), "{heading}");
    assert!(heading.contains("\n  Cluster Allocate     Down PLND Dow     Idle  Planned Reported \n"), "{heading}");
    let explained = cluster.ok(&format!("spur share --explain {user}"));
    assert!(explained.contains("account physics has"), "{explained}");
    let state = cluster.ok("scontrol show assoc_mgr accounts=physics flags=assoc");
    assert!(state.contains("ParentAccount=root(1) DefAssoc=No\n    GrpJobs=N(0)"), "{state}");
    cluster.ok("sacctmgr dump $(sacctmgr -n -P list cluster format=cluster) file=tree.cfg");
    assert!(cluster.file("tree.cfg").contains("Parent - 'physics'\nUser - "), "{}", cluster.file("tree.cfg"));
    let missing = cluster.run("sacctmgr -i load file=nosuch");
    assert_eq!(
        (missing.err.as_str(), missing.code),
        (" Unable to read \"file=nosuch\": No such file or directory\n", 1)
    );
    let same = cluster.run("sacctmgr -i load tree.cfg");
    assert_eq!(same.code, 0, "{}", same.err);
}

#[test]
fn without_a_fair_tree_every_command_tells_the_older_formula() {
    let cluster = Cluster::configured(
        "cluster_name = 'old'\n[[nodes]]\nnames = 'n1'\ncpus = 4\nmemory_mb = 1000\n\
         [[partitions]]\nname = 'debug'\nnodes = 'n1'\ndefault = true\n\
         [scheduler]\npriority = 'multifactor'\nweight_fair_share = 1000\npriority_calc_period = 1\n\
         priority_flags = 'NO_FAIR_TREE,CALCULATE_RUNNING'\nfair_share_dampening = 2\n",
    );
    // The QOS that everybody has is there from the beginning.
    assert_eq!(cluster.ok("sacctmgr -n -P list qos format=name,id"), "normal|1");
    let user = cluster.ok("id -un");
    cluster.ok("sacctmgr -i add account physics,other");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics"));
    let config = cluster.ok("scontrol show config");
    assert!(config.contains("FairShareDampeningFactor = 2\n"), "{config}");
    assert!(config.contains("PriorityFlags           = CALCULATE_RUNNING,NO_FAIR_TREE\n"), "{config}");
    let job = cluster.sbatch("-A physics --wrap='sleep 300'");
    cluster.wait_state(&job, "RUNNING");
    // All that is used is this job's, whose share is a third: 2^(-3/2).
    let share = format!("sshare -a -n -P -o user,normshares,effectvusage,fairshare -A physics | grep ^{user}");
    cluster.wait_for(&share, &format!("{user}|0.333333|1.000000|0.353553"));
    // Its priority is computed while it runs.
    cluster.wait_for(&format!("sprio -h -j {job} -o %F"), "354");
    cluster.wait_for(&format!("squeue -h -j {job} -o %Q"), "353");
    cluster.ok("scontrol fsdampeningfactor 3");
    cluster.wait_for(&share, &format!("{user}|0.333333|1.000000|0.500000"));
    let told = cluster.run("scontrol fsdampeningfactor 0");
    assert_eq!((told.err.as_str(), told.code), ("invalid dampening factor: 0\n", 0));
    let long = cluster.ok("sshare -l | head -1");
    assert!(long.contains("FairShare ") && !long.contains("LevelFS"), "{long}");
    let explained = cluster.ok(&format!("spur share --explain {user}"));
    assert!(explained.contains("2^(-1.000000/0.333333/3) = 0.500000"), "{explained}");
    // What was said is kept until the file is read again.
    crate::cluster::kill_9(cluster.controller_pid());
    cluster.start("");
    assert!(cluster.ok("scontrol show config").contains("FairShareDampeningFactor = 3\n"));
    cluster.ok("scontrol reconfigure");
    assert!(cluster.ok("scontrol show config").contains("FairShareDampeningFactor = 2\n"));
}

#[test]
fn operators_and_coordinators_may_do_what_is_theirs_and_no_more() {
    // SAFETY: geteuid cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: several users need root");
    }
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    cluster.ok(
        "sacctmgr -i add account physics; sacctmgr -i add account optics parent=physics; sacctmgr -i add account art",
    );
    cluster.ok("sacctmgr -i add user daemon account=optics; sacctmgr -i add user bin account=physics; sacctmgr -i add user sys account=art");
    cluster.ok("sacctmgr -i add user games account=art adminlevel=operator; sacctmgr -i add coordinator names=bin account=physics");
    let user = |name: &str, line: &str| {
        cluster.run(&format!("setpriv --reuid=$(id -u {name}) --regid=$(id -g {name}) --clear-groups {line}"))
    };
    let job = |name: &str| {
        let said = user(name, "sbatch --parsable -D / -H -o /dev/null --wrap true");
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    };
    // Whose job; who asks; whether that is heard.
    for (owner, by, is_allowed) in [
        ("daemon", "daemon", true),
        ("daemon", "sys", false),
        ("daemon", "bin", true),
        ("sys", "bin", false),
        ("bin", "bin", true),
        ("sys", "games", true),
        ("sys", "root", true),
    ] {
        for line in ["scontrol hold", "scontrol release", "scontrol top", "scancel"] {
            let id = job(owner);
            let verb = if line == "scontrol top" {
                format!("scontrol update jobid={id} nice=5")
            } else {
                format!("{line} {id}")
            };
            let said = user(by, &verb);
            let is_heard = said.code == 0 && !(said.out + &said.err).contains("denied");
            assert_eq!(is_heard, is_allowed, "{verb} of {owner}'s job by {by}");
        }
    }
    // What only administrators may.
    for line in [
        "scontrol update nodename=n1 state=drain reason=x",
        "scontrol update partitionname=main state=down",
        "scontrol reconfigure",
        "scontrol reboot n1",
        "scontrol token username=root",
        "scontrol shutdown",
    ] {
        for by in ["daemon", "bin", "games"] {
            let refused = user(by, line);
            assert_ne!(refused.code, 0, "{line} by {by}: {refused:?}");
        }
    }
    // Jobs that were released may still run.
    cluster.wait_for("sinfo -h -o %T", "idle");
    let said = user("games", "scontrol create reservation starttime=now duration=5 users=root nodes=ALL");
    assert_eq!(said.code, 0, "operators may reserve: {said:?}");
}
