//! Machines join and leave: tokens are used up, certificates are known and taken back, nodes come and go with them.
use std::sync::Arc;

use model::config::{Config, NamedNode};
use model::trust::{
    Certificate, CertificateStanding, OldJwtKey, Role, Trust, TrustChange, UserTokens, controller_label, node_label,
};
use model::{Caller, NodeName, Reject, Reply, Timestamp};

use super::{Answer, config, node};
use crate::Cluster;

pub(crate) fn change(cluster: &mut Cluster, by: Caller, change: &TrustChange) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    let now = cluster.now;
    match change {
        TrustChange::Found { ca_certificate, ca_key, fingerprint, until } => {
            let trust = trust_mut(cluster);
            if trust.ca_key.is_empty() {
                (trust.ca_certificate, trust.ca_key) = (ca_certificate.clone(), ca_key.clone());
                trust.last_member = 1;
                give(trust, controller_label(1), fingerprint, *until, now);
            }
        }
        TrustChange::KeepJwtKey { key } => {
            let trust = trust_mut(cluster);
            if trust.jwt_key.is_empty() {
                trust.jwt_key.clone_from(key);
            }
        }
        TrustChange::AddToken { hash, token } => {
            let trust = trust_mut(cluster);
            trust.tokens.retain(|_, token| token.until > now);
            trust.tokens.insert(hash.clone(), token.clone());
        }
        TrustChange::Enroll { hash, role, member, node, fingerprint, until } => {
            let token = cluster.trust.tokens.get(hash).filter(|token| token.until > now && token.role == *role);
            if token.is_none() {
                return Err(Reject::InvalidValue(
                    "the join token: it was used, has expired, or is for something else".into(),
                ));
            }
            let label = match (role, node) {
                (Role::Node | Role::Login, Some(node)) => node_label(node.name.as_str()),
                (Role::Controller, _) if *member > cluster.trust.last_member => controller_label(*member),
                _ => return Err(Reject::Stale),
            };
            let is_there = |node: &NamedNode| cluster.nodes.get(&node.name).is_some_and(|known| known.answers);
            if let Some(node) = node.as_ref().filter(|node| is_there(node)) {
                let why =
                    format!("a node {0} is part of the cluster and answers: `spur node remove {0}` first", node.name);
                return Err(Reject::InvalidValue(why));
            }
            let trust = trust_mut(cluster);
            trust.tokens.remove(hash);
            // A machine that was lost and has come anew: what it had before is worth nothing any more.
            revoke(trust, &label);
            trust.last_member = trust.last_member.max(*member);
            give(trust, label, fingerprint, *until, now);
            if let Some(node) = node {
                match role {
                    Role::Login => drop(trust.logins.insert(node.name.to_string())),
                    Role::Node | Role::Controller => drop(trust.logins.remove(node.name.as_str())),
                }
                add_nodes(cluster, std::slice::from_ref(node));
            }
        }
        TrustChange::Renew { name, fingerprint, until, shown } => {
            // What was taken back while the renewal was under way begets nothing.
            if cluster.rules() >= 3 && !may_renew(&cluster.trust, name, shown, now) {
                return Err(Reject::NotPermitted);
            }
            give(trust_mut(cluster), name.clone(), fingerprint, *until, now)
        }
        TrustChange::Lead { member, fingerprint, until } => {
            if cluster.trust.is_revoked(fingerprint) {
                return Err(Reject::NotPermitted);
            }
            give(trust_mut(cluster), controller_label(*member), fingerprint, *until, now)
        }
        TrustChange::RotateJwtKey { key, old_until } => {
            let trust = trust_mut(cluster);
            let old = std::mem::replace(&mut trust.jwt_key, key.clone());
            trust.old_jwt_keys.retain(|old| old.until > now);
            match old_until {
                Some(until) if !old.is_empty() => trust.old_jwt_keys.push(OldJwtKey { key: old, until: *until }),
                Some(_) => (),
                None => trust.old_jwt_keys.clear(),
            }
        }
        TrustChange::NoteUserToken { user, issued_secs, until_secs } => {
            let trust = trust_mut(cluster);
            trust.user_tokens.retain(|_, known| known.revoked_secs > 0 || known.until_secs > now.secs());
            let known = trust.user_tokens.entry(user.clone()).or_default();
            known.n_issued = known.n_issued.saturating_add(1);
            known.last_issued_secs = known.last_issued_secs.max(*issued_secs);
            known.until_secs = known.until_secs.max(*until_secs);
        }
        TrustChange::RevokeUserTokens { user } => {
            // A token may have been dated ahead, past an earlier revocation.
            let tokens = &mut trust_mut(cluster).user_tokens;
            let last = tokens.get(user).map_or(0, |known| known.last_issued_secs);
            let revoked_secs = now.secs().max(last);
            tokens.insert(user.clone(), UserTokens { revoked_secs, ..UserTokens::default() });
        }
        TrustChange::RemoveNode { node } => return remove_node(cluster, node),
        TrustChange::RemoveController { member } => revoke(trust_mut(cluster), &controller_label(*member)),
        TrustChange::KeepRecovery { recovery } => trust_mut(cluster).recovery = (**recovery).clone(),
    }
    Ok(Reply::Ok)
}

