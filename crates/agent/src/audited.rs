//! What this agent was asked for and what it refused, at its socket and from other machines: in `SPOOL/audit`, as controllers keep it.
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use audit::{AuditBook, shortened};
use model::audit::AuditRecord;
use tonic::codegen::http::Extensions;
use wire::accounts;
use wire::origin::{From, Origin};
use wire::peer::Peer;
use wire::tls::listen::Caller;

const NAME_REMEMBERED: Duration = Duration::from_secs(60);
const NAMES_MAX: usize = 1024;
/// Calls for agents, as the contract names them.
const AGENT_CALLS: [&str; 3] = ["Attach", "Ask", "Mirror"];

#[derive(Clone)]
pub struct AgentAudit {
    book: AuditBook,
    names: Arc<Mutex<HashMap<u32, (Instant, String)>>>,
}

/// Who calls, from where, and what.
#[derive(Clone, Debug)]
pub struct AuditedCaller {
    pub user: Option<Peer>,
    from: String,
    call: &'static str,
}

impl AuditedCaller {
    pub fn of(extensions: &Extensions, user: Option<Peer>, path: &str) -> AuditedCaller {
        // What a caller makes up is no call.
        let call = AGENT_CALLS.into_iter().find(|call| path.rsplit('/').next() == Some(call)).unwrap_or("unknown");
        let from = match (extensions.get::<Origin>(), extensions.get::<Caller>()) {
            (Some(Origin { from: From::Stranger, .. }) | None, Some(caller)) if caller.principal.is_none() => {
                format!("stranger {}", caller.address)
            }
            (Some(origin), _) => origin.place(),
            (None, _) => "local".into(),
        };
        AuditedCaller { user, from, call }
    }
}

impl AgentAudit {
    pub fn open(spool_dir: &Path) -> io::Result<AgentAudit> {
        Ok(AgentAudit { book: AuditBook::open(&spool_dir.join("audit"))?, names: Arc::default() })
    }

    pub fn allowed(&self, caller: &AuditedCaller, about: &str) {
        self.write(caller, about, String::new());
    }

    pub fn refused(&self, caller: &AuditedCaller, about: &str, why: &str) {
        self.write(caller, about, if why.is_empty() { "refused".into() } else { shortened(why) });
    }

    fn write(&self, caller: &AuditedCaller, about: &str, refused: String) {
        let uid = caller.user.map(|user| user.uid);
        self.book.write(AuditRecord {
            uid,
            user: uid.map(|uid| self.name(uid)).unwrap_or_default(),
            from: caller.from.clone(),
            call: caller.call.into(),
            about: shortened(about),
            refused,
            ..AuditRecord::default()
        });
    }

    fn name(&self, uid: u32) -> String {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, name)) = names.get(&uid)
            && since.elapsed() < NAME_REMEMBERED
        {
            return name.clone();
        }
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        let name = accounts::user_name(uid).unwrap_or_else(|| uid.to_string());
        names.insert(uid, (Instant::now(), name.clone()));
        name
    }
}
