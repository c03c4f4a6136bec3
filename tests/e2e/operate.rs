//! `spur up`, `env`, `down`, `status`, configuration files.
use crate::cluster::Cluster;

#[test]
fn the_nodes_of_a_configuration_file_come_up_idle() {
    let cluster = Cluster::configured(
        "cluster_name = \"mine\"\n[[nodes]]\nnames = \"a[1-2]\"\ncpus = 64\nmemory_mb = 100000\n\
         [[partitions]]\nname = \"batch\"\nnodes = \"ALL\"\ndefault = true\nmax_time = \"1:00:00\"\n",
    );
    assert_eq!(cluster.ok("sinfo -h -o '%P %D %t %N %l'"), "batch* 2 idle a[1-2] 1:00:00");
    assert_eq!(cluster.ok("sinfo -h -o %c -N | sort -u"), "64");
}

#[test]
fn a_misspelt_key_is_named_with_its_line() {
    let cluster = Cluster::up("--nodes 1");
    std::fs::write(
        cluster.dir.join("work/bad.conf"),
        "cluster_name = \"x\"\n[[nodes]]\nnames = \"n1\"\nmemroy_mb = 5\n",
    )
    .unwrap();
    let said = cluster.run("spur config check bad.conf");
    assert_ne!(said.code, 0);
    let text = said.out + &said.err;
    assert!(text.contains("bad.conf:4") && text.contains("memory_mb"), "{text}");
}

#[test]
fn without_a_cluster_commands_say_in_one_line_what_to_do() {
    let cluster = Cluster::up("--nodes 1");
    let said = cluster.run("SPUR_CONF=/nonexistent/spur.conf squeue");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
}

#[test]
fn a_drained_node_takes_no_jobs_until_it_is_resumed() {
    let cluster = Cluster::up("--nodes 1");
    assert_ne!(cluster.run("scontrol update nodename=n1 state=drain").code, 0);
    cluster.ok("scontrol update nodename=n1 state=drain reason=broken");
    assert_eq!(cluster.ok("sinfo -h -o '%t'"), "drain");
    let job = cluster.sbatch("--wrap=true");
    cluster.wait_until(&format!("squeue -h -j {job} -o '%t %r'"), |said| said.out.contains("DOWN, DRAINED"));
    cluster.ok("scontrol update nodename=n1 state=resume");
    cluster.wait_state(&job, "COMPLETED");
}

