//! A site's files: our own, and slurm.conf.

const OWN: &str = "cluster_name = \"x\"\n[controller]\nroot_squash = true\n[[nodes]]\nnames = \"n[1-2]\"\ncpus = 8\nmemory_mb = 1000\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"ALL\"\ndefault = true\ntime_limit = \"1-00:00:00\"\n";
const SLURMS: &str = "ClusterName=x\nSlurmctldHost=head(10.0.0.1)\nSelectType=select/cons_tres\nGresTypes=gpu\n\
    NodeName=n[1-4] CPUs=8 RealMemory=1000 Gres=gpu:2 Feature=a,b\nPartitionName=debug Nodes=ALL Default=YES MaxTime=1-0\n";

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |which: u8, text: &str| [&[which], text.as_bytes()].concat();
    vec![seed(0, OWN), seed(1, SLURMS), seed(2, "NodeName=n[1-4] CPUs=8 RealMemory=1000 Gres=gpu:2")]
}

pub fn run(bytes: &[u8]) {
    let Some((which, text)) = super::choice_and_text(bytes, 3) else { return };
    let said = match which {
        0 => config::parse(text, "spur.conf").map(drop).map_err(|problems| problems.to_string()),
        1 => config::parse_slurm(text, "slurm.conf").map(drop).map_err(|problems| problems.to_string()),
        _ => config::parse_node_line(text).map(drop).map_err(|problems| problems.join("\n")),
    };
    if let Err(problems) = said {
        assert!(!problems.is_empty(), "a refusal says why");
    }
}
