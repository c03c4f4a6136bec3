//! What is told one by one, and what is only counted: so that nobody fills the audit, or has others' records dropped from it.
//!
//! Who pays for a record is the end that a call comes from: a user of this machine, a whole node, a network of strangers.
//! A node pays alone, whatever users it names. Each minute the counts of what was held back are written.
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use model::Timestamp;
use model::audit::AuditRecord;

/// Refusals of one owner and call, of one owner, of all strangers, and of all others: told in each minute.
const REFUSALS_OF_CALL: u32 = 20;
const REFUSALS_OF_OWNER: u32 = 60;
const REFUSALS_OF_STRANGERS: u32 = 30;
const REFUSALS_OF_KNOWN: u32 = 150;
/// Changes of one owner, and of all: so many at once, and then so many a minute.
const CHANGES_OF_OWNER: ToldPace = ToldPace { at_once: 5_000.0, per_minute: 60.0 };
const CHANGES_OF_ALL: ToldPace = ToldPace { at_once: 20_000.0, per_minute: 300.0 };
const MINUTE_MICROS: u64 = 60_000_000;
/// While there are so many owners in a minute, further strangers are one.
const OWNERS_MAX: usize = 1024;
/// Counts that are written of a minute, the largest; the rest is one more.
const COUNTS_MAX: usize = 20;
/// Records of a day, whatever callers do. The files hold so many of the longest.
#[cfg(test)]
pub const DAILY_MAX: u64 = {
    let refusals = (REFUSALS_OF_STRANGERS + REFUSALS_OF_KNOWN) as u64;
    CHANGES_OF_ALL.at_once as u64 + (refusals + CHANGES_OF_ALL.per_minute as u64 + COUNTS_MAX as u64 + 1) * 24 * 60
};

#[derive(Clone, Copy)]
struct ToldPace {
    at_once: f64,
    per_minute: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum AuditOwner {
    /// Root of this machine, or the user that this daemon runs as: both could as well remove the files.
    Trusted,
    User(u32),
    Node(String),
    Controller(String),
    Stranger(IpAddr),
    /// Strangers beyond the number that is known apart.
    Others,
}

impl AuditOwner {
    fn of(record: &AuditRecord) -> AuditOwner {
        let (kind, name) = record.from.split_once(' ').unwrap_or((&record.from, ""));
        match (kind, record.uid) {
            ("node", _) => AuditOwner::Node(name.to_owned()),
            ("controller", _) => AuditOwner::Controller(name.to_owned()),
            // SAFETY: geteuid cannot fail.
            ("local", Some(uid)) if uid == 0 || uid == unsafe { libc::geteuid() } => AuditOwner::Trusted,
            ("local" | "token", Some(uid)) => AuditOwner::User(uid),
            _ => name.parse().map_or(AuditOwner::Others, |address: SocketAddr| {
                AuditOwner::Stranger(match address.ip().to_canonical() {
                    // A whole network of IPv6 is one machine's to use.
                    IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
                    address => address,
                })
            }),
        }
    }

