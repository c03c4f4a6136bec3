//! Who holds how many connections of this daemon, and what is under way on them. The only one that lets connections in.
//!
//! ```text
//! accept ─▶ admit(owner) ─▶ ConnectionSlot (with the socket) ─▶ ConnectionState (with each call): calls and bytes under way
//!               │ full: the idle connection of that owner, or of the greediest, that has rested longest is closed
//! ```
//! A connection with a call under way is never closed here: `sbatch --wait` may wait for weeks.
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tonic::Status;
use tonic::codegen::http::Request;

use crate::open_files;
use crate::origin;
use crate::unread_answers::{AnswerPayer, UnreadAccount, UnreadFrames, Within};

/// A connection that has made no call by then says nothing any more.
const SILENT_MAX: Duration = Duration::from_secs(20);
/// Strangers come to join, or with a token, for one call.
const STRANGER_IDLE_MAX: Duration = Duration::from_secs(20);
/// A stranger without a token has joined by then, or never will.
const STRANGER_LIFE_MAX: Duration = Duration::from_secs(90);
const USER_IDLE_MAX: Duration = Duration::from_secs(600);
const SWEEP: Duration = Duration::from_secs(5);
/// Connections that were closed here, and whose ends have not noticed yet.
const CLOSING_MAX: usize = 64;
/// Refusals are logged so often.
const LOG_AGAIN: Duration = Duration::from_secs(10);
/// Calls under way on one connection of a member, which carries those of many users; one user has a quarter of them.
pub(crate) const STREAMS_MAX: u32 = 16_384;
/// Streams of steps, and what else agents are asked.
const AGENT_CALLS: &str = "/spur.v1.Agent/";
/// Bytes under way are counted in pieces of this size.
pub(crate) const BUDGET_UNIT: usize = 1024;

/// Who pays for a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionOwner {
    /// Root of this machine, the user that this daemon runs as, or a controller.
    Own,
    User(u32),
    /// By certificate.
    Node(String),
    /// Without a certificate: its address, or its network if that is IPv6.
    Stranger(IpAddr),
}

impl ConnectionOwner {
    pub fn of_uid(uid: u32) -> ConnectionOwner {
        // SAFETY: geteuid cannot fail.
        match uid == 0 || uid == unsafe { libc::geteuid() } {
            true => ConnectionOwner::Own,
            false => ConnectionOwner::User(uid),
        }
    }

    pub fn of_stranger(address: IpAddr) -> ConnectionOwner {
        ConnectionOwner::Stranger(neighbourhood(address))
    }

    fn is_stranger(&self) -> bool {
        matches!(self, ConnectionOwner::Stranger(_))
    }

    /// The cluster itself, which may have many calls under way on few connections.
    pub fn is_member(&self) -> bool {
        matches!(self, ConnectionOwner::Own | ConnectionOwner::Node(_))
    }
}

impl fmt::Display for ConnectionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionOwner::Own => f.write_str("this cluster"),
            ConnectionOwner::User(uid) => write!(f, "user {uid}"),
            ConnectionOwner::Node(name) => write!(f, "node {name}"),
            ConnectionOwner::Stranger(address) => write!(f, "{address}"),
        }
    }
}

/// A whole network of IPv6 is one machine's to use.
pub(crate) fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

/// Who pays for the bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesPayer {
    Owner,
    /// A user in whose name the owner speaks: users of a node never use up what its agent needs.
    User,
    /// As `User`, of a call that goes on to another daemon, where this user is one of many.
    PassedOn,
}

/// How much of what an owner may have at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnerLimits {
    n_connections: usize,
    n_calls: usize,
    n_bytes: usize,
    n_unread_bytes: usize,
}

/// What a daemon gives out in all.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    n_all: usize,
}

impl ConnectionLimits {
    /// By what the system lets this process have, which is taken.
    pub fn of_process() -> ConnectionLimits {
        ConnectionLimits { n_all: open_files::for_connections(open_files::raise_limit()) }
    }

    /// Connections whose other end is not known yet come from the same files.
    pub fn n_handshakes(&self) -> usize {
        (self.n_all / 8).min(1024)
    }

