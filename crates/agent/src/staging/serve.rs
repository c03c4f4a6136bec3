//! Data for other nodes: a home that is complete here is read for another agent, by a sender that runs as its owner.
use std::collections::HashMap;
use std::os::unix::net::UnixStream as Socket;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};

use model::codec;
use model::staging::{Direction, Home, MirrorRequest, StageResult};
use tokio::net::UnixStream;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming};
use wire::origin::Origin;
use wire::peer::{self, Peer};
use wire::proto::Piece;

use super::fetch::{PIECES, receive, send};
use super::record::{Papers, Record, boot_id};
use super::{ground, group};
use crate::supervisor::Identity;
use crate::sys;
use crate::table::Agent;

const EXECUTABLE: &str = "/proc/self/exe";
/// Whoever comes when so many are served asks somebody else.
const N_SERVED_MAX: usize = 16;

/// Who is served from which home.
#[derive(Default)]
pub struct Served(Mutex<HashMap<Home, Serving>>);

#[derive(Clone)]
struct Serving {
    halt: Arc<watch::Sender<bool>>,
    /// Held by each that is served.
    turns: Arc<RwLock<()>>,
}

impl Default for Serving {
    fn default() -> Self {
        Serving { halt: Arc::new(watch::channel(false).0), turns: Arc::default() }
    }
}

impl Served {
    fn join(&self, home: &Home) -> Result<(watch::Receiver<bool>, OwnedRwLockReadGuard<()>), Status> {
        let mut all = self.0.lock().expect("no panic while it is held");
        let is_idle = |serving: &Serving| Arc::strong_count(&serving.turns) == 1;
        all.retain(|_, serving| !is_idle(serving));
        let n_served: usize = all.values().map(|serving| Arc::strong_count(&serving.turns) - 1).sum();
        if n_served >= N_SERVED_MAX {
            return Err(Status::resource_exhausted("too many are served already"));
        }
        let serving = all.entry(home.clone()).or_default();
        let turn = serving.turns.clone().try_read_owned();
        let turn = turn.map_err(|_| Status::failed_precondition("the buffer is being removed"))?;
        Ok((serving.halt.subscribe(), turn))
    }

    /// Returns when nobody reads the home any more; nobody does while the guard is kept.
    pub async fn end(&self, home: &Home) -> OwnedRwLockWriteGuard<()> {
        let serving = self.0.lock().expect("no panic while it is held").entry(home.clone()).or_default().clone();
        serving.halt.send_replace(true);
        let guard = serving.turns.write_owned().await;
        serving.halt.send_replace(false);
        guard
    }
}

type Answer = Result<Piece, Status>;

/// The data of a home, which the first piece names.
pub async fn serve(
    agent: &Arc<Agent>,
    request: Request<Streaming<Piece>>,
) -> Result<(Home, ReceiverStream<Answer>), Status> {
    let caller = caller(&request).ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
    let mut pieces = request.into_inner();
    let first = pieces.message().await?.ok_or_else(|| Status::invalid_argument("nothing is asked for"))?;
    let asked: MirrorRequest =
        codec::decode_sent(&first.data).map_err(|_| Status::invalid_argument("an unreadable request"))?;
    let home = asked.home.ok_or_else(|| Status::invalid_argument("no home is named"))?;
    let (mut halted, turn) = agent.staging.served.join(&home)?;
    let (child, socket) = start(agent, caller, &home, &asked.root)?;
    let (reading, writing) = socket.into_split();
    let (answers, stream) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        tokio::select! {
            () = send(reading, answers, |data| Ok(Piece { data })) => {}
            () = receive(writing, pieces) => {}
            _ = halted.wait_for(|is_halted| *is_halted) => {}
        }
        // Its socket is closed by now; it may be in the middle of a read that takes long.
        end(child).await;
        drop(turn);
    });
    Ok((home, ReceiverStream::new(stream)))
}

/// On this machine only other agents' users may say for whom they ask.
fn caller(request: &Request<Streaming<Piece>>) -> Option<Peer> {
    match request.extensions().get::<Origin>() {
        Some(_) => peer::of(request),
        None => Origin::of_call(request)?.user,
    }
}

fn start(agent: &Agent, caller: Peer, home: &Home, root: &str) -> Result<(Child, UnixStream), Status> {
    let nothing = || Status::failed_precondition("the data is not here");
    if !agent.staging.pools.now().all().any(|pool| pool.root == root) {
        return Err(nothing());
    }
    let record = Papers::new(root, home, agent.options.node.as_str(), Direction::In).read();
    let is_complete = |record: &Record| matches!(record.result, Some(StageResult::Done(_))) && record.boot == boot_id();
    let record = record.filter(is_complete).filter(|_| ground::has_home(root, home)).ok_or_else(nothing)?;
    let work = &record.work;
    if ![0, sys::own_uid(), work.uid].contains(&caller.uid) {
        return Err(Status::permission_denied("Access/permission denied"));
    }
    let identity = Identity::look_up(work.uid, work.gid, &work.user);
    let order = mover::Order {
        fences: vec![mover::Fence { path: home.directory(root), ..Default::default() }],
        identity: Some(mover::Identity { uid: work.uid, gid: work.gid, groups: identity.groups().to_vec() }),
        ..Default::default()
    };
    let failed = |error: std::io::Error| Status::internal(error.to_string());
    let (theirs, ours) = Socket::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let joins = group::make(agent.cgroup.as_deref(), home, Direction::In);
    let joins = joins.as_ref().map(|group| group.path().join("cgroup.procs"));
    let child = mover::mirror::start(Path::new(EXECUTABLE), &order, theirs.into(), joins.as_deref()).map_err(failed)?;
    Ok((child, UnixStream::from_std(ours).map_err(failed)?))
}

async fn end(mut child: Child) {
    let ended = tokio::task::spawn_blocking(move || {
        let _ = child.kill();
        let _ = child.wait();
    });
    let _ = ended.await;
}