    fn is_stranger(&self) -> bool {
        matches!(self, AuditOwner::Stranger(_) | AuditOwner::Others)
    }
}

#[derive(Default)]
pub struct FloodGate {
    minute_began: Timestamp,
    owners: HashMap<AuditOwner, OwnerTally>,
    n_refusals_of_strangers: u32,
    n_refusals_of_known: u32,
    changes: Option<ToldBucket>,
}

#[derive(Default)]
struct OwnerTally {
    n_refusals: u32,
    n_refusals_by_call: HashMap<String, u32>,
    changes: Option<ToldBucket>,
    /// By call and by whether it was refused; with the last of them.
    held_back: HashMap<(String, bool), (u32, AuditRecord)>,
}

struct ToldBucket {
    left: f64,
    at: Timestamp,
}

impl ToldBucket {
    fn filled(bucket: Option<ToldBucket>, pace: ToldPace, now: Timestamp) -> ToldBucket {
        let Some(ToldBucket { left, at }) = bucket else { return ToldBucket { left: pace.at_once, at: now } };
        let minutes = now.0.saturating_sub(at.0) as f64 / MINUTE_MICROS as f64;
        ToldBucket { left: (left + minutes * pace.per_minute).min(pace.at_once), at: now }
    }
}

impl FloodGate {
    /// Whether this one is told, and the counts that are due before it.
    pub fn pass(&mut self, record: &AuditRecord) -> (bool, Vec<AuditRecord>) {
        let counts = self.counts_of_past_minute(record.at);
        let mut owner = AuditOwner::of(record);
        if owner == AuditOwner::Trusted {
            return (true, counts);
        }
        // Users and nodes are as many as there are; addresses can be made up.
        if owner.is_stranger() && self.owners.len() >= OWNERS_MAX && !self.owners.contains_key(&owner) {
            owner = AuditOwner::Others;
        }
        let (is_refused, is_stranger) = (!record.refused.is_empty(), owner.is_stranger());
        let tally = self.owners.entry(owner).or_default();
        let is_told = match is_refused {
            true => {
                let (in_all, most) = match is_stranger {
                    true => (&mut self.n_refusals_of_strangers, REFUSALS_OF_STRANGERS),
                    false => (&mut self.n_refusals_of_known, REFUSALS_OF_KNOWN),
                };
                let of_call = tally.n_refusals_by_call.entry(record.call.clone()).or_default();
                let is_told = *of_call < REFUSALS_OF_CALL && tally.n_refusals < REFUSALS_OF_OWNER && *in_all < most;
                if is_told {
                    *of_call += 1;
                    tally.n_refusals += 1;
                    *in_all += 1;
                }
                is_told
            }
            false => {
                let mut own = ToldBucket::filled(tally.changes.take(), CHANGES_OF_OWNER, record.at);
                let mut all = ToldBucket::filled(self.changes.take(), CHANGES_OF_ALL, record.at);
                let is_told = own.left >= 1.0 && all.left >= 1.0;
                if is_told {
                    own.left -= 1.0;
                    all.left -= 1.0;
                }
                (tally.changes, self.changes) = (Some(own), Some(all));
                is_told
            }
        };
        if !is_told {
            let held = tally.held_back.entry((record.call.clone(), is_refused)).or_insert((0, record.clone()));
            held.0 = held.0.saturating_add(1);
        }
        (is_told, counts)
    }

