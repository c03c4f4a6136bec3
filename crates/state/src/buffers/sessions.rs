//! What DataWarp's infrastructure lists: buffers that it has and nobody here knows of are taken over, and those that it has lost go.
use std::sync::Arc;

use model::buffer::{PersistentPhase, Session};
use model::time::Span;
use model::{PersistentBuffer, Plugin, Reject, Reply};

use super::persistent;
use crate::Cluster;
use crate::on::Answer;

/// What is not listed this long is gone.
const MISSED_FOR: Span = Span::from_secs(60);

/// A list says something new; most do not, and are not worth an entry in the log.
pub fn is_news(cluster: &Cluster, sessions: &[Session]) -> bool {
    let Some(timeout) = timeout(cluster) else { return false };
    let adopts = sessions.iter().any(|session| is_strange(cluster, session, timeout));
    let is_listed = |buffer: &PersistentBuffer| sessions.iter().any(|session| session.token == buffer.name);
    let changes = |buffer: &PersistentBuffer| match (is_listed(buffer), buffer.missed_since) {
        (true, None) => false,
        (true, Some(_)) | (false, None) => true,
        (false, Some(since)) => since + MISSED_FOR <= cluster.now,
    };
    let stands = |buffer: &&Arc<PersistentBuffer>| buffer.phase == PersistentPhase::Ready;
    adopts || cluster.persistent.values().filter(stands).any(|buffer| changes(buffer))
}

/// Only where the infrastructure is asked: an emulation lists nothing.
fn timeout(cluster: &Cluster) -> Option<Span> {
    let config = cluster.config.burst_buffer.as_ref()?;
    let asks = config.plugin == Plugin::DataWarp && !config.emulates_cray;
    asks.then_some(config.other_timeout)
}

/// One that is just being made may be listed before we are told.
fn is_strange(cluster: &Cluster, session: &Session, timeout: Span) -> bool {
    let is_name = session.token.starts_with(|letter: char| letter.is_ascii_alphabetic());
    is_name
        && session.bytes > 0
        && session.created + timeout <= cluster.now
        && !cluster.persistent.contains_key(&session.token)
}

pub(crate) fn seen(cluster: &mut Cluster, sessions: &[Session]) -> Answer {
    let timeout = timeout(cluster).ok_or(Reject::Stale)?;
    if !is_news(cluster, sessions) {
        return Err(Reject::Stale);
    }
    let pool = cluster.config.burst_buffer.as_ref().and_then(|config| config.default_pool());
    let pool = pool.map(|pool| pool.name.clone()).unwrap_or_default();
    for session in sessions {
        if is_strange(cluster, session, timeout) {
            let buffer = PersistentBuffer {
                name: session.token.clone(),
                pool: pool.clone(),
                bytes: session.bytes,
                uid: session.uid,
                user: session.user.clone(),
                created: session.created,
                phase: PersistentPhase::Ready,
                plugin: Plugin::DataWarp,
                ..Default::default()
            };
            cluster.persistent.insert(session.token.clone(), Arc::new(buffer));
            persistent::moved(cluster, &session.token);
        }
    }
    let now = cluster.now;
    let ready = cluster.persistent.values().filter(|buffer| buffer.phase == PersistentPhase::Ready);
    let ready: Vec<Arc<PersistentBuffer>> = ready.cloned().collect();
    for known in ready {
        let is_listed = sessions.iter().any(|session| session.token == known.name);
        match (is_listed, known.missed_since) {
            (false, Some(since)) if since + MISSED_FOR <= now => persistent::remove(cluster, &known.name),
            (true, None) | (false, Some(_)) => (),
            (_, _) => {
                let buffer = cluster.persistent.get_mut(&known.name).map(Arc::make_mut).expect("just listed");
                buffer.missed_since = (!is_listed).then_some(now);
            }
        }
    }
    Ok(Reply::Ok)
}
