//! Content ids: a hash that names content must not pass for it, give it away, or be shown.
use model::command::Blob;
use model::{Command, JobId, JobKind, JobSpec, Phase, StepSpec, codec};
use tonic::Status;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, is_root};

const OWNER: u32 = 1;
const STRANGER: u32 = 65_534;

/// The spec of a held job of this script.
fn held_job(script: &Blob) -> JobSpec {
    JobSpec {
        name: "content".into(),
        kind: JobKind::Batch { script: script.id },
        work_dir: "/".into(),
        held: true,
        ..JobSpec::default()
    }
}

pub(super) fn submission(spec: &JobSpec, blobs: &[Blob]) -> Vec<u8> {
    let spec = (1, FieldContent::Bytes(codec::encode(spec)));
    let blobs = blobs.iter().map(|blob| (2, FieldContent::Bytes(codec::encode(blob))));
    written(&std::iter::once(spec).chain(blobs).collect::<Vec<_>>())
}

pub(super) fn command(command: &Command) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(command)))])
}

/// What the controller answers this user; without root, every caller is the cluster's owner.
pub(super) fn ask(head: &Cluster, uid: u32, call: &'static str, body: Vec<u8>) -> Result<Vec<u8>, Status> {
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid, gid: uid };
    on_own_thread(async move {
        RawCaller::open(&entrance, &[]).await.call(&format!("/spur.v1.Controller/{call}"), body, false).await
    })
}

pub(super) fn refusal(answer: Result<Vec<u8>, Status>) -> String {
    answer.expect_err("it must be refused").message().to_owned()
}

#[test]
fn content_under_a_foreign_id_is_refused() {
    let head = Cluster::up("--nodes 1");
    let wanted = Blob::of(b"#!/bin/sh\necho wanted\n".to_vec());
    let forged = Blob { content: b"#!/bin/sh\necho forged\n".to_vec(), ..wanted.clone() };
    let spec = held_job(&wanted);
    assert_eq!(refusal(ask(&head, OWNER, "Submit", submission(&spec, std::slice::from_ref(&forged)))), FORGED);
    let both = [wanted.clone(), forged.clone()];
    assert_eq!(refusal(ask(&head, OWNER, "Submit", submission(&spec, &both))), FORGED);
    // Components and steps bring content, too.
    let job: u32 = head.sbatch("-o /dev/null --wrap 'sleep 600'").parse().unwrap();
    head.wait_state(&job.to_string(), "RUNNING");
    let step = StepSpec { environment: wanted.id, ..StepSpec::default() };
    let create = Command::CreateStep { job: JobId(job), spec: Box::new(step.clone()), blobs: vec![forged.clone()] };
    assert_eq!(refusal(ask(&head, own_uid(), "CreateStep", command(&create))), FORGED);
    let together = Command::CreateStepTogether { parts: vec![(JobId(job), step)], blobs: vec![forged] };
    assert_eq!(refusal(ask(&head, own_uid(), "CreateStep", command(&together))), FORGED);
    // Who brings the true content runs it.
    std::fs::write(head.dir.join("work/wanted.sh"), &wanted.content).unwrap();
    let job = head.sbatch("-o out wanted.sh");
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("out"), "wanted\n");
}

#[test]
fn id_alone_serves_only_users_who_have_the_content() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let secret = Blob::of(b"#!/bin/sh\n# the password is xyzzy\n".to_vec());
    let spec = held_job(&secret);
    ask(&head, OWNER, "Submit", submission(&spec, std::slice::from_ref(&secret))).unwrap();
    assert_eq!(refusal(ask(&head, STRANGER, "Submit", submission(&spec, &[]))), MISSING);
    // A stranger must not learn whether somebody has it, either.
    let unknown = held_job(&Blob::of(b"nobody has this".to_vec()));
    assert_eq!(refusal(ask(&head, STRANGER, "Submit", submission(&unknown, &[]))), MISSING);
    let environment = JobSpec { kind: JobKind::Allocation, environment: secret.id, ..spec.clone() };
    assert_eq!(refusal(ask(&head, STRANGER, "Submit", submission(&environment, &[]))), MISSING);
    let step = Command::CreateStep {
        job: JobId(1),
        spec: Box::new(StepSpec { environment: secret.id, ..StepSpec::default() }),
        blobs: Vec::new(),
    };
    assert_eq!(refusal(ask(&head, 0, "CreateStep", command(&step))), MISSING);
    // Its owner may name it, as long as a job of that user's keeps it.
    ask(&head, OWNER, "Submit", submission(&spec, &[])).unwrap();
    head.ok("scancel 1 2");
    head.wait_for("squeue -h", "");
    assert_eq!(refusal(ask(&head, OWNER, "Submit", submission(&spec, &[]))), MISSING);
}

#[test]
fn ids_are_shown_to_nobody() {
    let head = Cluster::up("--nodes 1");
    let text = "#!/bin/sh\nexit 0\n";
    std::fs::create_dir_all(head.dir.join("work")).unwrap();
    std::fs::write(head.dir.join("work/job.sh"), text).unwrap();
    let job = head.sbatch("-H job.sh");
    let running = head.sbatch("-o /dev/null --wrap 'srun sleep 600'");
    head.wait_until("squeue -h -s -o %i", |said| said.out.contains(&format!("{running}.0")));
    let filter = model::request::JobFilter { with_steps: true, ..Default::default() };
    for call in ["Jobs", "WatchJobs"] {
        let page = ask(&head, STRANGER, call, written(&[(1, FieldContent::Bytes(codec::encode(&filter)))])).unwrap();
        // The page stands behind the number and the length of its field.
        let n_before = 1 + page[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let page: model::request::JobsPage = codec::decode(&page[n_before..]).unwrap();
        assert_eq!(page.jobs.iter().filter(|job| job.phase != Phase::Done).count(), 2, "{call}");
        assert!(!page.steps.is_empty());
        for job in &page.jobs {
            assert_eq!(job.spec.environment, model::BlobId::default(), "{call}");
            assert_eq!(job.spec.kind, JobKind::Batch { script: model::BlobId::default() }, "{call}");
        }
        assert!(page.steps.iter().all(|step| step.spec.environment == model::BlobId::default()), "{call}");
    }
    // The owner needs no id for the script.
    assert_eq!(head.run(&format!("scontrol write batch_script {job} -")).out, text);
    if is_root() {
        let body = written(&[(2, FieldContent::Number(job.parse().unwrap()))]);
        let denied = ask(&head, STRANGER, "Blob", body).unwrap_err();
        assert_eq!(denied.message(), "Access/permission denied");
    }
}

const FORGED: &str = "Content of the submission is not what its id says";
const MISSING: &str = "Content of the submission is missing";

pub(super) fn own_uid() -> u32 {
    // SAFETY: geteuid cannot fail.
    unsafe { libc::geteuid() }
}