    /// The last of them are the cluster's own, and strangers have a share of their own.
    fn n_connections(&self, owner: &ConnectionOwner) -> usize {
        let n_known = self.n_all - self.n_handshakes() - self.n_strangers();
        match owner {
            ConnectionOwner::Own => n_known,
            ConnectionOwner::Node(_) => n_known - n_known / 8,
            ConnectionOwner::User(_) => n_known - n_known / 4,
            ConnectionOwner::Stranger(_) => self.n_strangers(),
        }
    }

    fn n_strangers(&self) -> usize {
        self.n_all / 8
    }

    fn of(&self, owner: &ConnectionOwner) -> OwnerLimits {
        let (n_connections, n_calls, n_bytes, n_unread_bytes) = match owner {
            ConnectionOwner::Own => (usize::MAX, usize::MAX, Semaphore::MAX_PERMITS, usize::MAX),
            // Its agent's stream, and what its commands say: a few connections carry all.
            ConnectionOwner::Node(_) => (16, STREAMS_MAX as usize, 64 << 20, 64 << 20),
            ConnectionOwner::User(_) => {
                ((self.n_all / 4).min(4096), STREAMS_MAX as usize / 4, 64 << 20, USER_UNREAD_BYTES)
            }
            ConnectionOwner::Stranger(_) => ((self.n_all / 32).clamp(4, 1024), 1024, 1 << 20, 1 << 20),
        };
        OwnerLimits { n_connections, n_calls, n_bytes, n_unread_bytes }
    }
}

/// Of answers to one user, whatever way its calls have come.
const USER_UNREAD_BYTES: usize = 32 << 20;
/// Of answers to all who are not the cluster itself; whoever has nothing unread gets a page all the same.
const ALL_UNREAD_BYTES: usize = 256 << 20;

/// Bytes of requests under way, of all who are not the cluster itself.
const ALL_BYTES: usize = 512 << 20;
/// Of all users in whose names one node speaks. Its agent gives each of them an eighth.
const NODE_USERS_BYTES: usize = 128 << 20;
/// Of one owner whose calls are passed on.
const PASSED_ON_BYTES: usize = 16 << 20;

#[derive(Clone)]
pub struct ConnectionTable(Arc<Shared>);

struct Shared {
    limits: ConnectionLimits,
    begun: Instant,
    open: Mutex<OpenConnections>,
    bytes: Arc<Semaphore>,
    unread: Arc<UnreadAccount>,
    passed_on: Arc<PassedOnAccounts>,
}

/// What users have unread whose calls a member passes on.
type PassedOnAccounts = Mutex<HashMap<(ConnectionOwner, u32), Weak<UnreadAccount>>>;

#[derive(Default)]
struct OpenConnections {
    next: u64,
    /// Of members and users.
    n_open: usize,
    n_strangers: usize,
    /// Closed here, but not yet gone.
    n_closing: usize,
    owners: HashMap<ConnectionOwner, OwnerConnections>,
    refused: Option<(Instant, u64)>,
}

struct OwnerConnections {
    account: Arc<OwnerAccount>,
    open: BTreeMap<u64, Arc<ConnectionState>>,
}

/// What one owner has under way.
struct OwnerAccount {
    limits: OwnerLimits,
    n_calls: AtomicUsize,
    bytes: Arc<Semaphore>,
    unread: Arc<UnreadAccount>,
    bytes_of_users: Arc<Semaphore>,
    bytes_passed_on: Arc<Semaphore>,
}

impl OwnerAccount {
    fn new(limits: OwnerLimits, unread: Arc<UnreadAccount>) -> OwnerAccount {
        let budget = |n_bytes: usize| Arc::new(Semaphore::new(n_bytes / BUDGET_UNIT));
        OwnerAccount {
            limits,
            n_calls: AtomicUsize::new(0),
            bytes: budget(limits.n_bytes),
            bytes_of_users: budget(NODE_USERS_BYTES),
            bytes_passed_on: budget(PASSED_ON_BYTES),
            unread,
        }
    }

    fn budget(&self, owner: &ConnectionOwner, payer: BytesPayer) -> (Arc<Semaphore>, usize) {
        match (owner, payer) {
            (ConnectionOwner::Node(_), BytesPayer::User | BytesPayer::PassedOn) => {
                (self.bytes_of_users.clone(), NODE_USERS_BYTES / BUDGET_UNIT)
            }
            (ConnectionOwner::User(_), BytesPayer::PassedOn) => {
                (self.bytes_passed_on.clone(), PASSED_ON_BYTES / BUDGET_UNIT)
            }
            _ => (self.bytes.clone(), self.limits.n_bytes / BUDGET_UNIT),
        }
    }
}

