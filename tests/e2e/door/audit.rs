//! The audit: who asked for what, from where, for whom, and what was refused.
use model::JobId;
use serde_json::Value;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, is_root, kill_9};
use crate::failover::{leader, pid_of};

fn records(head: &Cluster, arguments: &str) -> Vec<Value> {
    let text = head.ok(&format!("spur audit --json {arguments}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn changes_and_refusals_are_told_and_questions_are_not() {
    let head = Cluster::up("--nodes 1");
    let job = head.sbatch("-H --wrap true");
    head.ok(&format!("scancel {job}"));
    head.ok("squeue");
    head.run("scontrol update jobid=4711 comment=x");
    let all = records(&head, "");
    let told: Vec<(&str, bool)> =
        all.iter().map(|one| (one["call"].as_str().unwrap(), one["allowed"].as_bool().unwrap())).collect();
    let of_users: Vec<_> = told.into_iter().filter(|(call, _)| *call != "Attend").collect();
    assert_eq!(of_users, [("Submit", true), ("Cancel", true), ("UpdateJob", false)]);
    let of = |call: &str| all.iter().find(|one| one["call"] == call).unwrap();
    assert_eq!(of("Submit")["about"], format!("job {job}"));
    assert_eq!(of("Submit")["from"], "local");
    assert!(of("Cancel")["about"].as_str().unwrap().contains(&job));
    assert_eq!(of("UpdateJob")["why_refused"], "4711: Invalid job id specified");
    // A restart forgets nothing, and what a user chose cannot order the terminal about.
    let before = records(&head, "--all").len();
    head.run("scontrol update jobid=4711 comment=$'\\e[2Jx'");
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    head.start("");
    assert!(records(&head, "--all").len() > before);
    assert!(!head.ok("spur audit --all").contains('\u{1b}'));
    assert_eq!(records(&head, "--call Submit,Cancel").len(), 2);
    assert_eq!(records(&head, "--call Submit --last 1").len(), 1);
    assert_eq!(records(&head, "--refused").len(), 2);
    assert!(records(&head, "--until now-1day").is_empty());
    let wrong = head.run("spur audit --since never");
    assert!(wrong.code != 0 && wrong.err.contains("never is no time"), "{wrong:?}");
}

#[test]
fn strangers_attempts_are_told_and_the_audit_is_not_theirs() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let job: u32 = head.sbatch("-H --wrap true").parse().unwrap();
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid: 65_534, gid: 65_534 };
    let n_tried = 50;
    on_own_thread(async move {
        let nobody = RawCaller::open(&entrance, &[]).await;
        for _ in 0..n_tried {
            nobody.call("/spur.v1.Controller/Shutdown", Vec::new(), false).await.unwrap_err();
        }
        let cancel = model::Command::Cancel { jobs: vec![JobId(job).into()], hurry: false };
        let body = written(&[(1, FieldContent::Bytes(model::codec::encode(&cancel)))]);
        nobody.call("/spur.v1.Controller/Cancel", body, false).await.unwrap();
        nobody.call("/spur.v1.Controller/Audit", Vec::new(), false).await.unwrap_err();
        nobody.call("/spur.v1.Controller/Backup", Vec::new(), false).await.unwrap_err();
    });
    let told = records(&head, "--user nobody --all");
    let of = |call: &str| told.iter().filter(|one| one["call"] == call).collect::<Vec<_>>();
    // Who floods the audit does not push others out of it.
    assert!((1..n_tried).contains(&of("Shutdown").len()), "{told:?}");
    assert_eq!(of("Shutdown")[0]["uid"], 65_534);
    assert_eq!((of("Audit").len(), of("Backup").len()), (1, 1));
    // The call was heard, the job refused.
    assert_eq!(of("Cancel").len(), 1);
    assert!(of("Cancel")[0]["why_refused"].as_str().unwrap().contains("denied"), "{:?}", of("Cancel"));
    head.ok("setpriv --reuid=65534 --regid=65534 --clear-groups true");
    let denied = head.run("setpriv --reuid=65534 --regid=65534 --clear-groups spur audit");
    assert_ne!(denied.code, 0, "{denied:?}");
    // An administrator who acts for another is named beside that user.
    head.ok("sbatch -H --uid=nobody -D / --wrap true");
    let last = records(&head, "--call Submit --last 1");
    assert_eq!((&last[0]["user"], &last[0]["behalf"]), (&"root".into(), &"nobody".into()));
}

#[test]
fn audit_of_three_controllers_is_one() {
    let head = Cluster::up("--nodes 1 --controllers 3");
    let first = leader(&head);
    head.sbatch("-H --wrap true");
    kill_9(pid_of(&head, first));
    head.sbatch("-H --wrap true");
    // What the dead one heard is missing, and said to be.
    let partly = head.wait_until("spur audit --json --call Submit", |said| !said.err.is_empty());
    assert_ne!(partly.code, 0);
    assert!(partly.err.contains(&format!("controller {first} does not answer")), "{partly:?}");
    assert_eq!(partly.out.lines().count(), 1);
    head.start("");
    head.wait_until("spur audit --json --call Submit", |said| said.code == 0);
    let all = records(&head, "--call Submit");
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["controller"], first);
    assert_ne!(all[1]["controller"], first);
    assert!(all[0]["at_micros"].as_u64() < all[1]["at_micros"].as_u64());
    assert_eq!(records(&head, "--call Submit --last 1"), all[1..]);
}

