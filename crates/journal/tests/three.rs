//! Three members over channels in one process: they elect, replicate, survive the loss of the leader, and bring a
//! member that was away up to date with a snapshot.

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use journal::{Answer, Journal, Leadership, MembersError, Options, ProposeError, Transport};
use support::{Memory, Seen, TempDir, numbered};

const PATIENCE: Duration = Duration::from_secs(60);
/// A leader that is held up for a moment, on a busy machine, leads all the same.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Hands a request to the member in this process, if it is there.
#[derive(Default)]
struct Room {
    members: Mutex<HashMap<u64, Journal<u64>>>,
    /// Members that hear nobody and are heard by nobody.
    isolated: Mutex<HashSet<u64>>,
}

impl Room {
    fn find(&self, from: u64, to: u64) -> Option<Journal<u64>> {
        let isolated = self.isolated.lock().unwrap();
        if isolated.contains(&from) || isolated.contains(&to) {
            return None;
        }
        self.members.lock().unwrap().get(&to).cloned()
    }
}

struct Door {
    room: Weak<Room>,
    member: u64,
}

impl Transport for Door {
    fn call(&self, member: u64, _: &str, request: Vec<u8>) -> Answer {
        let journal = self.room.upgrade().and_then(|room| room.find(self.member, member));
        Box::pin(async move {
            let journal = journal.ok_or_else(|| io::Error::other("nobody there"))?;
            journal.answer(&request).await
        })
    }
}

struct Member {
    journal: Journal<u64>,
    seen: Arc<Mutex<Seen>>,
}

async fn start(room: &Arc<Room>, dir: &TempDir, member: u64) -> Member {
    let options = Options {
        members: BTreeMap::from([1, 2, 3].map(|id| (id, format!("member {id}")))),
        transport: Some(Arc::new(Door { room: Arc::downgrade(room), member })),
        heartbeat: HEARTBEAT,
        segment_bytes: 4000,
        keep_batches: 4,
        ..Options::new(dir.path(), member)
    };
    let (machine, seen) = Memory::new();
    let journal = Journal::open(options, machine).await.unwrap();
    room.members.lock().unwrap().insert(member, journal.clone());
    Member { journal, seen }
}

async fn start_all(room: &Arc<Room>, dirs: &BTreeMap<u64, TempDir>) -> BTreeMap<u64, Member> {
    let mut members = BTreeMap::new();
    for (id, dir) in dirs {
        members.insert(*id, start(room, dir, *id).await);
    }
    members
}

async fn stop_all(room: &Arc<Room>, members: BTreeMap<u64, Member>) {
    for (id, member) in members {
        stop(room, id, member).await;
    }
}

async fn stop(room: &Arc<Room>, id: u64, member: Member) {
    room.members.lock().unwrap().remove(&id);
    member.journal.shutdown().await;
}

async fn leader_of(members: &BTreeMap<u64, Member>) -> u64 {
    let waits = members.iter().map(|(id, member)| {
        let (id, mut leadership) = (*id, member.journal.leadership());
        Box::pin(async move {
            leadership.wait_for(|now| matches!(now, Leadership::Leader { .. })).await.map(|_| id).unwrap()
        })
    });
    let mut waits: Vec<_> = waits.collect();
    let first = std::future::poll_fn(move |context| {
        for wait in &mut waits {
            if let std::task::Poll::Ready(id) = wait.as_mut().poll(context) {
                return std::task::Poll::Ready(id);
            }
        }
        std::task::Poll::Pending
    });
    tokio::time::timeout(PATIENCE, first).await.expect("a leader is elected in time")
}

async fn until_all_have(members: &BTreeMap<u64, Member>, expected: &[Vec<u8>]) {
    let all = async {
        while !members.values().all(|member| member.seen.lock().unwrap().entries == expected) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        let have: Vec<_> = members.values().map(|member| member.seen.lock().unwrap().entries.len()).collect();
        panic!("expected {} entries everywhere, there are {have:?}", expected.len());
    }
}