/// A connection as its calls know it.
pub struct ConnectionState {
    owner: ConnectionOwner,
    account: Arc<OwnerAccount>,
    all_bytes: Arc<Semaphore>,
    passed_on: Arc<PassedOnAccounts>,
    frames: Arc<UnreadFrames>,
    fd: RawFd,
    begun: Instant,
    n_calls: AtomicUsize,
    has_called: AtomicBool,
    /// A user's token came with a call: this is no stranger, though nobody knows the machine.
    has_token: AtomicBool,
    /// In milliseconds of the table's time.
    open_since: u64,
    /// Since when no call is under way, in milliseconds of the table's time.
    idle_since: AtomicU64,
}

/// Why a connection was not let in.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    Owner(ConnectionOwner, usize),
    All,
}

impl fmt::Display for ConnectionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionRefusal::Owner(owner, most) => {
                write!(f, "{owner} has {most} connections in use: no more are taken before one ends")
            }
            ConnectionRefusal::All => f.write_str("too many connections are in use: try again later"),
        }
    }
}

/// An open connection. Goes before its socket does, so that the table never closes another one's.
pub struct ConnectionSlot {
    table: Arc<Shared>,
    number: u64,
    state: Arc<ConnectionState>,
}

/// A call under way.
pub struct CallUnderWay(Arc<ConnectionState>);

impl ConnectionTable {
    /// In an event loop: connections that are idle for too long are closed now and then.
    pub fn new(limits: ConnectionLimits) -> ConnectionTable {
        let bytes = Arc::new(Semaphore::new(ALL_BYTES / BUDGET_UNIT));
        let unread = UnreadAccount::new(ALL_UNREAD_BYTES, Within::Alone);
        let (begun, open, passed_on) = (Instant::now(), Mutex::default(), Arc::default());
        let shared = Arc::new(Shared { limits, begun, open, bytes, unread, passed_on });
        tokio::spawn(sweep(Arc::downgrade(&shared)));
        ConnectionTable(shared)
    }

    pub fn limits(&self) -> ConnectionLimits {
        self.0.limits
    }