#[test]
fn made_up_calls_are_one_call_and_leave_the_rest_alone() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let job = head.sbatch("-H --wrap true");
    let socket = head.dir.join("run/controller.sock");
    let entrance = Entrance::Local { socket: socket.clone(), uid: 65_534, gid: 65_534 };
    on_own_thread(async move {
        let nobody = RawCaller::open(&entrance, &[]).await;
        for n in 0..400 {
            nobody.call(&format!("/spur.v1.Controller/Made{n}"), Vec::new(), false).await.unwrap_err();
            nobody.call(&format!("/spur.v1.Member/Made{n}"), Vec::new(), false).await.unwrap_err();
        }
        nobody.call("/spur.v1.Member/Alive", Vec::new(), false).await.unwrap_err();
        let at_agent = RawCaller::open(&entrance, &[(wire::node::NODE_HEADER, "n1".into())]).await;
        let asked =
            written(&[(1, FieldContent::Bytes(model::codec::encode(&model::ask::Question::Runs { job: None })))]);
        let _ = at_agent.call("/spur.v1.Agent/Ask", asked, false).await;
        let nowhere = RawCaller::open(&entrance, &[(wire::node::NODE_HEADER, "gone".into())]).await;
        nowhere.call("/spur.v1.Agent/Ask", Vec::new(), false).await.unwrap_err();
    });
    let told = records(&head, "--user nobody --all");
    let of = |call: &str| told.iter().filter(|one| one["call"] == call).count();
    assert!((1..=20).contains(&of("unknown")), "{told:?}");
    // What members refuse, and what goes to agents, is told of too.
    assert_eq!(of("Alive"), 1);
    let abouts: Vec<_> =
        told.iter().filter(|one| one["call"] == "Ask").map(|one| one["about"].as_str().unwrap()).collect();
    assert_eq!(abouts, ["node n1", "node gone"]);
    assert!(told.iter().all(|one| !one["call"].as_str().unwrap().contains("Made")), "{told:?}");
    assert_eq!(records(&head, "--call Submit")[0]["about"], format!("job {job}"));
}

#[test]
fn records_say_what_they_are_about() {
    let head = Cluster { dir: crate::cluster::new_dir() };
    let port = crate::machines::free_port();
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{port}", head.dir.display()));
    let _node = crate::machines::join(&crate::machines::token(&head, ""), "--node a1 --cpus 4 --memory 1G");
    head.ok("scontrol setdebug debug");
    if is_root() {
        head.ok("strigger --set --node --down --program=/bin/true");
        assert!(records(&head, "--call SetTrigger")[0]["about"].as_str().unwrap().contains("/bin/true"));
    }
    // SAFETY: a plain call on a daemon of ours.
    unsafe { libc::kill(head.controller_pid(), libc::SIGHUP) };
    head.wait_until("spur audit --json --call Reconfigure", |said| said.out.contains("SIGHUP"));
    let about =
        |call: &str| records(&head, &format!("--call {call} --last 1"))[0]["about"].as_str().unwrap().to_owned();
    assert_eq!(about("MakeToken"), "Node");
    assert_eq!(about("Join"), "Node a1");
    assert!(about("SetDebug").to_lowercase().contains("debug"), "{}", about("SetDebug"));
    // The secret of a token is nowhere.
    assert!(!head.ok("spur audit --all").contains("secret"));
}

#[test]
fn agents_tell_who_came_to_their_own_doors() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    assert_eq!(head.ok("srun echo here"), "here");
    let job = head.sbatch("-o /dev/null --wrap 'exec sleep 600'");
    head.wait_state(&job, "RUNNING");
    head.ok(&format!("echo x > some; sbcast -j {job} some copied"));
    let entrance = Entrance::Local { socket: head.dir.join("run/agent-n1.sock"), uid: 65_534, gid: 65_534 };
    let socket = head.dir.join("run/controller.sock");
    on_own_thread(async move {
        let (job, attempt) = super::unread_steps::newest_run(&socket).await;
        let nobody = RawCaller::open(&entrance, &[]).await;
        let look = model::attach::ToStep::Observe { job, attempt, step: model::StepId::Batch };
        let body = written(&[(1, FieldContent::Bytes(model::codec::encode(&look)))]);
        nobody.first_answer("/spur.v1.Agent/Attach", body, true).await.unwrap_err();
    });
    let text = head.ok(&format!("spur audit --json --all --files {}/spool/n1/audit", head.dir.display()));
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |call: &str, user: &str| -> Vec<&Value> {
        told.iter().filter(|one| one["call"] == call && one["user"] == user).collect()
    };
    assert_eq!(of("Attach", "root").len(), 1, "{text}");
    assert_eq!(of("Attach", "root")[0]["allowed"], true);
    assert!(of("Ask", "root")[0]["about"].as_str().unwrap().contains("copied"), "{text}");
    let refused = of("Attach", "nobody");
    assert_eq!((refused.len(), &refused[0]["allowed"]), (1, &Value::Bool(false)), "{text}");
    assert!(refused[0]["about"].as_str().unwrap().starts_with(&format!("{job}.")), "{text}");
    // An agent that is not this user's says nothing of it.
    let denied = head.run(&format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups spur audit --files {}/spool/n1/audit",
        head.dir.display()
    ));
    assert_ne!(denied.code, 0, "{denied:?}");
}
