//! Every call with the message it takes and the nouns inside, read as the daemons read them.
use std::sync::LazyLock;

use bytes::Bytes;
use controller::foreign_bytes::read_sent;
use model::codec;
use prost::Message;
use testkit::hostile_values::draw;
use wire::proto;

/// A message, with the calls whose nouns are the same.
struct Envelope {
    calls: &'static [&'static str],
    read: fn(&[u8]),
    draw: fn(&mut &[u8]) -> Vec<u8>,
}

pub struct CallRow {
    pub call: &'static str,
    /// Reads a request as its handler does.
    pub read: fn(&[u8]),
    /// A request whose nouns the bytes choose.
    pub draw: fn(&mut &[u8]) -> Vec<u8>,
}

/// A field of an envelope that holds one noun, or a list of them.
trait NounField {
    fn nouns(&self) -> Vec<&[u8]>;
    fn holding(nouns: Vec<Bytes>) -> Self;
}

impl NounField for Bytes {
    fn nouns(&self) -> Vec<&[u8]> {
        vec![self]
    }

    fn holding(mut nouns: Vec<Bytes>) -> Bytes {
        nouns.pop().unwrap_or_default()
    }
}

impl NounField for Vec<Bytes> {
    fn nouns(&self) -> Vec<&[u8]> {
        self.iter().map(|noun| &**noun).collect()
    }

    fn holding(nouns: Vec<Bytes>) -> Vec<Bytes> {
        nouns
    }
}

/// As the handler reads it; what was read can be kept in the log and read from there.
fn read<T: codec::Decode + serde::Serialize>(bytes: &[u8]) {
    if let Ok(value) = codec::decode_sent::<T>(bytes) {
        let written = codec::encode(&value);
        let again = codec::decode::<T>(&written).expect("what was taken can be kept");
        // Not compared as values: NaN is not itself.
        assert_eq!(written, codec::encode(&again));
    }
    drop(read_sent::<T>(bytes));
}

/// One noun, mostly; some lists are longer.
fn drawn<T: codec::Decode + serde::Serialize>(entropy: &mut &[u8]) -> Vec<Bytes> {
    let n_nouns = entropy.first().map_or(1, |first| usize::from(*first) % 4).max(1);
    let mut drawn = || draw::<T>(entropy).map(|value| Bytes::from(codec::encode(&value)));
    (0..n_nouns).filter_map(|_| drawn()).collect()
}

macro_rules! envelopes {
    ($($message:ident { $($field:ident: $noun:ty),* }: $($call:literal)+;)*) => {
        &[$(Envelope {
            calls: &[$($call),+],
            read: |bytes| {
                let Ok(message) = proto::$message::decode(bytes) else { return };
                $(message.$field.nouns().into_iter().for_each(read::<$noun>);)*
                // Messages without nouns are plain values.
                drop(message.encode_to_vec());
            },
            draw: |_entropy| {
                #[allow(unused_mut, reason = "messages without nouns stay as they are")]
                let mut message = proto::$message::default();
                $(message.$field = NounField::holding(drawn::<$noun>(_entropy));)*
                message.encode_to_vec()
            },
        }),*]
    };
}

const ENVELOPES: &[Envelope] = envelopes! {
    SubmitRequest { spec: model::JobSpec, blobs: model::command::Blob, more: model::JobSpec }: "Submit";
    CommandRequest { command: model::Command }:
        "Cancel" "Hold" "Release" "Requeue" "Suspend" "Resume" "UpdateJob" "Complete" "CreateStep" "CancelStep"
        "UpdateNodes" "UpdatePartition" "CreatePartition" "DeletePartition" "CreateReservation" "UpdateReservation"
        "DeleteReservation" "SetTrigger" "SetDampening" "ClearTriggers" "DropBuffer" "Renew";
    CommandRequest { command: model::accounts::Change }: "ChangeAccounts";
    CommandRequest { command: model::loudness::LoudnessChange }: "SetDebug";
    CommandRequest { command: model::history::AmendRequest }: "AmendHistory";
    CommandRequest { command: model::members::Wish }: "ChangeMembers";
    CommandRequest { command: model::trust::JoinRequest }: "Join";
    CommandRequest { command: model::trust::Role }: "MakeToken";
    CommandRequest { command: model::trust::TokensRequest }: "ChangeTokens";
    CommandRequest { command: model::NodeName }: "RemoveNode";
    SignalRequest { request: model::request::SignalRequest }: "Signal";
    JobsRequest { filter: model::request::JobFilter }: "Jobs" "WatchJobs";
    HistoryRequest { query: model::history::HistoryQuery }: "History";
    BlobRequest { id: model::BlobId }: "Blob";
    WhyRequest { job: model::JobRef }: "Why";
    AuditRequest { query: model::audit::AuditQuery }: "Audit" "ReadAudit";
    FromAgent { report: model::agent::Report }: "Attend";
    ToStep { message: model::attach::ToStep }: "Attach";
    AskRequest { question: model::ask::Question }: "Ask";
    Piece { data: model::staging::MirrorRequest }: "Mirror";
    DiagnoseRequest {}: "Diagnose";
    ShutdownRequest {}: "Shutdown";
    BurstStatusRequest {}: "BurstStatus";
    StagingRequest {}: "WatchStaging";
    LocateRequest {}: "Locate";
    UserTokenRequest {}: "UserToken";
    VouchRequest {}: "Vouch";
    RaftMessage {}: "Raft";
    Nothing {}:
        "Accounts" "Standing" "Chronicle" "Reconfigure" "Triggers" "Nodes" "Configuration" "Reservations" "Licenses"
        "Burst" "Ping" "Backup" "Members" "Stand" "End" "Alive";
};

pub static CALLS: LazyLock<Vec<CallRow>> = LazyLock::new(|| {
    let rows = ENVELOPES.iter().flat_map(|envelope| {
        envelope.calls.iter().map(|call| CallRow { call, read: envelope.read, draw: envelope.draw })
    });
    rows.collect()
});

/// Calls that the table knows.
pub fn calls_with_a_row() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|row| row.call)
}
