//! Licences of licence servers: who may have them, how many are this cluster's, and what jobs do with them.
use model::accounts::{Change, ResourceEdit, ResourceFilter};
use model::{Caller, Command, Reject, license};

use crate::lab::{ALICE, Lab, ROOT, batch};

const OWN: &str = "spur";

fn tell(lab: &mut Lab, by: Caller, change: Change) -> Result<(), Reject> {
    let by_name = if by == ROOT { "root" } else { "alice" };
    lab.apply(by, Command::ChangeAccounts { change: Box::new(change), by_name: by_name.into() }).map(drop)
}

fn add(count: u32, percent: u16, clusters: &[&str]) -> Change {
    Change::AddResources {
        names: vec!["matlab".into()],
        server: "flex".into(),
        edit: ResourceEdit { count: Some(count), percent: Some(percent), ..ResourceEdit::default() },
        clusters: clusters.iter().map(|name| name.to_string()).collect(),
    }
}

fn filter(clusters: &[&str]) -> ResourceFilter {
    let clusters = clusters.iter().map(|name| name.to_string()).collect();
    ResourceFilter { names: ["matlab".to_string()].into(), clusters, ..ResourceFilter::default() }
}

fn count(number: u32) -> Change {
    let edit = ResourceEdit { count: Some(number), ..ResourceEdit::default() };
    Change::ModifyResources { filter: filter(&[]), edit }
}

fn percent(number: u16, clusters: &[&str]) -> Change {
    let edit = ResourceEdit { percent: Some(number), ..ResourceEdit::default() };
    Change::ModifyResources { filter: filter(clusters), edit }
}

/// (name, total, used, whether it is a server's)
fn licenses(lab: &Lab) -> Vec<(String, u32, u32, bool)> {
    lab.cluster.licenses().into_iter().map(|one| (one.name, one.total, one.used, one.is_remote)).collect()
}

#[test]
fn a_cluster_may_use_its_part_of_a_servers_licences() {
    let mut lab = Lab::new();
    tell(&mut lab, ROOT, add(7, 50, &[OWN])).unwrap();
    assert_eq!(licenses(&lab), [("matlab@flex".into(), 3, 0, true)]);

    let wants = |text: &str| {
        let mut spec = batch();
        spec.licenses = license::parse(text).unwrap();
        spec
    };
    let job = lab.running(wants("matlab@flex:2"), "n1");
    assert_eq!(licenses(&lab), [("matlab@flex".into(), 3, 2, true)]);
    for too_much in ["matlab@flex:4", "matlab", "matlab@other"] {
        let refused = lab.apply(ALICE, Command::Submit { spec: Box::new(wants(too_much)), blobs: Default::default() });
        assert_eq!(refused, Err(Reject::BadLicenses), "{too_much}");
    }
    // Whoever holds some keeps them when there are fewer, or none.
    tell(&mut lab, ROOT, count(2)).unwrap();
    assert_eq!(licenses(&lab), [("matlab@flex".into(), 1, 2, true)]);
    tell(&mut lab, ROOT, Change::DeleteResources { filter: filter(&[]) }).unwrap();
    assert_eq!(licenses(&lab), []);
    lab.exit(job, model::ExitStatus::exited(0)).unwrap();
}

#[test]
fn no_more_than_the_whole_is_given_out() {
    let mut lab = Lab::new();
    let others = Change::AddClusters { names: vec!["far".into()], edits: Vec::new() };
    tell(&mut lab, ROOT, others).unwrap();
    let refused = |why: &str| Err(Reject::Accounts(why.into()));
    let too_much = "You can not allocate more than 100% of a resource";
    assert_eq!(tell(&mut lab, ROOT, add(10, 51, &[OWN, "far"])), refused(too_much));
    tell(&mut lab, ROOT, add(10, 50, &[OWN, "far"])).unwrap();
    assert_eq!(tell(&mut lab, ROOT, add(10, 50, &[OWN, "far"])), refused("Nothing new added"));
    assert_eq!(tell(&mut lab, ROOT, percent(51, &["far"])), refused(too_much));
    tell(&mut lab, ROOT, percent(20, &["far"])).unwrap();
    tell(&mut lab, ROOT, percent(80, &[OWN])).unwrap();
    assert_eq!(licenses(&lab), [("matlab@flex".into(), 8, 0, true)]);
    // One cluster's part goes; the other's stays, as does a cluster's that is gone itself.
    let part = Change::DeleteResources { filter: filter(&[OWN]) };
    tell(&mut lab, ROOT, part).unwrap();
    assert_eq!(licenses(&lab), []);
    assert_eq!(lab.cluster.accounts().resource("matlab", "flex").unwrap().allocated(), 20);
    tell(&mut lab, ROOT, Change::DeleteClusters { names: vec!["far".into()] }).unwrap();
    assert_eq!(lab.cluster.accounts().resource("matlab", "flex").unwrap().allocated(), 0);
    for change in [percent(5, &[]), add(1, 1, &["nowhere"]), percent(5, &["nowhere"])] {
        assert!(tell(&mut lab, ROOT, change).is_err());
    }
}

#[test]
fn the_file_goes_before_the_accounts() {
    let mut lab = Lab::new();
    let mut config = crate::lab::config();
    config.licenses = license::parse_list("matlab@flex:5,own:1").unwrap();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    tell(&mut lab, ROOT, add(100, 100, &[OWN])).unwrap();
    assert_eq!(licenses(&lab), [("matlab@flex".into(), 5, 0, false), ("own".into(), 1, 0, false)]);
    assert_eq!(tell(&mut lab, ALICE, count(3)), Err(Reject::NotPermitted));
}
