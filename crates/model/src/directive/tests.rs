use proptest::prelude::*;

use super::*;
use crate::buffer::{TransferKind, When};
use crate::pool::{Plugin, Pool, PoolKind};
use crate::staging::{Access, Direction};

/// On a cluster whose nodes' names begin with n.
fn request(config: &BurstBufferConfig, sources: Sources) -> Result<Option<BufferRequest>, Problem> {
    super::request(config, sources, &|name| name.starts_with('n'))
}

fn config() -> BurstBufferConfig {
    let pool = |name: &str, kind, root: &str, granularity_bytes| Pool {
        name: name.into(),
        kind,
        root: root.into(),
        granularity_bytes,
        ..Default::default()
    };
    let flash = pool("flash", PoolKind::Shared, "/flash/bb", 10 << 30);
    let nvme = pool("nvme", PoolKind::Node, "/local/%n/bb", 1 << 30);
    BurstBufferConfig { pools: vec![flash, nvme], ..Default::default() }
}

fn script(text: &str) -> Result<Option<BufferRequest>, Problem> {
    request(&config(), Sources { script: text, ..Default::default() })
}

fn option(text: &str) -> Result<Option<BufferRequest>, Problem> {
    request(&config(), Sources { option: text, ..Default::default() })
}

#[test]
fn a_script_asks_for_space_and_data() {
    let text = "#!/bin/bash\n#SBATCH -N2\n\n#DW jobdw type=scratch access_mode=striped capacity=35GiB pool=flash\n\
        #DW stage_in  type=directory source=/proj/set7 destination=$DW_JOB_STRIPED/set7\n\
        #DW stage_out type=file source=$DW_JOB_STRIPED/out.h5 destination=/proj/results/%j.h5 when=success\n\
        srun ./app\n#DW jobdw capacity=1G\n";
    let request = script(text).unwrap().unwrap();
    assert_eq!(request.spaces.len(), 1);
    assert_eq!((request.spaces[0].bytes, request.spaces[0].pool.as_str()), (40 << 30, "flash"));
    assert_eq!(request.transfers.len(), 2);
    assert_eq!(request.transfers[0].kind, TransferKind::Directory);
    assert_eq!(request.transfers[1].direction, Direction::Out);
    assert_eq!(request.transfers[1].when, When::Success);
    assert_eq!(request.text.lines().count(), 3);
}

#[test]
fn only_the_first_comments_are_read() {
    assert_eq!(script("#!/bin/sh\necho\n#DW jobdw capacity=1G\n").unwrap(), None);
    assert_eq!(script("#!/bin/sh\n #DW jobdw capacity=1G\n#DW frob\n").unwrap(), None);
    assert_eq!(script("#!/bin/sh\n#DWX frob\n#BB_LUA capacity=1\n").unwrap(), None);
    assert!(script("#!/bin/sh\n\n#DW jobdw capacity=1G\n").unwrap().is_some());
}

#[test]
fn a_directive_goes_on_in_the_next_line() {
    let request = script("#!/bin/sh\n#DW jobdw \\\n#DW   capacity=\\\n#DW5G\n").unwrap_err();
    assert!(request.why.contains("unknown") || request.why.contains("size"), "{request}");
    let request = script("#!/bin/sh\n#DW jobdw \\\n#DW   capacity=5G\n").unwrap().unwrap();
    assert_eq!(request.text, "#DW jobdw capacity=5G");
    assert!(script("#!/bin/sh\n#DW jobdw \\\n#BB capacity=5G\n").is_err());
}

#[test]
fn the_short_form_becomes_a_directive() {
    for (given, shown) in [
        ("capacity=1G access=striped type=scratch", "#DW jobdw capacity=1GiB access_mode=striped type=scratch"),
        ("capacity=1G,access=striped", "#DW jobdw capacity=1GiB access_mode=striped"),
        ("capacity=1000MB", "#DW jobdw capacity=1GB"),
        ("capacity=100", "#DW jobdw capacity=100GiB"),
        ("pool=nvme capacity=1TB", "#DW jobdw capacity=1TB pool=nvme"),
        ("#DW jobdw capacity=7", "#DW jobdw capacity=7"),
        (
            "capacity=5; stage_in:cp /a b ; stage_out: tar c .",
            "#DW jobdw capacity=5GiB\n\
            #DW stage_in type=command command=cp /a b\n#DW stage_out type=command command=tar c .",
        ),
        ("capacity=1G access_mode=striped,private", "#DW jobdw capacity=1GiB access_mode=striped,private"),
        ("access=striped,private,capacity=1G", "#DW jobdw capacity=1GiB access_mode=striped,private"),
        (
            "capacity=1G pool=nvme;stage_in:true",
            "#DW jobdw capacity=1GiB pool=nvme\n#DW stage_in type=command command=true",
        ),
        ("stage_in=file:/a:b;capacity=1G", "#DW jobdw capacity=1GiB\n#DW stage_in type=file source=/a destination=b"),
    ] {
        assert_eq!(option(given).unwrap().unwrap().text, shown, "{given}");
    }
}