    /// Lets a connection in, if need be in the place of one that is idle.
    pub fn admit(&self, owner: ConnectionOwner, socket: &impl AsRawFd) -> Result<ConnectionSlot, ConnectionRefusal> {
        let shared = &self.0;
        let limits = shared.limits.of(&owner);
        let mut open = shared.lock();
        let n_own = open.n_of(&owner);
        if n_own >= limits.n_connections && !(open.has_room_to_close() && open.close_idle(&owner)) {
            let refusal = ConnectionRefusal::Owner(owner, limits.n_connections);
            open.note_refusal(&refusal);
            return Err(refusal);
        }
        if *open.n_alike(&owner) >= shared.limits.n_connections(&owner)
            && !(open.has_room_to_close() && open.close_one_of_greediest(&owner, n_own))
        {
            open.note_refusal(&ConnectionRefusal::All);
            return Err(ConnectionRefusal::All);
        }
        let number = open.next;
        open.next += 1;
        *open.n_alike(&owner) += 1;
        let connections = open.owners.entry(owner.clone()).or_insert_with(|| OwnerConnections {
            account: Arc::new(OwnerAccount::new(
                limits,
                UnreadAccount::new(limits.n_unread_bytes, Within::All(shared.unread.clone())),
            )),
            open: BTreeMap::new(),
        });
        let open_since = shared.begun.elapsed().as_millis() as u64;
        let state = Arc::new(ConnectionState {
            owner,
            account: connections.account.clone(),
            all_bytes: shared.bytes.clone(),
            passed_on: shared.passed_on.clone(),
            frames: Arc::default(),
            fd: socket.as_raw_fd(),
            begun: shared.begun,
            n_calls: AtomicUsize::new(0),
            has_called: AtomicBool::new(false),
            has_token: AtomicBool::new(false),
            open_since,
            idle_since: AtomicU64::new(open_since),
        });
        connections.open.insert(number, state.clone());
        Ok(ConnectionSlot { table: shared.clone(), number, state })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn n_of(&self, owner: &ConnectionOwner) -> usize {
        self.owners.get(owner).map_or(0, |connections| connections.open.len())
    }

    /// How many there are of those that share with this owner.
    fn n_alike(&mut self, owner: &ConnectionOwner) -> &mut usize {
        match owner {
            ConnectionOwner::Stranger(_) => &mut self.n_strangers,
            ConnectionOwner::Own | ConnectionOwner::Node(_) | ConnectionOwner::User(_) => &mut self.n_open,
        }
    }

    fn has_room_to_close(&self) -> bool {
        self.n_closing < CLOSING_MAX
    }

    /// Closes that one of this owner's connections which has been idle longest; false if all are in use.
    fn close_idle(&mut self, owner: &ConnectionOwner) -> bool {
        let Some(connections) = self.owners.get(owner) else { return false };
        let idle = connections.open.iter().filter(|(_, state)| state.is_idle());
        let oldest = idle.min_by_key(|(_, state)| state.idle_since.load(Ordering::Relaxed)).map(|(number, _)| *number);
        oldest.is_some_and(|number| self.close(owner, number))
    }

    /// Of the owners who share with this one and have more connections, the one with most gives up an idle one.
    fn close_one_of_greediest(&mut self, newcomer: &ConnectionOwner, n_own: usize) -> bool {
        let mut owners: Vec<(usize, ConnectionOwner)> = self
            .owners
            .iter()
            .filter(|(owner, _)| owner.is_stranger() == newcomer.is_stranger())
            .filter(|(_, connections)| connections.open.len() > n_own)
            .map(|(owner, connections)| (connections.open.len(), owner.clone()))
            .collect();
        owners.sort_unstable_by_key(|(n_open, _)| std::cmp::Reverse(*n_open));
        owners.iter().any(|(_, owner)| self.close_idle(owner))
            || owners.iter().any(|(_, owner)| self.close_oldest_stranger(owner))
    }

    /// Who has shown neither certificate nor token makes room, also in the middle of a call.
    fn close_oldest_stranger(&mut self, owner: &ConnectionOwner) -> bool {
        let Some(connections) = self.owners.get(owner).filter(|_| owner.is_stranger()) else { return false };
        let mut unknown = connections.open.iter().filter(|(_, state)| !state.has_token.load(Ordering::Relaxed));
        unknown.next().map(|(number, _)| *number).is_some_and(|number| self.close(owner, number))
    }

    fn close(&mut self, owner: &ConnectionOwner, number: u64) -> bool {
        let Some(connections) = self.owners.get_mut(owner) else { return false };
        let Some(state) = connections.open.remove(&number) else { return false };
        // SAFETY: its slot has not gone yet, so the descriptor is still this connection's.
        unsafe { libc::shutdown(state.fd, libc::SHUT_RDWR) };
        *self.n_alike(owner) -= 1;
        self.n_closing += 1;
        true
    }

    /// One line for many refusals.
    fn note_refusal(&mut self, refusal: &ConnectionRefusal) {
        let (since, n_refused) = self.refused.unwrap_or((Instant::now() - LOG_AGAIN, 0));
        match since.elapsed() >= LOG_AGAIN {
            true => {
                tracing::warn!(n_more = n_refused, "a connection was refused: {refusal}");
                self.refused = Some((Instant::now(), 0));
            }
            false => self.refused = Some((since, n_refused + 1)),
        }
    }

    fn close_those_who_rest(&mut self, begun: Instant, now: Instant) {
        let now_millis = now.duration_since(begun).as_millis() as u64;
        let mut resting = Vec::new();
        for (owner, connections) in &self.owners {
            let unknown = connections.open.iter().filter(|(_, state)| {
                let life = Duration::from_millis(now_millis.saturating_sub(state.open_since));
                owner.is_stranger() && !state.has_token.load(Ordering::Relaxed) && life > STRANGER_LIFE_MAX
            });
            resting.extend(unknown.map(|(number, _)| (owner.clone(), *number)));
            for (number, state) in connections.open.iter().filter(|(_, state)| state.is_idle()) {
                let idle = Duration::from_millis(now_millis.saturating_sub(state.idle_since.load(Ordering::Relaxed)));
                let is_silent = !state.has_called.load(Ordering::Relaxed) && idle > SILENT_MAX;
                let has_rested = match owner {
                    ConnectionOwner::Own => continue,
                    ConnectionOwner::Node(_) => false,
                    ConnectionOwner::User(_) => idle > USER_IDLE_MAX,
                    ConnectionOwner::Stranger(_) => idle > STRANGER_IDLE_MAX,
                };
                if is_silent || has_rested {
                    resting.push((owner.clone(), *number));
                }
            }
        }
        for (owner, number) in resting {
            self.close(&owner, number);
        }
        self.close_those_who_do_not_read(now);
        // Calls that go on without their connection still count.
        self.owners.retain(|_, one| !one.open.is_empty() || Arc::strong_count(&one.account) > 1);
    }
}

impl OpenConnections {
    /// Members see to their own callers: one connection carries those of many.
    fn close_those_who_do_not_read(&mut self, now: Instant) {
        let mut overdue = Vec::new();
        for (owner, connections) in self.owners.iter().filter(|(owner, _)| !owner.is_member()) {
            let late = connections.open.iter().filter(|(_, state)| state.frames.is_overdue(now));
            overdue.extend(late.map(|(number, _)| (owner.clone(), *number)));
        }
        for (owner, number) in overdue {
            tracing::info!(%owner, "a connection is closed: its reader has not taken an answer for too long");
            self.close(&owner, number);
        }
    }
}

impl ConnectionState {
    pub fn owner(&self) -> &ConnectionOwner {
        &self.owner
    }

