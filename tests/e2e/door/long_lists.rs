//! Lists that are longer than a page, of every kind: commands show all of them, and no message holds them all.
use model::trigger::{Trigger, TriggerKind};
use model::{Command, codec};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::unread::submit_jobs;
use crate::cluster::Cluster;

const N_NODES: usize = 4000;
const N_ACCOUNTS: usize = 1500;
const N_TRIGGERS: usize = 1500;
const N_JOBS: usize = 1500;
/// No message holds much more than a page.
const MESSAGE_MAX: usize = (1 << 20) + (64 << 10);

/// The sizes of the messages that answer a call without words.
fn message_sizes(head: &Cluster, call: &str, body: Vec<u8>) -> Vec<usize> {
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid: 0, gid: 0 };
    let path = format!("/spur.v1.Controller/{call}");
    on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[("spur-pages", "1".into())]).await;
        let messages = caller.messages(&path, body, usize::MAX).await.unwrap();
        messages.iter().map(Vec::len).collect()
    })
}

fn set_triggers(head: &Cluster) {
    let socket = head.dir.join("run/controller.sock");
    on_own_thread(async move {
        let controller = wire::Controller::connect(&socket).await.unwrap();
        let mut setting = tokio::task::JoinSet::new();
        for first in 0..10 {
            let mut controller = controller.clone();
            setting.spawn(async move {
                for number in (first..N_TRIGGERS).step_by(10) {
                    let program = format!("/bin/true {number:04} {}", "p".repeat(900));
                    let trigger = Trigger { kinds: vec![TriggerKind::Down], program, ..Default::default() };
                    controller.command(Command::SetTrigger { trigger: Box::new(trigger) }).await.unwrap();
                }
            });
        }
        setting.join_all().await;
    });
}

#[test]
fn lists_beyond_a_page_are_shown_whole_by_every_command() {
    let head = Cluster::up("--nodes 1 --cpus 4");
    // Nodes that nobody starts an agent for.
    let features = (0..12).map(|n| format!("\"feature-with-a-long-name-{n}\"")).collect::<Vec<_>>().join(", ");
    let far =
        format!("\n[[nodes]]\nnames = \"far[1-{N_NODES}]\"\ncpus = 2\nmemory_mb = 1024\nfeatures = [{features}]\n");
    let file = head.dir.join("spur.conf");
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &far).unwrap();
    head.ok("scontrol reconfigure");
    set_triggers(&head);
    let description = "d".repeat(1000);
    for first in (0..N_ACCOUNTS).step_by(100) {
        let names: Vec<String> = (first..first + 100).map(|number| format!("account{number:04}")).collect();
        head.ok(&format!("sacctmgr -i add account {} description={description}", names.join(",")));
    }
    submit_jobs(&head, N_JOBS, "true", false);
    head.ok("scancel -u $(id -un)");
    head.wait_for("squeue -h | wc -l", "0");
    // The commands, each with its own count.
    let count = |line: &str| head.ok(&format!("{line} | wc -l")).parse::<usize>().unwrap();
    assert_eq!(count("sinfo -h -N -o %N"), N_NODES + 1);
    assert_eq!(count("scontrol show node -o"), N_NODES + 1);
    assert_eq!(count("scontrol show node far3999 | grep NodeName"), 1);
    assert_eq!(count("sacctmgr -n -P show account format=account | grep account"), N_ACCOUNTS);
    assert_eq!(count("strigger --get -N"), N_TRIGGERS);
    assert_eq!(count("sacct -a -X -n -o jobid"), N_JOBS);
    assert_eq!(count("sacct -a -X -n -P -o comment | grep ccc"), N_JOBS);
    assert!(count("scontrol show config") > 10);
    let history = codec::encode(&model::history::HistoryQuery::default());
    let history = super::contract::written(&[(1, super::contract::FieldContent::Bytes(history))]);
    for (call, body) in [
        ("Nodes", Vec::new()),
        ("Accounts", Vec::new()),
        ("Triggers", Vec::new()),
        ("History", history),
        ("Configuration", Vec::new()),
    ] {
        let sizes = message_sizes(&head, call, body);
        assert!(sizes.iter().all(|size| *size < MESSAGE_MAX), "{call}: {sizes:?}");
        if call != "Configuration" {
            assert!(sizes.len() > 1, "{call} is not longer than a page: {sizes:?}");
        }
    }
}
