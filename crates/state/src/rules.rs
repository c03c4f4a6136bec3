//! By which rules entries are judged. Controllers of two releases must judge alike, and what one release has decided must come out the
//! same when a later one reads it: so the edition of the rules is state, and rises by an entry of its own, once all controllers know them.
//!
//! A rule that refuses what was taken before, or decides otherwise, asks `Cluster::rules`; the table below says since when.
//!
//! | edition | what it changed |
//! |---|---|
//! | 1 | components of heterogeneous jobs have nodes (`-N0` is refused) |
//! | 2 | users choose their own default account; coordinators make only accounts of theirs somebody's default |
//! | 2 | no reservation has nodes that both stay (MAINT, STATIC) and are replaced (REPLACE, REPLACE_DOWN); features of its nodes may be counted (`[a*1&b*2]`) |
//! | 2 | a running job gives back nodes on which its steps have tasks, and nobody has a node before what such a job left there has ended |
//! | 2 | `--bb` in its short form says nothing twice |
//! | 2 | whoever releases a job that stages out has it tried again at once |
//! | 2 | what staging does not copy (sockets, FIFOs, devices) is counted |
//! | 2 | whoever waits for a persistent buffer that is being destroyed makes it anew |
//! | 2 | what has failed to be staged on one node is not kept open for another that is lost |
//! | 2 | steps that are to be packed (`-m pack`, `CR_PACK_NODES`) fill node after node, however their job was laid out |
//! | 2 | counted features (`-C f*2`) are looked for near each other on a network, so that fewer jobs are refused |
//! | 3 | a change of accounts that touches nothing does not make the first accounts |
//! | 3 | a certificate that was taken back is not renewed; only certificates that stand in the state are believed |
//! | 3 | content that is not what its id says is discarded when this edition is adopted, and in backups; jobs that need it are held |
//! | 3 | a reservation may begin in the very second in which a job of its nodes ends |
//! | 3 | the warning of `--signal` comes no earlier than 30 seconds, or a quarter of the time, after the start |
//! | 3 | administrators give a waiting job any QOS that there is; a job that is not eligible is weighed anew with its nice |
//! | 3 | a user who is no administrator has 500 triggers at most |
//! | 3 | a job of which processes cannot be killed ends as its script has ended, and its node is drained |
//! | 3 | a persistent buffer is destroyed though jobs wait for it; a job that is to destroy one in use has no nodes meanwhile, and none destroys what it uses |
//! | 3 | a job that a limit keeps, or whose persistent buffers are not there, is not staged; the reason of a job to be staged is the plan's to tell |
//! | 3 | a requeued job does not wait for what its last run left on nodes that do not answer |
//! | 3 | DataWarp requests from before the pools were known are resolved when staging begins; SystemComment says `data_in`, `data_out` |
//! | 3 | a job for more nodes than its partition has waits for PartitionNodeLimit |
use model::Reply;

use crate::on::{Answer, trust};
use crate::{Cluster, blobs};

/// The newest that this release knows.
pub const LATEST: u32 = 3;

impl Cluster {
    /// The edition of the rules that count.
    pub fn rules(&self) -> u32 {
        self.rules
    }

    /// One that begins today; a log begins with no rules adopted (`Default`).
    pub fn of_today() -> Cluster {
        Cluster { rules: LATEST, ..Cluster::default() }
    }
}

/// Rules never go back. Whoever does not know the new ones stops when it sees them.
pub(crate) fn adopt(cluster: &mut Cluster, edition: u32) -> Answer {
    if cluster.rules < 3 && edition >= 3 {
        blobs::discard_forged(cluster);
        trust::be_lenient(cluster);
    }
    cluster.rules = cluster.rules.max(edition);
    Ok(Reply::Ok)
}
