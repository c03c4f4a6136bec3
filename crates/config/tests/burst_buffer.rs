//! `[burst_buffer]`: what is read, written again the same, and refused.
use std::fs;
use std::path::PathBuf;

use config::{parse, read_with_warnings, render};
use model::pool::{Plugin, PoolKind, Verify};
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
DenyUsers = "eve:mallory"
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
    assert_eq!(burst.deny_users, ["eve", "mallory"]);
    assert_eq!((burst.stage_in_timeout, burst.verify_in), (Span::from_secs(60), Verify::Full));
    assert_eq!(parse(&render(&config), "again").unwrap().burst_buffer, Some(burst));
}

#[test]
fn one_pool_has_a_short_form() {
    let config = parse(&format!("{NODES}[burst_buffer]\ntotal_gb = 100\nroot = \"/bb\"\n"), "c").unwrap();
    let burst = config.burst_buffer.unwrap();
    let pool = burst.default_pool().unwrap();
    assert_eq!((pool.name.as_str(), pool.total_bytes, pool.kind), ("default", Some(100 << 30), PoolKind::Shared));
    let mut config = parse(&format!("{NODES}[burst_buffer]\ntotal_gb = 100\n"), "c").unwrap();
    let places = config::Places { buffer_root: "/c/burst-buffer".into(), ..Default::default() };
    config::fill_in_places(&mut config, places);
    assert_eq!(config.burst_buffer.unwrap().pools[0].root, "/c/burst-buffer", "a root of its own");
}

#[test]
fn what_makes_no_sense_is_told_with_its_line() {
    assert_eq!(problems("[burst_buffer]\n"), ["c:5:2: [burst_buffer] needs [[burst_buffer.pools]], or `total_gb`"]);
    let said = problems("[burst_buffer]\ntotal_gb = 1\nroot = \"/r\"\nverify_in = \"some\"\ndefault_pool = \"x\"\n");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().any(|line| line.contains("`verify_in`") && line.starts_with("c:8:")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("there is no pool x")), "{said:?}");
    let said = problems("[burst_buffer]\ntotal_gb = 1\nroot = \"/r\"\nstage_in_timeout = 5\nStageInTimeout = 6\n");
    assert_eq!(said, ["c:8:1: StageInTimeout is given twice, here as stage_in_timeout"]);
    let said = problems("[burst_buffer]\n[[burst_buffer.pools]]\nname = \"p\"\nroot = \"/%n\"\nmovers = \"n9\"\n");
    assert!(said.iter().any(|line| line.contains("cannot contain %n")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("no [[nodes]] table names n9")), "{said:?}");
}

/// A folder with a slurm.conf and a burst_buffer.conf; what they come to.
fn slurm(kind: &str, conf: &str) -> Result<(model::Config, String), String> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("burst-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let main = format!(
        "ClusterName=c\nSlurmctldHost=h\nNodeName=n1 CPUs=1\nPartitionName=p Nodes=ALL\n\
         SchedulerParameters=bb_array_stage_cnt=3\n{kind}\n"
    );
    fs::write(folder.join("slurm.conf"), main).unwrap();
    fs::write(folder.join("burst_buffer.conf"), conf).unwrap();
    let read = read_with_warnings(&folder.join("slurm.conf"));
    fs::remove_dir_all(&folder).unwrap();
    let short = |text: String| text.replace(&format!("{}/", folder.display()), "");
    read.map(|(config, warnings)| (config, short(warnings.to_string()))).map_err(|problems| short(problems.to_string()))
}

