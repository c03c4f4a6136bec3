//! Who walks: every kind of caller, through every door.
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tonic::Code;

use super::callers::{Entrance, RawCaller, authority_of};
use super::contract::{ContractCall, calls};
use super::walk::{ENDING, HostileRequest, Walk};
use crate::cluster::{Cluster, is_root};
use crate::machines::Machine;

pub const VICTIM: (&str, u32) = ("daemon", 1);
pub const STRANGER: (&str, u32) = ("nobody", 65_534);
/// Has a job on a node that belongs to somebody hostile.
pub const GUEST: (&str, u32) = ("bin", 2);
pub const OPERATOR: (&str, u32) = ("sys", 3);
pub const COORDINATOR: (&str, u32) = ("games", 5);
pub const ADMINISTRATOR: (&str, u32) = ("man", 6);
/// Whoever watches may have nothing to see.
const WATCH_PATIENCE: Duration = Duration::from_millis(500);
/// Requests of one caller at the same time: streams that are taken stay open for a moment.
pub const AT_ONCE: usize = 8;

/// Who calls, and what may become of it.
pub struct Walker {
    pub name: &'static str,
    pub entrance: Entrance,
    pub headers: Vec<(&'static str, String)>,
    pub rights: WalkerRights,
    /// A part of all places; none: a sample.
    pub share: Option<WalkShare>,
    pub turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalkerRights {
    /// May change nothing of others'.
    None,
    /// May end, hold and change jobs of others, and look after accounts.
    Jobs,
    /// May change what it likes: only that the cluster survives is asked.
    All,
}

/// Of so many walkers who go over every place together, one.
#[derive(Clone, Copy, Debug)]
pub struct WalkShare {
    pub turn: u64,
    pub n_walkers: u64,
    pub is_of_members: bool,
}

/// The machines of a walk.
pub struct WalkGround<'a> {
    pub head: &'a Cluster,
    pub address: &'a str,
    /// The hostile node, and another.
    pub node: &'a Machine,
    pub other: &'a Machine,
    pub login: &'a Machine,
    pub agent_address: &'a str,
}

/// Everybody, those with the fewest rights first.
pub fn walkers(ground: &WalkGround) -> Vec<Walker> {
    let WalkGround { head, address, node, other, login, agent_address } = *ground;
    let socket = head.dir.join("run/controller.sock");
    let agent_socket = node.0.dir.join("run/agent-a1.sock");
    let local = |(_, uid): (&str, u32)| Entrance::Local { socket: socket.clone(), uid, gid: uid };
    let brief = |(_, uid): (&str, u32)| Entrance::LocalBrief { socket: socket.clone(), uid, gid: uid };
    let at_agent = |(_, uid): (&str, u32)| Entrance::Local { socket: agent_socket.clone(), uid, gid: uid };
    let brief_at_agent = |(_, uid): (&str, u32)| Entrance::LocalBrief { socket: agent_socket.clone(), uid, gid: uid };
    let shows = |dir: &Path| Entrance::Certificate { address: address.to_owned(), tls_dir: dir.to_owned() };
    let at_gate =
        |dir: &Path| Entrance::Agent { address: agent_address.to_owned(), tls_dir: dir.to_owned(), node: "a1".into() };
    let of = |machine: &Machine| machine.0.dir.join("tls");
    let controllers = head.dir.join("state/tls");
    let says = |words: &str| vec![(wire::origin::HEADER, words.to_owned())];
    let vouches = |(_, uid): (&str, u32)| says(&format!("local {uid} {uid}"));
    let walker = |name, entrance, mut headers: Vec<(&'static str, String)>| {
        // Calls for agents are for that of the one node.
        headers.push((wire::node::NODE_HEADER, "a1".to_owned()));
        Walker { name, entrance, headers, rights: WalkerRights::None, share: None, turn: 0 }
    };
    let stranger = Entrance::Stranger { address: address.to_owned(), authority: authority_of(&controllers) };
    let members = |turn| Some(WalkShare { turn, n_walkers: 2, is_of_members: true });
    let mut all = vec![
        walker("a stranger on the network", stranger.clone(), Vec::new()),
        walker("a stranger who claims to be root", stranger, vouches(("root", 0))),
        Walker { share: members(0), ..walker("a node for itself", shows(&of(node)), Vec::new()) },
        Walker { share: members(1), ..walker("a node by way of its name", shows(&of(node)), says("node:a1")) },
        walker("a node for an unknown user", shows(&of(node)), vouches(("", 54_321))),
        walker("a node for a user without a job there", shows(&of(node)), vouches(STRANGER)),
        walker("a node for a user with a job there", shows(&of(node)), vouches(GUEST)),
        walker("root of a node", shows(&of(node)), vouches(("root", 0))),
        walker("a node that claims to be a controller", shows(&of(node)), says("controller:1")),
        walker("a login node for a user", shows(&of(login)), vouches(STRANGER)),
        walker("a login node for root", shows(&of(login)), vouches(("root", 0))),
        walker("a controller for itself", shows(&controllers), Vec::new()),
        walker("a node at another's agent", at_gate(&of(other)), Vec::new()),
        walker("a node at another's agent for a user", at_gate(&of(other)), vouches(STRANGER)),
        walker("a controller at an agent for a user", at_gate(&controllers), vouches(STRANGER)),
    ];
    let mut mighty = vec![
        walker("an administrator", local(("", 0)), Vec::new()),
        walker("an administrator in brief calls", brief(("", 0)), Vec::new()),
    ];
    if is_root() {
        let token = head.ok(&format!("scontrol token username={} lifespan=3000", STRANGER.0));
        let token = vec![(wire::bearer::HEADER, format!("Bearer {}", token.trim_start_matches("SLURM_JWT=")))];
        let users = vec![
            walker("another user", local(STRANGER), Vec::new()),
            walker("another user in brief calls", brief(STRANGER), Vec::new()),
            walker("another user by token", local(GUEST), token),
            walker("a user at an agent", at_agent(STRANGER), Vec::new()),
        ];
        all.extend(shared(users));
        all.push(walker("a user at an agent in brief calls", brief_at_agent(STRANGER), Vec::new()));
        all.push(walker("a coordinator of another account", local(COORDINATOR), Vec::new()));
        let operator = |entrance| Walker { rights: WalkerRights::Jobs, ..walker("an operator", entrance, Vec::new()) };
        all.extend([operator(local(OPERATOR)), operator(brief(OPERATOR))]);
        mighty.push(walker("an administrator by account", local(ADMINISTRATOR), Vec::new()));
        mighty.push(walker("the victim", local(VICTIM), Vec::new()));
        mighty.push(walker("a controller for root", shows(&controllers), vouches(("root", 0))));
    }
    let (administrators, rest): (Vec<_>, Vec<_>) =
        mighty.into_iter().partition(|walker| walker.name.starts_with("an administrator"));
    all.extend(shared(administrators).into_iter().chain(rest).map(|one| Walker { rights: WalkerRights::All, ..one }));
    (0..).zip(all).map(|(turn, walker)| Walker { turn, ..walker }).collect()
}

/// Together they go over every place of what users may ask.
fn shared(walkers: Vec<Walker>) -> Vec<Walker> {
    let n_walkers = walkers.len() as u64;
    let share = |turn| Some(WalkShare { turn, n_walkers, is_of_members: false });
    (0..).zip(walkers).map(|(turn, walker)| Walker { share: share(turn), ..walker }).collect()
}

impl Walker {
    /// How many requests it has sent, and which answers were wrong.
    pub async fn walk(&self, walk: &Walk) -> (usize, Vec<String>) {
        let caller = RawCaller::open(&self.entrance, &self.headers).await;
        let is_ending = |call: &ContractCall| ENDING.contains(&call.name);
        // At the word of a controller these do what they are for.
        let is_controller = self.rights == WalkerRights::All || self.name == "a controller for itself";
        let (mut n_sent, mut wrong) = (0, Vec::new());
        for call in calls().into_iter().filter(|call| !(is_controller && is_ending(call))) {
            let requests = walk.requests(self, &call);
            n_sent += requests.len();
            let sending = requests.into_iter().map(|request| self.send(&caller, &call, request));
            wrong.extend(side_by_side(sending, AT_ONCE).await.into_iter().flatten());
        }
        (n_sent, wrong)
    }

