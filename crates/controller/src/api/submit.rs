//! Submissions: the spec is made the caller's own before it goes to the log.
use model::command::{Blob, RequestId};
use model::{Caller, Entry, JobId, JobSpec, Plan, Reject, Reply, Start, hostlist};
use state::Cluster;
use tonic::{Response, Status};
use wire::accounts;
use wire::proto::{SubmitReply, SubmitRequest};
use wire::refusal::to_status;

use super::{Answer, Api, authority, read, refused, unheard_directives};
use crate::audit::AuditNotes;
use crate::door::{Refusal, submission};
use crate::job_submit::with_words;
use crate::names::Names;

/// As in Slurm.
const COMPONENTS_MOST: usize = 128;
/// A script, and the environments of the job and of its step.
const BLOBS_A_COMPONENT: usize = 3;

pub async fn submit(
    api: &Api,
    by: Caller,
    request: SubmitRequest,
    request_id: Option<RequestId>,
    notes: &AuditNotes,
) -> Answer<SubmitReply> {
    if request.more.len() >= COMPONENTS_MOST || request.blobs.len() > BLOBS_A_COMPONENT * COMPONENTS_MOST {
        return Err(to_status(&Reject::TextTooLong(format!("at most {COMPONENTS_MOST} components make one job"))));
    }
    let specs = std::iter::once(&request.spec).chain(&request.more);
    let mut specs = specs.map(|spec| read(spec)).collect::<Result<Vec<JobSpec>, Status>>()?;
    for spec in &mut specs {
        make_own(&api.published.now(), &api.names, by, spec).map_err(|reject| to_status(&reject))?;
        spec.groups = groups(&api.published.now(), &api.names, spec);
        if spec.mail.as_ref().is_some_and(|mail| !mail.has_plain_address()) {
            return Err(to_status(&Reject::InvalidValue("--mail-user".into())));
        }
    }
    let mut blobs = request.blobs.iter().map(|blob| read(blob)).collect::<Result<Vec<Blob>, Status>>()?;
    state::judge_specs(&api.published.now(), &specs).map_err(|reject| to_status(&reject))?;
    // The site's scripts are shown content, too.
    state::judge_submission(&api.published.now(), by, &specs, &blobs).map_err(|reject| to_status(&reject))?;
    let screened = api.screen.submission(&api.published.now(), by, &mut specs, &mut blobs).await;
    let told = screened.map_err(|reject| to_status(&reject))?;
    let refuse = |reject: Reject| to_status(&with_words(reject, &told));
    has_short_script(&api.published.now(), &specs, &blobs).map_err(refuse)?;
    if !specs.iter().all(|spec| state::fits_its_reservations(&api.published.now(), spec)) {
        return Err(refuse(Reject::NeverFits));
    }
    let unheard = unheard_directives::warnings(api.published.now().config(), &specs, &blobs);
    let all_told =
        || [told.as_str(), &unheard].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    if request.test_only {
        let (cluster, now) = (api.published.now(), api.door.now());
        let tried = move || try_out(&cluster, by, specs, blobs, now);
        let text = api.work_turns.work(by.uid, std::future::ready(()), tried).await?.map_err(refuse)?;
        return Ok(Response::new(SubmitReply { job: 0, text, told: all_told() }));
    }
    api.plugin.validate(by, &specs, &blobs).await.map_err(refuse)?;
    let behalf = specs.iter().find(|spec| spec.uid != by.uid).map(|spec| spec.user.clone());
    match api.door.submit(by, specs, blobs, request_id).await {
        Ok(Reply::Submitted(JobId(job))) => {
            notes.submitted(job, behalf);
            Ok(Response::new(SubmitReply { job, text: String::new(), told: all_told() }))
        }
        Ok(other) => Err(Status::internal(format!("unexpected reply {other:?}"))),
        Err(Refusal::Rejected(reject)) => Err(refuse(reject)),
        Err(refusal) => Err(refused(&refusal)),
    }
}

/// Every controller keeps scripts as long as their jobs. Asked here and not by the state, which must go on taking what is in its log.
fn has_short_script(cluster: &Cluster, specs: &[JobSpec], blobs: &[Blob]) -> Result<(), Reject> {
    let most = cluster.config().jobs.max_script_bytes;
    let is_script = |blob: &Blob| {
        specs.iter().any(|spec| matches!(&spec.kind, model::JobKind::Batch { script } if *script == blob.id))
    };
    match blobs.iter().any(|blob| blob.content.len() as u64 > most && is_script(blob)) {
        true => Err(Reject::ScriptTooLong),
        false => Ok(()),
    }
}