#[test]
fn an_installation_has_all_names_and_units_that_systemd_takes() {
    let cluster = Cluster { dir: crate::cluster::new_dir() };
    let root = cluster.dir.join("root");
    for _ in 0..2 {
        // Again is as good as once: so upgrades go.
        cluster.ok(&format!("spur install --root {}", root.display()));
    }
    let bin = root.join("usr/local/bin");
    for name in ["sbatch", "squeue", "scontrol", "srun", "spurd", "spurctld", "sacctmgr"] {
        assert_eq!(std::fs::read_link(bin.join(name)).unwrap().to_str(), Some("spur"), "{name}");
    }
    assert_eq!(cluster.ok(&format!("{}/squeue --version", bin.display())), cluster.ok("spur squeue --version"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(read("usr/lib/sysusers.d/spur.conf").starts_with("u spur "));
    let (agent, controller) = (read("etc/systemd/system/spurd.service"), read("etc/systemd/system/spurctld.service"));
    assert!(agent.contains("KillMode=process"), "jobs outlive their agent");
    assert!(controller.contains("\nUser=spur\n") && !agent.contains("User="), "{controller}");
    for line in ["NoNewPrivileges=yes", "ProtectHome=yes", "PrivateTmp=yes", "RestrictNamespaces=yes", "UMask=0022"] {
        assert!(controller.contains(&format!("\n{line}\n")), "{line}: {controller}");
    }
    assert!(!agent.contains("\nRuntimeDirectory="), "the controller's directory would become the agent's");
    if cluster.run("command -v systemd-analyze").code != 0 {
        eprintln!("skipped: systemd-analyze is not here to judge the units");
    } else {
        // As it would be on a machine of its own.
        let units = cluster.dir.join("units");
        std::fs::create_dir_all(&units).unwrap();
        for (name, text) in [("spurd.service", agent), ("spurctld.service", controller.replace("User=spur\n", ""))] {
            let here = text.replace("/usr/local/bin", bin.to_str().unwrap());
            std::fs::write(units.join(name), here).unwrap();
            let said = cluster.run(&format!("systemd-analyze verify --man=no {}", units.join(name).display()));
            assert!(!said.err.contains(name), "{name}: {said:?}");
        }
    }
    // Filters would end setgid mail programs where the controller is not root.
    assert!(read("etc/systemd/system/spurctld.service").contains("SystemCallFilter=~@clock"));
    cluster.ok(&format!("spur install --root {} --user spur --setuid-programs", root.display()));
    assert!(!read("etc/systemd/system/spurctld.service").contains("SystemCallFilter"));
    let as_root = format!("spur install --root {} --user root", root.display());
    assert_ne!(cluster.run(&format!("{as_root} --setuid-programs")).code, 0);
    cluster.ok(&as_root);
    assert!(!read("etc/systemd/system/spurctld.service").contains("User="));
    // An upgrade leaves it as it was.
    let said = cluster.run(&format!("spur install --root {}", root.display()));
    assert!(said.out.contains("runs as root: its unit had it so"), "{said:?}");
    assert!(!read("etc/systemd/system/spurctld.service").contains("User="));
    std::fs::remove_file(root.join("etc/systemd/system/spurctld.service")).unwrap();
    let conf =
        "[jobs]\nusers_set_triggers = true\n[[nodes]]\nnames = \"n1\"\n[[partitions]]\nname = \"p\"\nnodes = \"ALL\"\n";
    std::fs::write(root.join("etc/spur/spur.conf"), conf).unwrap();
    let said = cluster.run(&format!("spur install --root {}", root.display()));
    assert!(said.out.contains("runs as root: users_set_triggers"), "{said:?}");
    let refused = cluster.run(&format!("spur install --root {} --user 'a b'", root.display()));
    assert_ne!(refused.code, 0);
}

/// As readline calls it, which parts words at `=` too.
const READLINE: &str = r#"
eval "$(spur completion bash)"
compopt() { :; }
told() {
    local IFS=' '
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    COMP_WORDS=(${1//=/ = })
    [[ $1 == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    "_spur_${COMP_WORDS[0]}"
    echo "${COMPREPLY[*]}"
}
"#;

#[test]
fn bash_completes_the_words_of_commands() {
    let cluster = Cluster::up("--nodes 1");
    for (line, words) in [
        ("scontrol show jo", "jobs jobid"),
        ("scontrol update JobId=7 Time", "TimeMin= TimeLimit="),
        ("scontrol update nodename=n1 sta", "State="),
        ("scontrol update JobId=7 TimeLimit=", ""),
        ("sacctmgr add us", "users"),
        (
            "sacctmgr modify user where name=x set maxj",
            "MaxJobs= MaxJobsAccrue= MaxJobsAccruePerUser= MaxJobsPerUser= maxjobsaccruepu= maxjobspu=",
        ),
        ("sreport cluster u", "UserUtilizationByAccount UserUtilizationByWckey Utilization"),
        ("scontrol --yam", "--yaml"),
        ("spur conf", "config"),
        ("spur up --no", "--nodes"),
    ] {
        std::fs::write(cluster.dir.join("work/told.sh"), format!("{READLINE}told '{line}'\n")).unwrap();
        assert_eq!(cluster.ok("bash told.sh"), words, "{line}");
    }
}

/// A line and the tab key in a zsh of its own terminal; whatever it shows then.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell 'zsh -f -i'
hear() {
    local heard= piece
    integer silent=0
    while (( silent++ < 1200 )) && [[ $heard != *$1* ]]; do
        if zpty -r -t shell piece; then heard+=$piece; silent=0; else sleep 0.05; fi
    done
    print -r -- "$heard"
}
zpty -w shell "PS1='> '; autoload -Uz compinit && compinit -u -D; eval \"\$(spur completion zsh)\"; echo rea''dy"
hear ready > /dev/null
zpty -w -n shell "$1"$'\t'
hear "$2"
zpty -d shell
"#;

#[test]
fn zsh_and_fish_complete_the_words_and_options_of_commands() {
    let cluster = Cluster::up("--nodes 1");
    let has = |shell: &str| cluster.run(&format!("command -v {shell}")).code == 0;
    let cases = [
        ("scontrol show topolo", "topology"),
        ("scontrol update JobId=7 TimeL", "TimeLimit="),
        ("squeue --only-job-s", "--only-job-state"),
        ("spur restor", "restore"),
        ("sacctmgr add coor", "coordinators"),
    ];
    if has("zsh") {
        std::fs::write(cluster.dir.join("work/told.zsh"), ZSH).unwrap();
        // Letters too, beside the long names.
        for (line, word) in cases.iter().chain(&[("sinfo -", "-R")]) {
            let told = cluster.ok(&format!("zsh -f told.zsh '{line}' '{word}'"));
            assert!(told.contains(word), "{line}: {told}");
        }
    } else {
        eprintln!("there is no zsh here: not tried");
    }
    if has("fish") {
        for (line, word) in cases.iter().chain(&[("sinfo -", "-R"), ("spur up --no", "--nodes")]) {
            let told = cluster.ok(&format!("fish -N -c 'spur completion fish | source; complete -C \"{line}\"'"));
            assert!(told.lines().any(|one| one.split('\t').next() == Some(*word)), "{line}: {told}");
        }
    } else {
        eprintln!("there is no fish here: not tried");
    }
}