    /// The other end has shown a token that this cluster has signed.
    pub fn note_token(&self) {
        self.has_token.store(true, Ordering::Relaxed);
    }

    /// Refused when this owner has too many under way.
    pub fn begin_call(self: &Arc<Self>) -> Result<CallUnderWay, Status> {
        let most = self.account.limits.n_calls;
        if self.account.n_calls.fetch_add(1, Ordering::Relaxed) >= most {
            self.account.n_calls.fetch_sub(1, Ordering::Relaxed);
            let why = format!("{} has {most} calls under way: no more are taken before one ends", self.owner);
            return Err(Status::resource_exhausted(why));
        }
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        self.has_called.store(true, Ordering::Relaxed);
        Ok(CallUnderWay(self.clone()))
    }

    /// What this owner may still have under way, and all together.
    pub(crate) fn budgets(&self, payer: BytesPayer) -> [(Arc<Semaphore>, usize); 2] {
        let own = self.account.budget(&self.owner, payer);
        let all = match self.owner {
            ConnectionOwner::Own => own.clone(),
            _ => (self.all_bytes.clone(), ALL_BYTES / BUDGET_UNIT),
        };
        [own, all]
    }

    /// Who pays for the answer to this request; none: the cluster itself asks, or the answer is a job's own output, which
    /// its user may look at for as long as they like.
    pub(crate) fn payer<B>(&self, request: &Request<B>) -> Option<AnswerPayer> {
        if request.uri().path().starts_with(AGENT_CALLS) {
            return None;
        }
        let account = match &self.owner {
            ConnectionOwner::User(_) | ConnectionOwner::Stranger(_) => self.account.unread.clone(),
            ConnectionOwner::Own | ConnectionOwner::Node(_) if !request.headers().contains_key(origin::HEADER) => {
                return None;
            }
            ConnectionOwner::Own | ConnectionOwner::Node(_) => {
                self.passed_on_account(origin::Origin::of(request)?.user?.uid)
            }
        };
        Some(AnswerPayer { account, frames: self.frames.clone() })
    }

    fn passed_on_account(&self, uid: u32) -> Arc<UnreadAccount> {
        let mut accounts = self.passed_on.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self.owner.clone(), uid);
        if let Some(account) = accounts.get(&key).and_then(Weak::upgrade) {
            return account;
        }
        accounts.retain(|_, account| account.strong_count() > 0);
        let within = match self.owner.is_member() && self.owner != ConnectionOwner::Own {
            true => Within::Node(self.account.unread.clone()),
            false => Within::Alone,
        };
        let account = UnreadAccount::new(USER_UNREAD_BYTES, within);
        accounts.insert(key, Arc::downgrade(&account));
        account
    }

