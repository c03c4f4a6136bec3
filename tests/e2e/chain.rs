//! A long chain of jobs, each waiting for the one before. `SPUR_CHAIN=1000` makes it as long as that.
use crate::cluster::Cluster;

#[test]
fn a_chain_of_dependencies_runs_in_its_order() {
    let length: u32 = std::env::var("SPUR_CHAIN").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    let line = format!(
        "id=$(sbatch --parsable -H -o /dev/null --wrap 'echo 1 >> order'); first=$id; \
         for n in $(seq 2 {length}); do id=$(sbatch --parsable -o /dev/null -d afterok:$id --wrap \"echo $n >> order\"); done; \
         scontrol release $first; echo $id"
    );
    let last = cluster.ok(&line);
    // Each in its time: all of them may take longer than one should.
    for number in 1..=length as usize {
        cluster.wait_file("order", |text| text.lines().count() >= number);
    }
    cluster.wait_state(&last, "COMPLETED");
    let expected: String = (1..=length).map(|number| format!("{number}\n")).collect();
    assert_eq!(cluster.file("order"), expected);
}