async fn propose(members: &BTreeMap<u64, Member>, expected: &mut Vec<Vec<u8>>, n_entries: u64) {
    let wanted = expected.len() as u64 + n_entries;
    while (expected.len() as u64) < wanted {
        let leader = &members[&leader_of(members).await].journal;
        let entry = numbered(expected.len() as u64);
        match tokio::time::timeout(PATIENCE, leader.propose(entry.clone())).await.expect("nobody hangs") {
            Ok(_) => expected.push(entry),
            // On a busy machine a leader may be thought lost; nothing was kept.
            Err(ProposeError::NotLeader { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_survive_the_loss_of_their_leader_and_take_it_back() {
    let room = Arc::new(Room::default());
    let dirs: BTreeMap<u64, TempDir> = (1..=3).map(|id| (id, TempDir::new())).collect();
    let mut members = start_all(&room, &dirs).await;
    let mut expected = Vec::new();
    propose(&members, &mut expected, 30).await;
    until_all_have(&members, &expected).await;

    let leader = leader_of(&members).await;
    let follower = members.keys().copied().find(|id| *id != leader).unwrap();
    let refused = members[&follower].journal.propose(b"wrong door".to_vec()).await;
    assert!(matches!(refused, Err(ProposeError::NotLeader { .. })), "{refused:?}");

    let lost = members.remove(&leader).unwrap();
    stop(&room, leader, lost).await;
    propose(&members, &mut expected, 60).await;
    until_all_have(&members, &expected).await;
    for member in members.values() {
        member.journal.snapshot_now().await.unwrap();
    }
    propose(&members, &mut expected, 5).await;

    let back = start(&room, &dirs[&leader], leader).await;
    members.insert(leader, back);
    until_all_have(&members, &expected).await;
    assert!(members[&leader].seen.lock().unwrap().restored > 30, "it was too far behind for anything but a snapshot");

    propose(&members, &mut expected, 10).await;
    until_all_have(&members, &expected).await;
    stop_all(&room, members).await;
    let members = start_all(&room, &dirs).await;
    propose(&members, &mut expected, 3).await;
    until_all_have(&members, &expected).await;
    stop_all(&room, members).await;
}

/// Those that are left when the leader of three is cut off, which one that was, and itself.
async fn without_their_leader(
    room: &Arc<Room>,
    dirs: &BTreeMap<u64, TempDir>,
    expected: &mut Vec<Vec<u8>>,
) -> (BTreeMap<u64, Member>, u64, Member) {
    let mut members = start_all(room, dirs).await;
    propose(&members, expected, 5).await;
    let leader = leader_of(&members).await;
    room.isolated.lock().unwrap().insert(leader);
    let cut_off = members.remove(&leader).unwrap();
    (members, leader, cut_off)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cut_off_leader_could_not_commit_is_refused_and_gone() {
    let room = Arc::new(Room::default());
    let dirs: BTreeMap<u64, TempDir> = (1..=3).map(|id| (id, TempDir::new())).collect();
    let mut expected = Vec::new();
    let (mut members, old_leader, cut_off) = without_their_leader(&room, &dirs, &mut expected).await;
    let hopeless: Vec<_> = (0..3)
        .map(|n| {
            let journal = cut_off.journal.clone();
            tokio::spawn(async move { journal.propose(format!("hopeless {n}").into_bytes()).await })
        })
        .collect();
    propose(&members, &mut expected, 20).await;

    room.isolated.lock().unwrap().clear();
    members.insert(old_leader, cut_off);
    for proposal in hopeless {
        let outcome = tokio::time::timeout(PATIENCE, proposal).await.expect("nobody hangs").unwrap();
        assert!(matches!(outcome, Err(ProposeError::NotLeader { .. })), "{outcome:?}");
    }
    until_all_have(&members, &expected).await;
    propose(&members, &mut expected, 5).await;
    until_all_have(&members, &expected).await;
    stop_all(&room, members).await;
    let members = start_all(&room, &dirs).await;
    propose(&members, &mut expected, 1).await;
    until_all_have(&members, &expected).await;
    stop_all(&room, members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_majority_can_stop() {
    let room = Arc::new(Room::default());
    let dirs: BTreeMap<u64, TempDir> = (1..=3).map(|id| (id, TempDir::new())).collect();
    let (members, _, cut_off) = without_their_leader(&room, &dirs, &mut Vec::new()).await;
    let journal = cut_off.journal.clone();
    let hopeless = tokio::spawn(async move { journal.propose(b"hopeless".to_vec()).await });
    stop_all(&room, members).await;
    tokio::time::timeout(PATIENCE, cut_off.journal.shutdown()).await.expect("nobody hangs");
    let outcome = tokio::time::timeout(PATIENCE, hopeless).await.expect("nobody hangs").unwrap();
    assert!(outcome.is_err(), "{outcome:?}");
}

/// The log goes on without it for so long that only a snapshot brings it up to date: nobody applies or cuts what it had taken.
#[tokio::test(flavor = "multi_thread")]
async fn proposers_at_a_leader_that_is_overtaken_by_a_snapshot_are_answered() {
    let room = Arc::new(Room::default());
    let dirs: BTreeMap<u64, TempDir> = (1..=3).map(|id| (id, TempDir::new())).collect();
    let mut expected = Vec::new();
    let (mut members, old_leader, cut_off) = without_their_leader(&room, &dirs, &mut expected).await;
    let journal = cut_off.journal.clone();
    let hopeless = tokio::spawn(async move { journal.propose(b"hopeless".to_vec()).await });
    propose(&members, &mut expected, 60).await;
    until_all_have(&members, &expected).await;
    for member in members.values() {
        member.journal.snapshot_now().await.unwrap();
    }
    propose(&members, &mut expected, 5).await;

    room.isolated.lock().unwrap().clear();
    members.insert(old_leader, cut_off);
    let outcome = tokio::time::timeout(PATIENCE, hopeless).await.expect("nobody hangs").unwrap();
    assert!(matches!(outcome, Err(ProposeError::NotLeader { .. } | ProposeError::Unknown)), "{outcome:?}");
    until_all_have(&members, &expected).await;
    assert!(
        members[&old_leader].seen.lock().unwrap().restored > 30,
        "it was too far behind for anything but a snapshot"
    );
    tokio::time::timeout(PATIENCE, stop_all(&room, members)).await.expect("nobody hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_added_and_removed_while_entries_are_written() {
    let room = Arc::new(Room::default());
    let dirs: BTreeMap<u64, TempDir> = (1..=3).map(|id| (id, TempDir::new())).collect();
    let open = async |id: u64| {
        let options = Options {
            joins: id != 1,
            transport: Some(Arc::new(Door { room: Arc::downgrade(&room), member: id })),
            heartbeat: HEARTBEAT,
            ..Options::new(dirs[&id].path(), id)
        };
        let (machine, seen) = Memory::new();
        let journal = Journal::open(options, machine).await.unwrap();
        room.members.lock().unwrap().insert(id, journal.clone());
        Member { journal, seen }
    };
    let mut members = BTreeMap::from([(1, open(1).await)]);
    let mut expected = Vec::new();
    assert!(members[&1].journal.is_lone());
    propose(&members, &mut expected, 10).await;
    for id in [2, 3] {
        let member = open(id).await;
        members[&1].journal.add_member(id, &format!("member {id}")).await.unwrap();
        members.insert(id, member);
        propose(&members, &mut expected, 5).await;
    }
    until_all_have(&members, &expected).await;
    let standing = members[&1].journal.standing();
    assert_eq!(standing.members.iter().filter(|member| member.is_voter).count(), 3, "{standing:?}");
    assert_eq!(members[&1].journal.confirm().await, Ok(()));
    assert!(members[&2].journal.confirm().await.is_err(), "a follower cannot answer for the leader");
    assert_eq!(members[&1].journal.remove_member(1).await, Err(MembersError::Leads(1)));
    assert_eq!(members[&1].journal.remove_member(9).await, Err(MembersError::Unknown(9)));

    // The lead is handed on: the old leader falls silent, the new one stands when the others wait no longer.
    let (old, new) = (members[&1].journal.clone(), members[&2].journal.clone());
    let silence = tokio::spawn(async move { old.fall_silent(PATIENCE).await });
    let mut leadership = new.leadership();
    while !matches!(*leadership.borrow_and_update(), Leadership::Leader { .. }) {
        tokio::time::sleep(new.lease()).await;
        new.stand().await.unwrap();
        let _ = tokio::time::timeout(new.lease(), leadership.changed()).await;
    }
    assert!(silence.await.unwrap());
    propose(&members, &mut expected, 5).await;

    members[&leader_of(&members).await].journal.remove_member(1).await.unwrap();
    let gone = members.remove(&1).unwrap();
    stop(&room, 1, gone).await;
    propose(&members, &mut expected, 5).await;
    until_all_have(&members, &expected).await;
    stop_all(&room, members).await;
}