    /// What is wrong with the answer, if anything.
    async fn send(&self, caller: &RawCaller, call: &ContractCall, request: HostileRequest) -> Option<String> {
        let path = call.path();
        let answering = caller.call(&path, request.body, call.streams_requests);
        let status = match call.name.starts_with("Watch") {
            // Until there is something to tell.
            true => tokio::time::timeout(WATCH_PATIENCE, answering).await.ok()?.err()?,
            false => answering.await.err()?,
        };
        let is_fault = match status.code() {
            // A node may take itself away, and others walk at the same time.
            Code::Unavailable => call.service != "Agent",
            Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::DataLoss => true,
            _ => false,
        };
        is_fault.then(|| format!("{}: {}: {:?} {}", self.name, request.what, status.code(), status.message()))
    }
}

/// The results in any order; so many are under way at a time.
pub async fn side_by_side<F: Future>(mut waiting: impl Iterator<Item = F>, n_most: usize) -> Vec<F::Output> {
    let mut under_way: Vec<Pin<Box<F>>> = waiting.by_ref().take(n_most).map(Box::pin).collect();
    let mut results = Vec::new();
    while !under_way.is_empty() {
        let ended = std::future::poll_fn(|context| {
            let polled = under_way.iter_mut().map(|future| future.as_mut().poll(context)).enumerate();
            let mut ready = polled.filter_map(|(at, result)| match result {
                Poll::Ready(result) => Some((at, result)),
                Poll::Pending => None,
            });
            ready.next().map_or(Poll::Pending, Poll::Ready)
        });
        let (at, result) = ended.await;
        drop(under_way.swap_remove(at));
        results.push(result);
        under_way.extend(waiting.next().map(Box::pin));
    }
    results
}
