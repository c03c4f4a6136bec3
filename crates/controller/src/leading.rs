//! What a controller is while it leads: the API, and the loops behind it. Made when the lead is won, gone when it is lost.
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use journal::{Leadership, MembersError};
use model::members::MemberView;
use model::trigger::TriggerKind;
use model::{Caller, Command, Config, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use wire::channel::MAX_MESSAGE_BYTES;
use wire::proto::controller_server::ControllerServer;
use wire::tls::identity::Keyring;

use crate::agents::Agents;
use crate::api::{Api, history_turns};
use crate::audit::AuditLog;
use crate::counted::Counted;
use crate::door::{Door, Refusal};
use crate::fair_turns::FairTurns;
use crate::leader;
use crate::machine::Published;
use crate::members::{self, ClusterJournal, Connections};
use crate::names::Names;

/// A lead that could not be taken up is not tried again at once.
const PAUSE: Duration = Duration::from_millis(200);

/// What does not change when the lead does.
pub struct Ground {
    pub journal: ClusterJournal,
    pub published: Published,
    pub agents: Arc<Agents>,
    pub connections: Arc<Connections>,
    pub config: Config,
    pub config_file: PathBuf,
    pub started: Timestamp,
    /// Of this very controller.
    pub state_dir: PathBuf,
    /// The state's own time when the journal was opened.
    pub opened_at: Timestamp,
    /// What it shows to other machines, if there are any.
    pub keyring: Option<Arc<Keyring>>,
    /// What this controller says of itself.
    pub own: MemberView,
    pub hand_overs: mpsc::Sender<HandOver>,
    pub names: Arc<Names>,
    pub audit: AuditLog,
    /// No controller is to be left: nobody needs a successor.
    pub ends_all: Arc<AtomicBool>,
}

pub struct Leading {
    service: Counted<ControllerServer<Api>>,
    journal: ClusterJournal,
    pub door: Arc<Door>,
    /// Ended with this.
    _loops: JoinSet<()>,
}

impl Leading {
    /// Takes up what a leader does; fails if not even the configuration can be written.
    pub async fn begin(ground: &Arc<Ground>) -> Result<Arc<Leading>> {
        let door = Arc::new(Door::new(ground.journal.clone(), ground.published.clone(), ground.names.clone()));
        crate::backup::take_up(&ground.state_dir, &door).await?;
        // Of several controllers, each with its own file, the one that happens to lead does not change what all agreed on.
        let known = ground.published.now();
        let is_first = ground.journal.is_lone() || known.config().nodes.is_empty();
        // The hooks of burst buffers died with whoever led before; so much of a start is every leader's.
        let has_hooks = known.config().burst_buffer.as_ref().is_some_and(|burst| burst.plugin.is_external());
        if is_first || has_hooks {
            let config = if is_first { ground.config.clone() } else { (**known.file_config()).clone() };
            let configure = Command::Begin { config: Box::new(config) };
            match door.propose(Caller::SYSTEM, configure).await {
                Ok(_) => (),
                Err(Refusal::Rejected(reject)) => anyhow::bail!("the configuration is refused: {reject}"),
                Err(refusal) => anyhow::bail!("the configuration could not be written: {refusal}"),
            }
        }
        if ground.journal.is_lone() && ground.published.now().rules() < state::rules::LATEST {
            let adopted = leader::rules::adopt(&door).await;
            adopted.map_err(|refusal| anyhow::anyhow!("the rules of this release could not be written: {refusal}"))?;
        }
        crate::tls::hand_in_authority(ground, &door).await;
        tell_triggers(ground, &door).await;
        // What was read from the log is not counted.
        ground.published.statistics.reset(door.now());
        let mut loops = JoinSet::new();
        loops.spawn(leader::rules::run(ground.clone(), door.clone()));
        loops.spawn(leader::disk_room::run(door.clone()));
        let history =
            crate::history::start(&ground.config, ground.opened_at, door.clone(), ground.published.clone(), &mut loops)
                .await;
        let places =
            leader::hooks::Places { config_file: ground.config_file.clone(), state_dir: ground.state_dir.clone() };
        let (runner, stager) =
            leader::start(door.clone(), ground.published.clone(), ground.agents.clone(), places, &mut loops);
        let plugin = crate::plugin::start(door.clone(), ground.published.clone(), ground.state_dir.clone(), &mut loops);
        let members_changed = Arc::new(tokio::sync::Notify::new());
        loops.spawn(leader::neighbours::run(
            (ground.published.clone(), ground.journal.clone()),
            ground.connections.clone(),
            ground.agents.clone(),
            members_changed.clone(),
        ));
        let api = Api {
            members_changed,
            started: ground.started,
            door: door.clone(),
            published: ground.published.clone(),
            agents: ground.agents.clone(),
            lead: ground.agents.open(),
            runner,
            stager,
            plugin,
            screen: Default::default(),
            progress: Default::default(),
            config_file: ground.config_file.clone(),
            names: ground.names.clone(),
            audit: ground.audit.clone(),
            history,
            journal: ground.journal.clone(),
            connections: ground.connections.clone(),
            own: ground.own.clone(),
            hand_overs: ground.hand_overs.clone(),
            ends_all: ground.ends_all.clone(),
            turns: Default::default(),
            watch_turns: FairTurns::new(1, 1),
            work_turns: FairTurns::of_machine(),
            history_turns: history_turns(),
            watchers: Default::default(),
            encoded: Default::default(),
        };
        let service = ControllerServer::new(api)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let service = Counted { inner: service, statistics: ground.published.statistics.clone() };
        Ok(Arc::new(Leading { service, journal: ground.journal.clone(), door, _loops: loops }))
    }

    pub fn is_lone(&self) -> bool {
        self.journal.is_lone()
    }

    pub fn answer(
        &self,
        request: Request<Body>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>> {
        self.service.clone().call(request)
    }
}

/// Another leader than before is an event of its own. The first of the controllers is what Slurm calls the primary.
async fn tell_triggers(ground: &Ground, door: &Door) {
    if ground.published.now().triggers().next().is_none() {
        return;
    }
    let kinds = match ground.journal.is_lone() || ground.own.id == 1 {
        true => vec![TriggerKind::PrimaryResumedOperation, TriggerKind::PrimaryResumedControl],
        false => vec![TriggerKind::PrimaryFailure, TriggerKind::BackupAssumedControl],
    };
    if let Err(refusal) = door.propose(Caller::SYSTEM, Command::Happened { kinds }).await {
        tracing::warn!(?refusal, "that this controller leads was not told to triggers");
    }
}

/// Somebody wants another controller to lead; none: any other.
pub type HandOver = (Option<u64>, oneshot::Sender<Result<(), MembersError>>);

/// Leads whenever the log says so, until the journal stops.
pub async fn follow(
    ground: Arc<Ground>,
    lead: watch::Sender<Option<Arc<Leading>>>,
    mut first: Option<Arc<Leading>>,
    mut hand_overs: mpsc::Receiver<HandOver>,
) {
    let mut leadership = ground.journal.leadership();
    loop {
        let now = *leadership.borrow_and_update();
        match now {
            Leadership::Stopped => return,
            Leadership::Follower { .. } => {
                if leadership.changed().await.is_err() {
                    return;
                }
            }
            Leadership::Leader { term } => {
                let begun = match first.take() {
                    Some(leading) => Ok(leading),
                    None => tokio::select! {
                        begun = Leading::begin(&ground) => begun,
                        () = members::until_lost(&ground.journal, term) => Err(anyhow::anyhow!("the lead was lost")),
                    },
                };
                match begun {
                    Ok(leading) => {
                        tracing::info!(term, "this controller leads");
                        lead.send_replace(Some(leading));
                        while_leading(&ground, &lead, term, &mut hand_overs).await;
                        tracing::info!(term, "this controller leads no more");
                    }
                    Err(error) => {
                        tracing::error!("cannot lead: {error:#}");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                lead.send_replace(None);
                // They find whoever leads now.
                ground.agents.close_all();
            }
        }
    }
}

/// Until the lead is lost, or was given up in vain: then it is taken up anew.
async fn while_leading(
    ground: &Ground,
    lead: &watch::Sender<Option<Arc<Leading>>>,
    term: u64,
    hand_overs: &mut mpsc::Receiver<HandOver>,
) {
    tokio::select! {
        () = members::until_lost(&ground.journal, term) => {}
        Some((to, tell)) = hand_overs.recv() => {
            // What the log takes keeps the lead alive: nothing more is taken.
            lead.send_replace(None);
            ground.agents.close_all();
            let done = members::hand_over(&ground.journal, &ground.connections, to).await;
            let _ = tell.send(done);
        }
    }
}