fn may_renew(trust: &Trust, label: &str, shown: &str, now: Timestamp) -> bool {
    match shown {
        "" => trust.has_member(label),
        shown => trust.standing(label, shown, now) == CertificateStanding::Stands,
    }
}

/// Certificates that this state does not know may be in use: it came from a backup, or from releases that restored backups.
pub(crate) fn be_lenient(cluster: &mut Cluster) {
    if !cluster.trust.ca_key.is_empty() {
        let until = cluster.now + cluster.config.controller.certificate_lifetime;
        trust_mut(cluster).lenient_until = until;
    }
}

fn trust_mut(cluster: &mut Cluster) -> &mut Trust {
    Arc::make_mut(&mut cluster.trust)
}

fn give(trust: &mut Trust, name: String, fingerprint: &str, until: Timestamp, now: Timestamp) {
    trust.certificates.retain(|_, certificate| certificate.until > now);
    trust.revoked.retain(|_, until| *until > now);
    trust.certificates.insert(fingerprint.to_owned(), Certificate { name, until });
}

fn revoke(trust: &mut Trust, name: &str) {
    let gone: Vec<String> = trust
        .certificates
        .iter()
        .filter(|(_, one)| one.name == name)
        .map(|(fingerprint, _)| fingerprint.clone())
        .collect();
    for fingerprint in gone {
        if let Some(certificate) = trust.certificates.remove(&fingerprint) {
            trust.revoked.insert(fingerprint, certificate.until);
        }
    }
}

/// Nodes that the file does not name are the cluster's all the same.
pub(super) fn add_nodes(cluster: &mut Cluster, nodes: &[NamedNode]) {
    let is_configured = |name: &NodeName| cluster.file_config.nodes.iter().any(|node| node.name == *name);
    let new: Vec<&NamedNode> = nodes.iter().filter(|node| !is_configured(&node.name)).collect();
    if !new.is_empty() {
        new.into_iter().for_each(|node| drop(cluster.joined.insert(node.name.clone(), node.config.clone())));
        renew_config(cluster);
    }
}

fn remove_node(cluster: &mut Cluster, name: &NodeName) -> Answer {
    let Some(node) = cluster.nodes.get(name) else { return Err(Reject::NoSuchNode(name.to_string())) };
    if !node.jobs.is_empty() {
        return Err(Reject::NodesBusy(name.to_string()));
    }
    take_nodes(cluster, std::slice::from_ref(name));
    Ok(Reply::Ok)
}

/// Their certificates are worth nothing any more, and those that no file names are gone.
pub(super) fn take_nodes(cluster: &mut Cluster, names: &[NodeName]) {
    let mut has_joined = false;
    for name in names {
        let trust = trust_mut(cluster);
        revoke(trust, &node_label(name.as_str()));
        trust.logins.remove(name.as_str());
        has_joined |= cluster.joined.remove(name).is_some();
    }
    if has_joined {
        renew_config(cluster);
    }
}

fn renew_config(cluster: &mut Cluster) {
    let mut effective = (*cluster.config).clone();
    let from_file = |name: &NodeName| cluster.file_config.nodes.iter().any(|node| node.name == *name);
    effective.nodes.retain(|node| from_file(&node.name));
    for partition in &mut effective.partitions {
        partition.nodes.retain(|name| from_file(name) || cluster.joined.contains_key(name));
    }
    let effective = with_joined(cluster, effective);
    config::adopt(cluster, effective);
    node::configure(cluster);
}

/// The nodes that have joined are part of every configuration; they are in the partitions of all nodes, or in the usual one, but
/// for login nodes. Each hands out what the cluster does.
pub(crate) fn with_joined(cluster: &Cluster, mut config: Config) -> Config {
    let has_all = config.partitions.iter().any(|partition| partition.nodes_text == "ALL");
    for (name, node) in &cluster.joined {
        if config.nodes.iter().any(|known| known.name == *name) {
            continue;
        }
        config.nodes.push(NamedNode { name: name.clone(), config: node.clone() });
        if cluster.trust.logins.contains(name.as_str()) {
            continue;
        }
        for partition in &mut config.partitions {
            let takes = if has_all { partition.nodes_text == "ALL" } else { partition.is_default };
            if takes && !partition.nodes.contains(name) {
                partition.nodes.push(name.clone());
            }
        }
    }
    let what = config.scheduler.hand_out;
    config.nodes.iter_mut().for_each(|node| node.config.hand_out(what));
    config
}
