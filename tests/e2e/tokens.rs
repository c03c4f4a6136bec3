//! Users who are known by a token instead of by the kernel, and machines whose certificates must be new again and again.
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{free_port, join, token};

#[test]
fn a_token_stands_for_a_user_on_any_machine_until_it_ends() {
    let head = Cluster { dir: new_dir() };
    let said = head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    let word = said.rsplit_once(' ').unwrap().1;
    let _node = join(word, &format!("--node a1 --cpus 4 --memory 1G --listen 127.0.0.1:{}", free_port()));
    // A machine that is no part of the cluster: it has the authority's mark, and nothing else.
    let conf = head.dir.join("client.conf");
    head.ok(&format!("spur client --dir {} > {}", head.dir.display(), conf.display()));
    let (user, uid) = match is_root() {
        true => ("daemon".to_owned(), "1".to_owned()),
        false => (head.ok("id -un"), head.ok("id -u")),
    };
    let fetched = head.ok(&format!("scontrol token username={user} lifespan=600"));
    let fetched = fetched.strip_prefix("SLURM_JWT=").unwrap_or_else(|| panic!("{fetched}"));
    let with = |token: &str, line: &str| {
        head.run(&format!("SPUR_CONF={} SLURM_JWT={token} timeout 60 {line}", conf.display()))
    };
    let ok = |line: &str| {
        let said = with(fetched, line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said.out.trim().to_owned()
    };
    assert_eq!(ok("sinfo -h -o %T"), "idle");
    let job = ok("sbatch --parsable -D / -o /dev/null --wrap true");
    assert_eq!(head.ok(&format!("squeue -h -t all -j {job} -o %u")), user);
    assert_eq!(ok("srun -D / -w a1 id -u"), uid, "steps too, through the controllers");
    let refused = with(fetched, "scontrol token");
    assert_ne!(refused.code, 0, "a token begets no tokens: {refused:?}");
    if is_root() {
        let refused = with(fetched, "scontrol update partitionname=main state=down");
        assert_ne!(refused.code, 0, "who has a user's token is that user: {refused:?}");
        // Also on the cluster's own machines.
        assert_eq!(head.ok(&format!("SLURM_JWT={fetched} sbatch --parsable -D / -H -J local --wrap true >/dev/null; squeue -h -n local -o %u")), user);
        let other = head.run("setpriv --reuid=2 --regid=2 --clear-groups scontrol token username=daemon");
        assert_ne!(other.code, 0, "only administrators get the tokens of others: {other:?}");
        let own = head.ok("setpriv --reuid=2 --regid=2 --clear-groups scontrol token");
        assert!(own.starts_with("SLURM_JWT=ey"), "{own}");
    }

    let refused = head.run(&format!("SPUR_CONF={} timeout 60 sinfo", conf.display()));
    assert_ne!(refused.code, 0, "without a token nobody is heard: {refused:?}");
    // Another signature, another user in the same signature, no token at all.
    let (signed, tag) = fetched.rsplit_once('.').unwrap();
    let flipped: String = tag.chars().rev().collect();
    let (first, claims) = signed.split_once('.').unwrap();
    for wrong in [format!("{signed}.{flipped}"), format!("{first}.{}x.{tag}", &claims[..claims.len() - 1]), "x".into()]
    {
        let refused = with(&wrong, "sinfo");
        assert!(refused.code != 0 && refused.err.contains("authentication error"), "{refused:?}");
    }
    let brief = head.ok("scontrol token lifespan=1");
    let brief = brief.strip_prefix("SLURM_JWT=").unwrap();
    head.wait_until(&format!("SPUR_CONF={} SLURM_JWT={brief} sinfo", conf.display()), |said| {
        said.err.contains("expired")
    });
    for wrong in ["lifespan=0", "lifespan=x", "username=nobody-of-this-name"] {
        assert_ne!(head.run(&format!("scontrol token {wrong}")).code, 0, "{wrong}");
    }
}

#[test]
fn certificates_renew_themselves_before_they_end() {
    let head = Cluster { dir: new_dir() };
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    head.ok(&format!(
        "sed -i 's/^certificate_lifetime = .*/certificate_lifetime = 12/' {}/spur.conf",
        head.dir.display()
    ));
    head.ok("scontrol reconfigure");
    let node = join(&token(&head, ""), &format!("--node a1 --cpus 4 --memory 1G --listen 127.0.0.1:{}", free_port()));
    let log = node.0.dir.join("log/agent-a1.log");
    // The third one is given on the word of the second: by then the first has ended.
    head.wait_until(&format!("grep -c 'certificate was renewed' {}", log.display()), |said| {
        said.out.trim().parse::<u32>().is_ok_and(|n_renewed| n_renewed >= 3)
    });
    assert_eq!(node.0.ok("sinfo -h -o %T"), "idle");
    // New connections, in both directions, show the new ones.
    assert_eq!(head.ok("srun -D / -w a1 echo here"), "here");
    node.0.ok(&format!("spur down --dir {}", node.0.dir.display()));
    node.0.start("");
    head.wait_for("sinfo -h -o %T", "idle");
}