    fn is_idle(&self) -> bool {
        self.n_calls.load(Ordering::Relaxed) == 0
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        let now = self.0.begun.elapsed().as_millis() as u64;
        self.0.idle_since.store(now, Ordering::Relaxed);
        self.0.n_calls.fetch_sub(1, Ordering::Relaxed);
        self.0.account.n_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionSlot {
    pub fn state(&self) -> &Arc<ConnectionState> {
        &self.state
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.table.lock();
        let Some(connections) = open.owners.get_mut(&self.state.owner) else { return };
        let was_open = connections.open.remove(&self.number).is_some();
        // The table's own, and that of this connection.
        if connections.open.is_empty() && Arc::strong_count(&connections.account) <= 2 {
            open.owners.remove(&self.state.owner);
        }
        match was_open {
            true => *open.n_alike(&self.state.owner) -= 1,
            false => open.n_closing -= 1,
        }
    }
}

/// Ends with the table.
async fn sweep(table: Weak<Shared>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(shared) = table.upgrade() else { return };
        shared.lock().close_those_who_rest(shared.begun, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};
    use tonic::body::Body;

    use crate::unread_answers::{AnswerStock, counted};

    fn table(n_all: usize) -> ConnectionTable {
        ConnectionTable::new(ConnectionLimits { n_all })
    }

    fn is_closed(stream: &mut UnixStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    }

    #[tokio::test]
    async fn user_at_the_limit_loses_the_longest_idle_connection() {
        let table = table(64);
        let user = ConnectionOwner::User(54_321);
        let mut held: Vec<_> = (0..16)
            .map(|_| {
                let (near, far) = UnixStream::pair().unwrap();
                (table.admit(user.clone(), &near).unwrap(), near, far)
            })
            .collect();
        let first_call = held[0].0.state().begin_call().unwrap();
        let (near, _far) = UnixStream::pair().unwrap();
        let more = table.admit(user.clone(), &near).unwrap();
        assert!(!is_closed(&mut held[0].2) && is_closed(&mut held[1].2) && !is_closed(&mut held[2].2));
        // Where all are in use, the newcomer goes away.
        let calls: Vec<_> =
            held[2..].iter().map(|(slot, ..)| slot).chain([&more]).map(|slot| slot.state().begin_call()).collect();
        assert!(calls.iter().all(Result::is_ok));
        let refused = table.admit(user.clone(), &near).map(drop).unwrap_err();
        assert!(refused.to_string().contains("user 54321 has 16 connections in use"), "{refused}");
        // Others have theirs.
        assert!(table.admit(ConnectionOwner::User(54_322), &near).is_ok());
        drop((first_call, calls, held, more));
        assert!(table.0.lock().owners.is_empty() && table.0.lock().n_open == 0 && table.0.lock().n_closing == 0);
    }

    #[tokio::test]
    async fn greediest_gives_way_when_all_is_full() {
        let table = table(64);
        let (near, _far) = UnixStream::pair().unwrap();
        let users = |uid| ConnectionOwner::User(uid);
        let n_known = table.0.limits.n_connections(&users(0));
        let mut held: Vec<_> =
            (0..n_known as u32).map(|n| table.admit(users(70_000 + n / 15), &near).unwrap()).collect();
        let calls: Vec<_> = held.iter().map(|slot| slot.state().begin_call().unwrap()).collect();
        assert_eq!(table.admit(users(5), &near).map(drop).unwrap_err(), ConnectionRefusal::All);
        // The cluster itself has some left.
        let own = table.admit(ConnectionOwner::Own, &near).unwrap();
        drop((own, calls));
        held.push(table.admit(users(5), &near).unwrap());
        assert_eq!(table.0.lock().n_of(&users(5)), 1);
    }

    fn stranger(network: u8) -> ConnectionOwner {
        ConnectionOwner::of_stranger([203, 0, 113, network].into())
    }

    #[tokio::test]
    async fn strangers_in_use_shut_out_neither_users_nor_each_other() {
        let table = table(640);
        let call = |owner: ConnectionOwner| {
            let (near, far) = UnixStream::pair().unwrap();
            let slot = table.admit(owner, &near).ok()?;
            Some((slot.state().begin_call().unwrap(), slot, near, far))
        };
        let n_strangers = table.0.limits.n_strangers();
        let mut held = Vec::new();
        for network in (0..60).flat_map(|network| [network; 30]) {
            held.extend(call(stranger(network)));
            // HTTP/2 ends when its socket does.
            held.retain_mut(|(.., far)| !is_closed(far));
        }
        assert_eq!(table.0.lock().n_strangers, n_strangers);
        // Users have all that is theirs.
        let n_users = table.0.limits.n_connections(&ConnectionOwner::User(5));
        let users: Vec<_> = (0..n_users as u32).filter_map(|n| call(ConnectionOwner::User(70_000 + n / 15))).collect();
        assert_eq!(users.len(), n_users);
        // A stranger from elsewhere takes the place of one of those with most, though all are in use.
        assert!(call(stranger(200)).is_some());
        assert_eq!(held.iter_mut().filter_map(|(.., far)| is_closed(far).then_some(())).count(), 1);
    }

    #[tokio::test]
    async fn strangers_go_in_time_and_users_with_tokens_stay() {
        let table = table(640);
        let mut pairs: Vec<_> = (0..2).map(|_| UnixStream::pair().unwrap()).collect();
        let slots: Vec<_> = pairs.iter().map(|(near, _)| table.admit(stranger(1), near).unwrap()).collect();
        let _calls: Vec<_> = slots.iter().map(|slot| slot.state().begin_call().unwrap()).collect();
        slots[1].state().note_token();
        table.0.lock().close_those_who_rest(table.0.begun, Instant::now() + STRANGER_LIFE_MAX * 2);
        assert!(is_closed(&mut pairs[0].1) && !is_closed(&mut pairs[1].1));
    }

    #[tokio::test]
    async fn those_who_rest_are_closed_and_watchers_are_not() {
        let table = table(640);
        let owners = [
            ConnectionOwner::Own,
            ConnectionOwner::Node("n1".into()),
            ConnectionOwner::User(54_321),
            ConnectionOwner::Stranger("192.0.2.1".parse().unwrap()),
        ];
        let mut held: Vec<_> = owners
            .iter()
            .map(|owner| {
                let (near, far) = UnixStream::pair().unwrap();
                let slot = table.admit(owner.clone(), &near).unwrap();
                drop(slot.state().begin_call().unwrap());
                (slot, near, far)
            })
            .collect();
        let (near, mut silent) = UnixStream::pair().unwrap();
        let _silent = table.admit(owners[1].clone(), &near).unwrap();
        let later = |table: &ConnectionTable, after: Duration| {
            table.0.lock().close_those_who_rest(table.0.begun, Instant::now() + after);
        };
        later(&table, Duration::from_secs(30));
        assert!(is_closed(&mut silent) && is_closed(&mut held[3].2) && !is_closed(&mut held[2].2));
        let watching = held[2].0.state().begin_call().unwrap();
        later(&table, Duration::from_secs(86_400));
        assert!((0..3).all(|at| !is_closed(&mut held[at].2)));
        drop(watching);
        later(&table, Duration::from_secs(86_400));
        assert!(!is_closed(&mut held[0].2) && !is_closed(&mut held[1].2) && is_closed(&mut held[2].2));
    }

    #[tokio::test]
    async fn reader_that_takes_nothing_is_cut_off_and_members_are_not() {
        let table = table(640);
        let owners = [ConnectionOwner::Own, ConnectionOwner::Node("n1".into()), ConnectionOwner::User(54_321)];
        let mut held: Vec<_> = owners
            .iter()
            .map(|owner| {
                let (near, far) = UnixStream::pair().unwrap();
                let slot = table.admit(owner.clone(), &near).unwrap();
                let call = slot.state().begin_call().unwrap();
                let payer =
                    AnswerPayer { account: UnreadAccount::new(9, Within::Alone), frames: slot.state().frames.clone() };
                let body = Body::new(Full::new(Bytes::from(vec![7; 10_000])));
                (slot, call, near, far, counted(body, Some(payer), AnswerStock::default()))
            })
            .collect();
        let mut unread = Vec::new();
        for (.., answer) in &mut held {
            unread.push(answer.frame().await.unwrap().unwrap());
        }
        let later = |after: u64| {
            table.0.lock().close_those_who_rest(table.0.begun, Instant::now() + Duration::from_secs(after));
        };
        later(50);
        assert!((0..3).all(|at| !is_closed(&mut held[at].3)));
        later(70);
        assert!(!is_closed(&mut held[0].3) && !is_closed(&mut held[1].3) && is_closed(&mut held[2].3));
    }
}