#[test]
fn a_burst_buffer_conf_is_read_as_slurm_reads_it() {
    let conf = "# site\nallowusers=ann,ben\nDenyUsers=eve:mallory\nDefaultPool=p1\nFlags=EnablePersistent,EmulateCray,\\\n\
                PrivateData,TeardownFailure\nGetSysState=/opt/cli\nGetSysStatus=/opt/dwstat\nPollInterval=7\nOtherTimeout=8\n\
                StageInTimeout=9\nStageOutTimeout=10\nValidateTimeout=11\nCreateBuffer=/bin/x\nGranularity=1G\n";
    let (config, warnings) = slurm("BurstBufferType=burst_buffer/datawarp", conf).unwrap();
    let burst = config.burst_buffer.unwrap();
    assert_eq!((burst.plugin, burst.n_array_tasks, burst.default_pool.as_str()), (Plugin::DataWarp, 3, "p1"));
    assert_eq!((burst.allow_users.join(" "), burst.deny_users.join(" ")), ("ann ben".into(), "eve mallory".into()));
    assert!(burst.enables_persistent && burst.emulates_cray && burst.is_private && burst.tears_down_after_failure);
    assert_eq!((burst.get_sys_state.as_str(), burst.get_sys_status.as_str()), ("/opt/cli", "/opt/dwstat"));
    let times = [
        burst.poll_interval,
        burst.other_timeout,
        burst.stage_in_timeout,
        burst.stage_out_timeout,
        burst.validate_timeout,
    ];
    assert_eq!(times.map(|span| span.secs()), [7, 8, 9, 10, 11]);
    assert_eq!(burst.legacy, ["CreateBuffer=/bin/x"]);
    assert!(warnings.contains("burst_buffer.conf:14:1: `CreateBuffer` has no effect"), "{warnings}");
}

#[test]
fn lua_has_its_own_options_and_refuses_others_by_name() {
    let conf = "Directive=BB_SITE\nDefaultPool=x\nGetSysState=/x\nFlags=EnablePersistent,TeardownFailure\n\
                StageInTimeout=99999999\n";
    let (config, warnings) = slurm("BurstBufferType=lua", conf).unwrap();
    let burst = config.burst_buffer.unwrap();
    assert_eq!((burst.plugin, burst.directive.as_str(), burst.default_pool.as_str()), (Plugin::Lua, "BB_SITE", ""));
    assert!(burst.tears_down_after_failure && !burst.enables_persistent);
    assert_eq!(burst.stage_in_timeout.secs(), 2_073_600);
    assert!(burst.script.ends_with("/burst_buffer.lua"), "{}", burst.script);
    for word in ["`DefaultPool`", "`GetSysState`", "the flag EnablePersistent", "`StageInTimeout` is reduced"] {
        assert!(warnings.contains(word), "{word}: {warnings}");
    }
}

#[test]
fn what_no_burst_buffer_conf_may_say_is_named() {
    let said = slurm("BurstBufferType=lua", "PoolInterval=3\nFlags=Fast\nOtherTimeout=soon\n").unwrap_err();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(
        lines[0].contains(
            "burst_buffer.conf:1:1: unknown key `PoolInterval` in burst_buffer.conf; did you mean `PollInterval`?"
        ),
        "{said}"
    );
    assert!(lines[1].contains(":2:1: `Flags`: unknown flag Fast"), "{said}");
    assert!(lines[2].contains(":3:1: `OtherTimeout` must be a number of seconds"), "{said}");
    assert!(slurm("BurstBufferType=generic", "").unwrap_err().contains("burst_buffer/lua, burst_buffer/datawarp"));
    assert!(slurm("BurstBufferType=lua,datawarp", "").unwrap_err().contains("only one can be active"));
    assert!(slurm("", "PollInterval=3\n").unwrap().1.contains("without effect: no BurstBufferType asks for it"));
}

#[test]
fn plugins_are_told_of_in_our_own_file_too() {
    let text =
        "[burst_buffer]\ntype = \"lua\"\nDirective = \"BBX\"\nhooks = 4\nteardown_interval = 2\nallow_root = true\n";
    let config = parse(&format!("{NODES}{text}"), "c").unwrap();
    let burst = config.burst_buffer.clone().unwrap();
    assert_eq!((burst.plugin, burst.directive.as_str(), burst.n_hooks), (Plugin::Lua, "BBX", 4));
    assert_eq!(parse(&render(&config), "again").unwrap().burst_buffer, Some(burst));
    let said = problems("[burst_buffer]\ntype = \"lua\"\n[[burst_buffer.pools]]\nname = \"p\"\nroot = \"/p\"\n");
    assert!(said[0].contains("tells of its pools itself"), "{said:?}");
}
