//! Entries are judged by the rules that count when they are read, whichever release reads them.
use model::{Command, Reject};
use state::{Cluster, rules};

use super::buffers::{file, lab, with_bb};
use super::lab::*;

/// Taken before edition 1, and refused since.
fn component_without_nodes() -> Command {
    let mut spec = file("#BB create_persistent name=x capacity=1");
    spec.size.max_nodes = Some(0);
    spec.component = Some(0);
    Command::Submit { spec: Box::new(spec), blobs: Vec::new() }
}

#[test]
fn a_rule_counts_from_the_edition_that_brought_it() {
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: lab().cluster.config().as_ref().clone().into() });
    assert_eq!(old.cluster.rules(), 0, "a log begins with none");
    old.apply(ALICE, component_without_nodes()).expect("as it was judged when it was written");
    old.ok(ROOT, Command::AdoptRules { edition: rules::LATEST });
    assert_eq!(old.apply(ALICE, component_without_nodes()), Err(Reject::TooManyNodes));
    old.ok(ROOT, Command::AdoptRules { edition: 0 });
    assert_eq!(old.cluster.rules(), rules::LATEST, "rules never go back");
    assert_eq!(old.apply(ALICE, component_without_nodes()), Err(Reject::TooManyNodes));
}

#[test]
fn what_asked_twice_for_space_was_given_the_sum() {
    let twice = || Command::Submit { spec: Box::new(with_bb("capacity=1G capacity=2G")), blobs: Vec::new() };
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: lab().cluster.config().as_ref().clone().into() });
    old.apply(ALICE, twice()).expect("as it was judged when it was written");
    old.ok(ROOT, Command::AdoptRules { edition: rules::LATEST });
    let refused = old.apply(ALICE, twice()).expect_err("which of them is meant?");
    let marked = "capacity= is said twice\n  capacity=1G capacity=2G\n              ^^^^^^^^^^^";
    assert_eq!(refused.details(), format!("burst_buffer/native: {marked}"));
}

#[test]
fn reservations_of_before_may_contradict_themselves() {
    use model::reservation::{Flag, Members};
    use model::reservation_field::{Field, MembersChange};
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: Lab::new().cluster.config().as_ref().clone().into() });
    let start = old.cluster.now();
    let create = |name: &str| Command::CreateReservation {
        name: name.into(),
        fields: vec![
            Field::Start(start),
            Field::Duration(Some(model::time::Span::from_secs(3600))),
            Field::Users(MembersChange::To(Members { names: vec!["alice".into()], are_excluded: false })),
            Field::Nodes(model::partition_field::NodesChange::To(vec!["n1".into()])),
            Field::Flags(vec![Flag::Maint, Flag::ReplaceDown]),
        ],
        utc_offset_secs: 0,
    };
    old.apply(ROOT, create("before")).expect("as it was judged when it was written");
    old.ok(ROOT, Command::AdoptRules { edition: rules::LATEST });
    assert_eq!(old.apply(ROOT, create("since")), Err(Reject::BadReservation));
}

#[test]
fn steps_of_before_are_laid_out_as_their_job_was() {
    use model::plan::{Grant, Start};
    use model::spec::{JobSpec, Sharing, Size};
    use model::{Plan, StepSpec, Task};
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: Box::new(config()) });
    ["n1", "n2"].into_iter().for_each(|name| old.register(name, &[]));
    let size = Size { min_nodes: 2, n_tasks: Some(4), sharing: Sharing::WholeNodes, ..Default::default() };
    let job = old.submit(JobSpec { size, ..batch() });
    let grant = |name: &str| Grant { node: name.into(), n_cpus: 4, n_tasks: 2, ..Default::default() };
    let nodes = ["n1", "n2"].map(grant).to_vec();
    let start = Start { job, partition: "debug".into(), nodes, is_exclusive: true, ..Default::default() };
    old.ok(ROOT, Command::AdoptPlan(Plan { starts: vec![start], ..Default::default() }));
    old.done(job, Task::Launch);
    let mut laid_out = |edition| {
        old.ok(ROOT, Command::AdoptRules { edition });
        let spec = StepSpec { min_nodes: 2, n_tasks: Some(4), packs: true, overlaps: true, ..Default::default() };
        old.ok(ALICE, Command::CreateStep { job, spec: Box::new(spec), blobs: Vec::new() });
        let step = old.cluster.steps_of(job).last().expect("just created");
        step.shares.iter().map(|share| share.n_tasks).collect::<Vec<_>>()
    };
    assert_eq!(laid_out(1), [2, 2]);
    assert_eq!(laid_out(rules::LATEST), [3, 1]);
}

#[test]
fn empty_change_of_a_stranger_makes_no_accounts() {
    use model::accounts::Change;
    let empty =
        || Command::ChangeAccounts { change: Box::new(Change::Several(Vec::new())), by_name: "mallory".to_owned() };
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ALICE, empty());
    assert!(!old.cluster.accounts().are_unused(), "as it was judged when it was written");
    let mut lab = Lab::new();
    lab.ok(ALICE, empty());
    assert!(lab.cluster.accounts().are_unused());
}

#[test]
fn forged_content_of_before_is_discarded_and_its_jobs_held() {
    use model::command::Blob;
    use model::{HeldBy, JobKind, JobSpec, Reply};
    let (genuine, other) = (Blob::of(b"#!/bin/sh\ntrue\n".to_vec()), Blob::of(b"#!/bin/sh\nid\n".to_vec()));
    let forged = Blob { content: b"#!/bin/sh\nevil\n".to_vec(), ..other };
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: Lab::new().cluster.config().as_ref().clone().into() });
    let mut submit = |blob: &Blob| {
        let spec = Box::new(JobSpec { kind: JobKind::Batch { script: blob.id }, ..batch() });
        match old.ok(ALICE, Command::Submit { spec, blobs: vec![blob.clone()] }) {
            Reply::Submitted(id) => id,
            other => panic!("{other:?}"),
        }
    };
    let (fine, evil) = (submit(&genuine), submit(&forged));
    old.ok(ROOT, Command::AdoptRules { edition: 3 });
    assert_eq!(old.cluster.blob(genuine.id).map(|content| content.to_vec()), Some(genuine.content));
    assert_eq!(old.cluster.blob(forged.id).map(|content| content.len()), Some(0));
    assert_eq!(old.job(fine).held, None);
    assert_eq!(old.job(evil).held, Some(HeldBy::Admin));
    assert!(old.job(evil).admin_comment.contains("not what its id says"));
    old.each(ALICE, Command::Release { jobs: vec![evil.into()] }).unwrap_err();
}