#[test]
fn sizes_are_exact_or_refused() {
    let bytes = |text: &str| option(text).unwrap().unwrap().spaces[0].bytes;
    assert_eq!(bytes("capacity=1TB pool=nvme"), 1_000_000_000_000u64.div_ceil(1 << 30) << 30);
    assert_eq!(bytes("capacity=512MB pool=nvme"), 1 << 30);
    assert_eq!(bytes("capacity=3 pool=nvme"), 3 << 30);
    for bad in
        ["capacity=3.5TB", "capacity=0", "capacity=1Q", "capacity=", "capacity=99999999P", "capacity=-1", "capacity=2N"]
    {
        assert!(option(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_offending_word_is_marked() {
    let problem = script("#!/bin/sh\n#DW jobdw capacity=1GiB pool=fast\n").unwrap_err();
    assert_eq!(
        problem.to_string(),
        "Invalid pool requested (fast)\n  #DW jobdw capacity=1GiB pool=fast\n                          ^^^^^^^^^"
    );
    let problem = option("capacity=1G speed=9").unwrap_err();
    assert_eq!(problem.to_string(), "unknown word\n  capacity=1G speed=9\n              ^^^^^^^");
}

#[test]
fn a_word_of_the_short_form_is_said_once() {
    let twice = |text: &str| said_twice(&config(), text).map(|problem| problem.to_string());
    let marked = "capacity= is said twice\n  capacity=1M capacity=2M\n              ^^^^^^^^^^^";
    assert_eq!(twice("capacity=1M capacity=2M").as_deref(), Some(marked));
    for wrong in [
        "capacity=1G,pool=flash,capacity=1G",
        "capacity=1G pool=flash POOL=nvme",
        "access=striped capacity=1G access_mode=private",
        "capacity=1 capacity=2;stage_in:true",
        "capacity=1 pool=flash;pool=nvme",
    ] {
        assert!(twice(wrong).is_some(), "{wrong}");
    }
    for right in [
        "capacity=1G access=striped,private pool=nvme type=scratch",
        "capacity=1;capacity=2;stage_in:cp a=1 a=2",
        "stage_in=file:/a:b;stage_in=file:/c:d;capacity=1G",
        "capacity=1G stage_in=file:/a:b stage_in=file:/c:d",
        "#DW jobdw capacity=1G\n#DW jobdw capacity=1G pool=nvme",
    ] {
        assert_eq!(twice(right), None, "{right}");
    }
    assert!(said_twice(&of_plugin(Plugin::DataWarp), "swap=1 swap=2").is_some());
    assert!(said_twice(&of_plugin(Plugin::Lua), "#BB_LUA pool=a pool=b").is_none());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for bad in [
        "#DW",
        "#DW jobdw",
        "#DW jobdw capacity=1G type=cache",
        "#DW jobdw capacity=1G access_mode=ldbalance",
        "#DW jobdw capacity=1G access_mode=private pool=flash",
        "#DW jobdw capacity=1G xpool=flash",
        "#DW jobdw capacity=1G capacity=2G",
        "#DW swap 5GiB",
        "#DW frobnicate x=1",
        "#DW stage_in type=file source=/a destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=/b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/flash/bb/jobs/1.1/shared/x destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/local/n1/bb/x destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=$DW_JOB_PRIVATE/b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=../b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a/../b destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=$SHELL/x destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a",
        "#DW jobdw capacity=1G\n#DW stage_in type=tar source=/a destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=b when=success",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=b\n#DW stage_in type=file source=/c destination=b",
        "#DW jobdw capacity=1G\n#DW stage_in type=file source=/a destination=b\n#DW stage_in type=file source=/c destination=$DW_JOB_STRIPED/./b",
        "#DW jobdw capacity=1G\n#DW stage_out type=file source=b destination=/r/x\n#DW stage_out type=file source=x destination=/r/",
        "#DW jobdw capacity=1G pfs=/scratch",
        "#DW jobdw capacity=1G pool=nvme\n#DW stage_out type=file source=b destination=/a/b",
        "#BB create_persistent name=9x capacity=1G",
        "#BB create_persistent name=x..y capacity=1G",
        "#BB create_persistent name=x",
        "#BB create_persistent name=x capacity=1G pool=nvme",
        "#BB destroy_persistent hurry",
    ] {
        assert!(script(&format!("#!/bin/sh\n{bad}\n")).is_err(), "{bad}");
    }
    let denied = script("#!/bin/sh\n#DW create_persistent name=x capacity=1G\n").unwrap_err();
    assert_eq!(denied.kind, ProblemKind::NotPermitted);
    assert!(option("#BB create_persistent name=x capacity=1G").is_err());
    assert!(option("echo hello").is_err());
    assert!(option("pool=flash").is_err());
}

#[test]
fn what_only_looks_alike_is_taken() {
    for good in [
        // Beside the pools, below no node's name, not absolute.
        "#DW stage_in type=file source=/local/data/bb/x destination=b",
        "#DW stage_in type=file source=/flash/bbq destination=b",
        "#DW stage_in type=file source=flash/bb/x destination=b",
        "#DW stage_in type=file source=/a destination=c/\n#DW stage_in type=file source=/b destination=c/",
        "#DW stage_in type=list source=/a destination=c\n#DW stage_in type=list source=/b destination=c",
        "#DW stage_out type=file source=c destination=x\n#DW stage_out type=file source=c destination=/x",
    ] {
        let read = script(&format!("#!/bin/sh\n#DW jobdw capacity=1G\n{good}\n"));
        assert!(read.is_ok(), "{good}: {read:?}");
    }
}

#[test]
fn the_pool_above_a_path_is_found_on_whichever_node() {
    let above = |path: &str, root: &str| root_above(path, root, &|name| name.starts_with('n'));
    assert_eq!(above("/local//n2/bb/./jobs", "/local/%n/bb").as_deref(), Some("/local/n2/bb"));
    assert_eq!(above("/flash/bb", "/flash/bb/").as_deref(), Some("/flash/bb"));
    assert_eq!(above("/local/data/bb", "/local/%n/bb"), None);
    assert_eq!(above("local/n2/bb", "/local/%n/bb"), None);
}

#[test]
fn private_space_and_persistent_buffers() {
    let request = script(
        "#!/bin/sh\n#DW jobdw capacity=2G access_mode=striped,private pool=nvme\n#DW persistentdw name=library\n\
         #DW stage_out type=directory source=$DW_JOB_PRIVATE destination=/out/%n\n\
         #DW stage_in type=file source=~/x destination=$DW_PERSISTENT_STRIPED_library/x\n\
         #BB create_persistent name=other capacity=1G\n#BB destroy_persistent name=old hurry\n",
    );
    let request = request.unwrap().unwrap();
    let spaces: Vec<_> = request.spaces.iter().map(|space| (space.access, space.pool.as_str())).collect();
    assert_eq!(spaces, [(Access::Shared, "flash"), (Access::Private, "nvme")]);
    assert_eq!(request.uses, ["library"]);
    assert!(request.destroys[0].hurry);
}

#[test]
fn symbols_are_replaced_and_unknown_ones_stay() {
    let facts = Facts { job: JobId(7), work_dir: "/w", user: "ada", name: "run", node: "n1", ..Default::default() };
    assert_eq!(replace("%j-%A-%a-%b-%d-%u-%x-%n-%t-%%-%q-%", &facts), "7-7-4294967294-4-/w-ada-run-n1-0-%-%q-%");
    let text = "#!/bin/sh\n#DW jobdw capacity=1G\n#DW stage_in type=file source=/a/%j destination=x\\\\/%j\n";
    let request = script(text).unwrap().unwrap();
    assert_eq!(replace(&request.transfers[0].source, &facts), "/a/7");
    assert_eq!(replace(&request.transfers[0].destination, &facts), "x\\\\/%j");
}

use crate::JobId;

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>(), near in "#(DW|BB) (jobdw|stage_in|stage_out|create_persistent)( [a-z]{1,8}=[^ ]{0,12}){0,4}\\PC{0,6}") {
        for text in [text.as_str(), near.as_str(), &format!("#!/bin/sh\n{near}\n")] {
            for source in [
                Sources { script: text, ..Default::default() },
                Sources { option: text, ..Default::default() },
                Sources { file: text, ..Default::default() },
            ] {
                if let Err(problem) = request(&config(), source) {
                    let _ = problem.to_string();
                }
            }
        }
    }
}

fn of_plugin(plugin: Plugin) -> BurstBufferConfig {
    BurstBufferConfig { plugin, is_loaded: true, ..config() }
}

#[test]
fn lua_looks_at_two_words_and_leaves_the_rest_to_the_script() {
    let config = of_plugin(Plugin::Lua);
    let read = |text: &str| request(&config, Sources { script: text, ..Default::default() });
    let asked = read("#!/bin/sh\n#BB_LUA\n").unwrap().unwrap();
    assert!(asked.spaces.is_empty() && asked.is_used_by_job() && asked.text == "#BB_LUA");
    let asked = read("#!/bin/sh\n#BB_LUA pool=flash capacity=1 xpool=no\n#BB_LUA capacity=5K pool=nvme words words\n")
        .unwrap()
        .unwrap();
    let spaces: Vec<(&str, u64)> = asked.spaces.iter().map(|space| (space.pool.as_str(), space.bytes)).collect();
    assert_eq!(spaces, [("flash", 10 << 30), ("nvme", 1 << 30)], "each pool is charged by itself");
    assert_eq!(read("#!/bin/sh\n#BB_LUAX capacity=1\n#DW jobdw capacity=1\n").unwrap(), None);
    for wrong in [
        "capacity=1",
        "capacity=0 pool=flash",
        "capacity=1.5T pool=flash",
        "capacity=1 pool=no",
        "capacity=99999999P pool=flash",
    ] {
        assert!(read(&format!("#!/bin/sh\n#BB_LUA {wrong}\n")).is_err(), "{wrong}");
    }
    let option = |text: &str| request(&config, Sources { option: text, ..Default::default() });
    assert!(option("capacity=1G pool=flash").is_err(), "only directives");
    assert!(option("#DW jobdw capacity=1G").is_err());
    assert!(option("#BB_LUA pool=flash").unwrap().is_some());
    let own = BurstBufferConfig { directive: "SITE".into(), ..config.clone() };
    assert!(request(&own, Sources { script: "#!/bin/sh\n#SITE\n", ..Default::default() }).unwrap().is_some());
}

#[test]
fn datawarp_checks_sizes_names_and_pools_and_passes_on_the_rest() {
    let config = of_plugin(Plugin::DataWarp);
    let read = |text: &str| request(&config, Sources { script: &format!("#!/bin/sh\n{text}\n"), ..Default::default() });
    let asked =
        read("#DW jobdw capacity=11GiB type=cache access_mode=ldbalance pfs=/x\n#DW stage_out frob\n#DW future")
            .unwrap()
            .unwrap();
    assert_eq!((asked.spaces[0].bytes, asked.spaces[0].pool.as_str(), asked.stages_out), (20 << 30, "flash", true));
    let asked = read("#BB create_persistent name=a capacity=1 access=striped type=scratch pool=nvme").unwrap().unwrap();
    let made = &asked.creates[0];
    assert_eq!(
        (made.bytes, made.pool.as_str(), made.access.as_str(), made.kind.as_str()),
        (1 << 30, "nvme", "striped", "scratch")
    );
    assert!(!asked.is_used_by_job());
    assert!(read("#DW persistentdw name=a").unwrap().unwrap().is_used_by_job());
    let option = |text: &str| request(&config, Sources { option: text, ..Default::default() });
    let asked = option("swap=5 capacity=1000MB access=striped pool=flash type=scratch").unwrap().unwrap();
    assert_eq!(
        asked.text,
        "#DW swap 5GiB pool=flash\n#DW jobdw capacity=1GB access_mode=striped pool=flash type=scratch"
    );
    assert_eq!(asked.swap.unwrap().bytes, 5 << 30);
    for wrong in [
        "#DW jobdw",
        "#DW jobdw capacity=0",
        "#DW jobdw capacity=2N",
        "#DW jobdw capacity=1 pool=no",
        "#DW swap",
        "#DW swap x",
        "#DW stage_in a",
        "#BB create_persistent name=1a capacity=1",
        "#BB create_persistent capacity=1",
        "#BB create_persistent name=a",
        "#BB destroy_persistent",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let denied = read("#DW create_persistent name=a capacity=1").unwrap_err();
    assert_eq!(denied.kind, ProblemKind::NotPermitted);
    assert!(option("frob=1").is_err() && option("capacity=1G frob").is_err());
}
