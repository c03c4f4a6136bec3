//! Who belongs to the cluster: what was taken back begets nothing, and tokens of users end when they are to.
use model::config::NamedNode;
use model::node::NodeConfig;
use model::trust::{CertificateStanding, JoinToken, RecoveryIdentity, Role, TrustChange};
use model::{Command, Reject, Timestamp};
use state::{Cluster, rules};

use super::buffers::lab;
use super::lab::*;

const LATE: Timestamp = Timestamp(1_000_000_000_000);

fn trust(lab: &mut Lab, change: TrustChange) -> Result<(), Reject> {
    lab.apply(ROOT, Command::Trust(change)).map(|_| ())
}

fn found() -> TrustChange {
    let (ca_certificate, ca_key) = ("certificate".into(), "key".into());
    TrustChange::Found { ca_certificate, ca_key, fingerprint: "head".into(), until: LATE }
}

fn enroll(lab: &mut Lab, role: Role, fingerprint: &str) {
    let hash = format!("token of {fingerprint}");
    trust(lab, TrustChange::AddToken { hash: hash.clone(), token: JoinToken { until: LATE, role } }).unwrap();
    let node = NamedNode { name: "j1".into(), config: NodeConfig { cpus: 1, ..NodeConfig::default() } };
    let (node, fingerprint) = (Some(Box::new(node)), fingerprint.to_owned());
    trust(lab, TrustChange::Enroll { hash, role, member: 0, node, fingerprint, until: LATE }).unwrap();
}

fn renew(shown: &str, fingerprint: &str) -> TrustChange {
    let (shown, fingerprint) = (shown.to_owned(), fingerprint.to_owned());
    TrustChange::Renew { name: "node j1".into(), fingerprint, until: LATE, shown }
}

fn site(edition: u32) -> Lab {
    let mut site = Lab { cluster: Cluster::default(), secs: 1000 };
    site.ok(ROOT, Command::Reconfigure { config: lab().cluster.config().as_ref().clone().into() });
    site.ok(ROOT, Command::AdoptRules { edition });
    trust(&mut site, found()).unwrap();
    enroll(&mut site, Role::Node, "first");
    site
}

fn standing(site: &Lab, fingerprint: &str) -> CertificateStanding {
    site.cluster.trust().standing("node j1", fingerprint, site.cluster.now())
}

#[test]
fn renewal_after_a_removal_is_refused() {
    let mut site = site(rules::LATEST);
    trust(&mut site, renew("first", "second")).unwrap();
    assert_eq!(standing(&site, "second"), CertificateStanding::Stands);
    trust(&mut site, TrustChange::RemoveNode { node: "j1".into() }).unwrap();
    for shown in ["first", "second", "", "head", "never given"] {
        assert_eq!(trust(&mut site, renew(shown, "third")), Err(Reject::NotPermitted), "{shown}");
    }
    // Nor does one that was removed come back with the node that has its name now.
    enroll(&mut site, Role::Node, "anew");
    assert_eq!(trust(&mut site, renew("second", "third")), Err(Reject::NotPermitted));
    trust(&mut site, renew("anew", "third")).unwrap();
    let standings = ["first", "second", "third", "fourth"].map(|fingerprint| standing(&site, fingerprint));
    assert_eq!(
        standings,
        [
            CertificateStanding::TakenBack,
            CertificateStanding::TakenBack,
            CertificateStanding::Stands,
            CertificateStanding::Unknown
        ]
    );
    assert_eq!(
        site.cluster.trust().standing("node j2", "third", site.cluster.now()),
        CertificateStanding::TakenBack,
        "another name"
    );
}

