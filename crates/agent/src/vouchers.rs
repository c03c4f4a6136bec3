//! Which users other nodes may speak for here, as the controllers say: a node says anything, if somebody is root there.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tonic::Status;
use wire::proto::VouchRequest;

use crate::relay::Relay;

/// A user may have left the node since; steps that follow each other are not asked about again.
const BELIEVED_FOR: Duration = Duration::from_secs(30);
/// While no controller answers, what is believed stays so: running steps do not need one.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
const REMEMBERED_MAX: usize = 4096;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Voucher {
    node: String,
    uid: u32,
    /// The fingerprint of the node's certificate.
    shown: String,
    /// It is only about data.
    for_data: bool,
}

#[derive(Clone)]
pub struct Vouchers {
    relay: Relay,
    believed: Arc<Mutex<HashMap<Voucher, Instant>>>,
}

impl Vouchers {
    pub fn new(relay: Relay) -> Vouchers {
        Vouchers { relay, believed: Arc::default() }
    }

    pub async fn is_believed(&self, node: &str, uid: u32, shown: &str, for_data: bool) -> Result<bool, Status> {
        let voucher = Voucher { node: node.to_owned(), uid, shown: shown.to_owned(), for_data };
        let since = self.lock().get(&voucher).copied();
        if since.is_some_and(|since| since.elapsed() < BELIEVED_FOR) {
            return Ok(true);
        }
        let certificate = voucher.shown.clone();
        match self.relay.vouch(&VouchRequest { node: node.to_owned(), uid, for_data, certificate }).await {
            Ok(true) => {
                self.remember(voucher);
                Ok(true)
            }
            Ok(false) => {
                self.lock().remove(&voucher);
                Ok(false)
            }
            Err(_) if since.is_some_and(|since| since.elapsed() < REMEMBERED_FOR) => Ok(true),
            Err(status) => Err(Status::unavailable(format!("nobody says who may speak here: {}", status.message()))),
        }
    }

    fn remember(&self, voucher: Voucher) {
        let mut believed = self.lock();
        if believed.len() >= REMEMBERED_MAX {
            believed.retain(|_, since| since.elapsed() < BELIEVED_FOR);
        }
        if believed.len() < REMEMBERED_MAX {
            believed.insert(voucher, Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Voucher, Instant>> {
        self.believed.lock().expect("nobody panics with it")
    }
}