    /// What was held back in the minute that has ended; nothing while it lasts.
    pub fn counts_of_past_minute(&mut self, now: Timestamp) -> Vec<AuditRecord> {
        if now.0.saturating_sub(self.minute_began.0) < MINUTE_MICROS {
            return Vec::new();
        }
        self.minute_began = now;
        (self.n_refusals_of_strangers, self.n_refusals_of_known) = (0, 0);
        let mut counts = Vec::new();
        self.owners.retain(|_, tally| {
            (tally.n_refusals, tally.n_refusals_by_call) = (0, HashMap::new());
            counts.extend(tally.held_back.drain().map(|(_, (n_more, last))| AuditRecord { n_more, ..last }));
            let changes = tally.changes.take().map(|changes| ToldBucket::filled(Some(changes), CHANGES_OF_OWNER, now));
            // Who has all left is as good as unknown.
            tally.changes = changes.filter(|changes| changes.left < CHANGES_OF_OWNER.at_once);
            tally.changes.is_some()
        });
        counts.sort_by_key(|count| std::cmp::Reverse(count.n_more));
        let rest = counts.split_off(counts.len().min(COUNTS_MAX));
        if !rest.is_empty() {
            let (n_counts, n_more) = (rest.len(), rest.iter().fold(0_u32, |sum, one| sum.saturating_add(one.n_more)));
            let about = format!("{n_counts} callers and calls whose records are only counted");
            counts.push(AuditRecord {
                call: "several".into(),
                from: "several".into(),
                about,
                n_more,
                ..Default::default()
            });
        }
        // Written when the clock says so, about a minute that is over.
        let at = if now.0 == u64::MAX { crate::now() } else { now };
        counts.iter_mut().for_each(|count| count.at = at);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(secs: u64, from: &str, uid: u32, call: &str) -> AuditRecord {
        AuditRecord {
            at: Timestamp::from_secs(secs),
            uid: Some(uid),
            from: from.into(),
            call: call.into(),
            refused: "denied".into(),
            ..AuditRecord::default()
        }
    }

    /// How many are told of these.
    fn n_told(gate: &mut FloodGate, records: impl Iterator<Item = AuditRecord>) -> u32 {
        records.filter(|record| gate.pass(record).0).count() as u32
    }

    #[test]
    fn thousand_refusals_of_a_minute_are_counted_in_the_next() {
        let mut gate = FloodGate::default();
        let n = n_told(&mut gate, (0..1000).map(|_| refused(100, "local", 1000, "Shutdown")));
        assert_eq!(n, REFUSALS_OF_CALL);
        assert!(gate.pass(&refused(100, "local", 1001, "Shutdown")).0);
        assert!(gate.counts_of_past_minute(Timestamp::from_secs(159)).is_empty());
        let (is_told, counts) = gate.pass(&refused(160, "local", 1000, "Shutdown"));
        assert!(is_told);
        assert_eq!(counts.iter().map(|count| (count.uid, count.n_more)).collect::<Vec<_>>(), [(Some(1000), 980)]);
        assert!(gate.counts_of_past_minute(Timestamp::from_secs(300)).is_empty(), "told once");
    }

    #[test]
    fn root_of_a_node_pays_for_all_users_that_it_names() {
        let mut gate = FloodGate::default();
        let n = n_told(&mut gate, (0..10_000).map(|uid| refused(100, "node n1", uid, "Shutdown")));
        assert_eq!(n, REFUSALS_OF_CALL);
        let calls =
            (0..10_000).map(|n| refused(100, "node n1", n, ["Backup", "Audit", "Cancel", "unknown"][n as usize % 4]));
        assert_eq!(n_told(&mut gate, calls), REFUSALS_OF_OWNER - REFUSALS_OF_CALL);
        let counts = gate.counts_of_past_minute(Timestamp::from_secs(160));
        let n_counted: u32 = counts.iter().map(|count| count.n_more).sum();
        assert_eq!(n_counted, 20_000 - REFUSALS_OF_OWNER);
        assert!(counts.len() <= 5, "{counts:?}");
    }

    #[test]
    fn strangers_of_all_the_world_take_no_room_from_users() {
        let mut gate = FloodGate::default();
        let address = |n: u32| format!("stranger {}:{}", std::net::Ipv4Addr::from(n), n % 60_000);
        let n =
            n_told(&mut gate, (0..50_000).map(|n| AuditRecord { uid: None, ..refused(100, &address(n), 0, "Join") }));
        assert_eq!(n, REFUSALS_OF_STRANGERS);
        assert!(gate.owners.len() <= OWNERS_MAX + 1, "{}", gate.owners.len());
        assert!(gate.pass(&refused(100, "local", 1000, "Shutdown")).0);
        let counts = gate.counts_of_past_minute(Timestamp::from_secs(160));
        assert!(counts.len() <= COUNTS_MAX + 1);
        let n_counted: u32 = counts.iter().map(|count| count.n_more).sum();
        assert_eq!(n_counted, 50_000 - REFUSALS_OF_STRANGERS);
    }

    #[test]
    fn changes_of_one_user_are_told_at_a_pace_and_root_is_told_of_always() {
        let mut gate = FloodGate::default();
        let change =
            |secs, from: &str, uid| AuditRecord { refused: String::new(), ..refused(secs, from, uid, "Submit") };
        let n = n_told(&mut gate, (0..50_000).map(|_| change(100, "local", 1000)));
        assert_eq!(f64::from(n), CHANGES_OF_OWNER.at_once);
        assert!(gate.pass(&change(100, "local", 1001)).0);
        assert_eq!(n_told(&mut gate, (0..50_000).map(|_| change(100, "local", 0))), 50_000);
        assert_eq!(gate.counts_of_past_minute(Timestamp::from_secs(220))[0].n_more, 45_000);
        let later = n_told(&mut gate, (0..1000).map(|_| change(220, "local", 1000)));
        assert_eq!(f64::from(later), 2.0 * CHANGES_OF_OWNER.per_minute);
        // Nor do many users together get beyond the pace of all.
        let many = n_told(&mut gate, (0..300_000).map(|n| change(220, "local", 2000 + n % 100)));
        assert!(f64::from(many) <= CHANGES_OF_ALL.at_once, "{many}");
    }
}