#[test]
fn renewal_of_before_is_as_it_was() {
    let mut old = site(2);
    trust(&mut old, TrustChange::RemoveNode { node: "j1".into() }).unwrap();
    trust(&mut old, renew("", "second")).expect("as it was judged when it was written");
    assert_eq!(standing(&old, "unheard of"), CertificateStanding::Unknown);
    // Releases that did not ask may have given more than this state knows: its members are believed for a while.
    old.ok(ROOT, Command::AdoptRules { edition: 3 });
    assert_eq!(standing(&old, "unheard of"), CertificateStanding::Stands);
    assert_eq!(standing(&old, "first"), CertificateStanding::TakenBack);
    let is_over = old.cluster.now() + old.cluster.config().controller.certificate_lifetime;
    assert_eq!(old.cluster.trust().standing("node j1", "unheard of", is_over), CertificateStanding::Unknown);
}

#[test]
fn login_node_is_one_by_its_token_and_in_no_partition() {
    let mut site = site(rules::LATEST);
    let is_in_partition =
        |site: &Lab| site.cluster.config().partitions.iter().any(|partition| partition.nodes.contains(&"j1".into()));
    assert!(!site.cluster.is_login_node("j1") && is_in_partition(&site));
    trust(&mut site, TrustChange::RemoveNode { node: "j1".into() }).unwrap();
    enroll(&mut site, Role::Login, "login");
    assert!(site.cluster.is_login_node("j1") && !is_in_partition(&site));
    trust(&mut site, TrustChange::RemoveNode { node: "j1".into() }).unwrap();
    assert!(!site.cluster.is_login_node("j1"));
}

#[test]
fn user_tokens_end_by_user_and_by_key() {
    let mut site = site(rules::LATEST);
    let note =
        |issued_secs| TrustChange::NoteUserToken { user: "ada".into(), issued_secs, until_secs: issued_secs + 60 };
    trust(&mut site, TrustChange::KeepJwtKey { key: vec![1] }).unwrap();
    let now = site.cluster.now().secs();
    trust(&mut site, note(now + 5)).unwrap();
    trust(&mut site, TrustChange::RevokeUserTokens { user: "ada".into() }).unwrap();
    let known = site.cluster.trust().user_tokens["ada"].clone();
    assert!(known.revoked_secs >= now + 5, "also what was dated ahead: {known:?}");
    assert_eq!(known.n_issued, 0);
    trust(&mut site, TrustChange::RotateJwtKey { key: vec![2], old_until: Some(LATE) }).unwrap();
    assert_eq!((&site.cluster.trust().jwt_key, site.cluster.trust().old_jwt_keys.len()), (&vec![2], 1));
    trust(&mut site, TrustChange::RotateJwtKey { key: vec![3], old_until: None }).unwrap();
    assert_eq!((&site.cluster.trust().jwt_key, site.cluster.trust().old_jwt_keys.len()), (&vec![3], 0));
}

#[test]
fn certificates_are_told_by_name_and_with_an_early_end() {
    let mut site = site(rules::LATEST);
    let lifetime = site.cluster.config().controller.certificate_lifetime;
    trust(&mut site, renew("first", "second")).unwrap();
    let known = site.cluster.trust();
    assert_eq!(known.fingerprints("node j1", site.cluster.now()), ["first", "second"]);
    assert_eq!(known.of_controllers(lifetime), [("head", Timestamp(LATE.0 - lifetime.0 / 6))]);
    let recovery = RecoveryIdentity { fingerprint: "reserve".into(), ..RecoveryIdentity::default() };
    trust(&mut site, TrustChange::KeepRecovery { recovery: Box::new(recovery.clone()) }).unwrap();
    assert_eq!(site.cluster.trust().recovery, recovery);
    trust(&mut site, TrustChange::RemoveController { member: 1 }).unwrap();
    assert_eq!(site.cluster.trust().of_controllers(lifetime), []);
    // While others are believed too, nobody is told of some.
    let mut old = self::site(2);
    old.ok(ROOT, Command::AdoptRules { edition: 3 });
    assert!(old.cluster.trust().fingerprints("node j1", old.cluster.now()).is_empty());
}
