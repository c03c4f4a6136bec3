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