/// Nobody is believed because of a field in the request; only administrators may submit for others, and only root in a group that
/// the other is not in.
fn make_own(cluster: &Cluster, names: &Names, by: Caller, spec: &mut JobSpec) -> Result<(), Reject> {
    // Only the site itself has a say in these.
    (spec.admin_comment, spec.site_factor) = (String::new(), 0);
    let is_own = spec.uid == by.uid && spec.gid == by.gid;
    if !is_own && !authority::may_act_as_another(cluster, by, names) {
        (spec.uid, spec.gid) = (by.uid, by.gid);
    } else if !is_own && by.uid != 0 {
        let own = (spec.uid == by.uid).then_some(by.gid);
        spec.gid = accounts::vouched_gid(spec.uid, spec.gid).or(own).ok_or(Reject::NoSuchUser)?;
    }
    if !by.is_admin && spec.priority.is_some_and(|priority| priority > 0) {
        spec.priority = None;
    }
    spec.user = names.user(spec.uid);
    spec.group = names.group(spec.gid);
    Ok(())
}

/// Those of the user's groups that a rule of the cluster asks for.
pub fn groups(cluster: &Cluster, names: &Names, spec: &JobSpec) -> Vec<String> {
    let of_partitions = cluster.config().partitions.iter().flat_map(|partition| &partition.allow_groups);
    let of_reservations = cluster.reservations().flat_map(|reservation| &reservation.groups.names);
    let mut asked: Vec<&String> = of_partitions.chain(of_reservations).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    asked.sort_unstable();
    asked.dedup();
    let own = names.groups_of(&spec.user, spec.gid);
    asked.into_iter().filter(|group| own.contains(group)).cloned().collect()
}

/// More nodes than any of its partitions has: submitted, it would wait for them all the same.
fn wants_too_much(cluster: &Cluster, job: &model::Job) -> bool {
    let (least, _) = job.spec.size.node_bounds();
    let has = |name: &String| cluster.config().partition(name).map_or(0, |partition| partition.nodes.len() as u32);
    job.spec.partitions.iter().all(|name| has(name) < least)
}

/// Plays the submission through on a copy of the state and tells what the scheduler would do.
fn try_out(
    cluster: &Cluster,
    by: Caller,
    specs: Vec<JobSpec>,
    blobs: Vec<Blob>,
    at: model::Timestamp,
) -> Result<String, Reject> {
    let mut copy = cluster.clone();
    let entry = Entry { at, by, command: submission(specs, blobs) };
    let id = match state::apply(&mut copy, &entry).reply? {
        Reply::Submitted(id) => id,
        other => return Err(Reject::Internal(format!("{other:?}"))),
    };
    let plan = scheduler::plan(&copy);
    let components = copy.named(&id.into()).unwrap_or_default();
    let starts: Vec<&Start> = plan.starts.iter().filter(|start| components.contains(&start.job)).collect();
    let Some(first) = starts.first() else {
        if components.iter().any(|id| copy.job(*id).is_some_and(|job| wants_too_much(&copy, job))) {
            return Err(Reject::NeverFits);
        }
        return Ok(expected(&copy, id, &components, &plan));
    };
    let grants = || starts.iter().flat_map(|start| &start.nodes);
    let n_cpus: u32 = grants().map(|grant| grant.n_cpus).sum();
    let nodes = hostlist::compress(grants().map(|grant| &grant.node));
    Ok(to_start(id, at, n_cpus, &nodes, &first.partition))
}

/// When and where a job that has to wait would start: what `squeue --start` would show of it.
fn expected(cluster: &Cluster, id: JobId, components: &[JobId], plan: &Plan) -> String {
    let places = || plan.expected_starts.iter().filter(|place| components.contains(&place.job));
    let jobs = || components.iter().filter_map(|id| cluster.job(*id));
    let at = places().filter_map(|place| place.at).max();
    let Some(at) = at.filter(|_| places().filter(|place| place.at.is_some()).count() == components.len()) else {
        return format!("Job {id} would wait; no start time can be told yet");
    };
    let names: Vec<String> = places().flat_map(|place| hostlist::expand(&place.nodes).unwrap_or_default()).collect();
    let n_cpus = jobs().map(|job| job.asked().n_cpus).sum();
    // Of several partitions, the first that has these nodes.
    let has_all = |name: &&String| {
        let own = cluster.config().partition(name).map(|partition| &partition.nodes);
        own.is_some_and(|own| names.iter().all(|node| own.iter().any(|one| one.as_str() == node)))
    };
    let named = jobs().next().and_then(|job| job.spec.partitions.iter().find(has_all));
    let partition = named.map_or("", String::as_str);
    to_start(id, at, n_cpus, &hostlist::compress(names.iter().map(String::as_str)), partition)
}

fn to_start(id: JobId, at: model::Timestamp, n_cpus: u32, nodes: &str, partition: &str) -> String {
    let when = local_time(at);
    format!("Job {id} to start at {when} using {n_cpus} processors on nodes {nodes} in partition {partition}")
}

fn local_time(at: model::Timestamp) -> String {
    let moment = jiff::Timestamp::from_second(at.secs() as i64).unwrap_or_default();
    moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
