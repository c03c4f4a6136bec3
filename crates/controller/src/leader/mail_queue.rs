//! Mails on their way to the site's mail program: a few at a time, a bounded number waiting, none for ever.
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::diagnosis::MailCounts;
use model::plain_text;
use prolog::user_program::own_program;
use tokio::process::Command;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinSet;

/// Mail programs that run at once.
const SENDERS: usize = 4;
const WAITING_MAX: usize = 2000;
/// One user's mails leave room for those of others.
const WAITING_OF_USER_MAX: usize = 500;
/// A mail program that takes longer is killed, with what it has started.
const PATIENCE: Duration = Duration::from_secs(60);

/// One mail, ready to be sent.
pub struct Letter {
    pub uid: u32,
    pub program: String,
    pub subject: String,
    pub to: String,
    /// What the mail program finds in its environment.
    pub told: Vec<(&'static str, String)>,
}

/// What became of mails; shown by sdiag.
#[derive(Default)]
pub struct MailTally(Mutex<MailCounts>);

impl MailTally {
    pub fn counts(&self) -> MailCounts {
        self.lock().clone()
    }

    /// What waits goes on waiting.
    pub fn reset(&self) {
        let mut counts = self.lock();
        *counts = MailCounts { n_waiting: counts.n_waiting, ..Default::default() };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, MailCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where mails are handed in; they are sent while this is kept.
pub struct MailQueue {
    letters: mpsc::Sender<Letter>,
    waiting: Arc<Mutex<BTreeMap<u32, usize>>>,
    tally: Arc<MailTally>,
    /// That mails are lost has been told, and none was taken since.
    is_told: bool,
    _senders: JoinSet<()>,
}

impl MailQueue {
    pub fn start(tally: Arc<MailTally>) -> MailQueue {
        let (letters, receiver) = mpsc::channel(WAITING_MAX);
        let (receiver, waiting) = (Arc::new(AsyncMutex::new(receiver)), Arc::new(Mutex::new(BTreeMap::new())));
        let mut senders = JoinSet::new();
        for _ in 0..SENDERS {
            senders.spawn(send_all(receiver.clone(), waiting.clone(), tally.clone()));
        }
        tally.lock().n_waiting = 0;
        MailQueue { letters, waiting, tally, is_told: false, _senders: senders }
    }

    /// Takes a mail in, or drops it where too many wait.
    pub fn post(&mut self, letter: Letter) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = waiting.entry(letter.uid).or_default();
        let mut counts = self.tally.lock();
        let uid = letter.uid;
        if *of_user < WAITING_OF_USER_MAX && self.letters.try_send(letter).is_ok() {
            *of_user += 1;
            counts.n_waiting += 1;
            self.is_told &= *of_user > WAITING_OF_USER_MAX / 2;
            return;
        }
        counts.n_dropped += 1;
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(uid, waiting = counts.n_waiting, "mails are dropped: too many wait to be sent; see sdiag");
        }
    }
}

async fn send_all(
    letters: Arc<AsyncMutex<mpsc::Receiver<Letter>>>,
    waiting: Arc<Mutex<BTreeMap<u32, usize>>>,
    tally: Arc<MailTally>,
) {
    loop {
        let Some(letter) = letters.lock().await.recv().await else { return };
        {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = waiting.get_mut(&letter.uid) {
                *count -= 1;
                if *count == 0 {
                    waiting.remove(&letter.uid);
                }
            }
        }
        tally.lock().n_waiting -= 1;
        let is_sent = send(letter).await;
        let mut counts = tally.lock();
        if is_sent { counts.n_sent += 1 } else { counts.n_failed += 1 }
    }
}

/// Kills a group of processes unless it is told that there is none any more.
struct MailGroup(Option<i32>);

impl Drop for MailGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // SAFETY: a plain system call; the group is the child's own, and the child was not waited for.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
}

async fn send(letter: Letter) -> bool {
    let Letter { program, subject, to, told, .. } = letter;
    let mut command = Command::from(own_program(Path::new("/proc/self/exe"), &program));
    command.envs(told);
    // A job's name must not end the header and begin another.
    let subject = subject.replace(plain_text::is_hostile, " ");
    command.arg("-s").arg(&subject).arg(&to);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            tracing::warn!(program, subject, %error, "a mail was not sent");
            return false;
        }
    };
    let mut group = MailGroup(child.id().and_then(|id| i32::try_from(id).ok()));
    match tokio::time::timeout(PATIENCE, child.wait()).await {
        Ok(Ok(status)) => {
            group.0 = None;
            if !status.success() {
                tracing::warn!(program, subject, %status, "a mail was not sent");
            }
            status.success()
        }
        Ok(Err(error)) => {
            tracing::warn!(program, subject, %error, "a mail was not sent");
            false
        }
        Err(_) => {
            drop(group);
            tracing::warn!(program, subject, patience_secs = PATIENCE.as_secs(), "the mail program took too long");
            // So that it does not stay as a zombie.
            let _ = child.wait().await;
            false
        }
    }
}
