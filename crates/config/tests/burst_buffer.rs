//! `[burst_buffer]`: what is read, written again the same, and refused.
use config::{parse, render};
use model::pool::{PoolKind, Verify};
use model::time::Span;

const NODES: &str = "[[nodes]]\nnames = \"n[1-3]\"\ncpus = 4\nmemory_mb = 1000\n";

fn problems(lines: &str) -> Vec<String> {
    match parse(&format!("{NODES}{lines}"), "c") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.to_string().lines().map(str::to_owned).collect(),
    }
}

const POOLS: &str = r#"
[burst_buffer]
type = "burst_buffer/native"
default_pool = "flash"
Flags = "EnablePersistent,TeardownFailure"
DenyUsers = ["eve"]
StageInTimeout = 60
stage_ahead = 0
verify_in = "full"
[[burst_buffer.pools]]
name = "nvme"
kind = "node"
root = "/local/%n"
granularity = "1GiB"
total = "auto"
reserve = "5%"
[[burst_buffer.pools]]
name = "flash"
root = "/flash"
granularity = 1048576
total = "1TB"
movers = "n[1-2]"
"#;

#[test]
fn burst_buffers_have_pools() {
    let config = parse(&format!("{NODES}{POOLS}"), "c").unwrap();
    let burst = config.burst_buffer.clone().unwrap();
    let [nvme, flash] = &burst.pools[..] else { panic!("{burst:?}") };
    assert_eq!((nvme.kind, nvme.total_bytes, nvme.reserve_percent), (PoolKind::Node, None, 5));
    assert_eq!((flash.granularity_bytes, flash.total_bytes, flash.movers.len()), (1 << 20, Some(10u64.pow(12)), 2));
    assert_eq!(burst.default_pool().map(|pool| pool.name.as_str()), Some("flash"));
    assert!(burst.enables_persistent && burst.tears_down_after_failure && !burst.is_private);
    assert_eq!((burst.stage_in_timeout, burst.verify_in), (Span::from_secs(60), Verify::Full));
    assert_eq!(parse(&render(&config), "again").unwrap().burst_buffer, Some(burst));
}

#[test]
fn one_pool_has_a_short_form() {
    let config = parse(&format!("{NODES}[burst_buffer]\ntotal_gb = 100\nroot = \"/bb\"\n"), "c").unwrap();
    let burst = config.burst_buffer.unwrap();
    let pool = burst.default_pool().unwrap();
    assert_eq!((pool.name.as_str(), pool.total_bytes, pool.kind), ("default", Some(100 << 30), PoolKind::Shared));
}

#[test]
fn what_makes_no_sense_is_told_with_its_line() {
    assert_eq!(
        problems("[burst_buffer]\n"),
        ["c:5:2: [burst_buffer] needs [[burst_buffer.pools]], or `total_gb` and `root`"]
    );
    let said = problems("[burst_buffer]\ntotal_gb = 1\nroot = \"/r\"\nverify_in = \"some\"\ndefault_pool = \"x\"\n");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().any(|line| line.contains("`verify_in`") && line.starts_with("c:8:")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("there is no pool x")), "{said:?}");
    let said = problems("[burst_buffer]\n[[burst_buffer.pools]]\nname = \"p\"\nroot = \"/%n\"\nmovers = \"n9\"\n");
    assert!(said.iter().any(|line| line.contains("cannot contain %n")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("no [[nodes]] table names n9")), "{said:?}");
}
