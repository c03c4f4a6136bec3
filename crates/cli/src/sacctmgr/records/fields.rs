//! Columns of the lists of records, and which of them are shown unasked.
use super::Record;

/// Name, title, width.
pub type Field = (&'static str, &'static str, i32);

const EVENT: &[Field] = &[
    ("Cluster", "Cluster", 10),
    ("ClusterNodes", "Cluster Nodes", 20),
    ("CPUCount", "CPU Cnt", 7),
    ("Duration", "Duration", 13),
    ("NodeNames", "NodeName", -15),
    ("TimeStart", "TimeStart", 19),
    ("Start", "TimeStart", 19),
    ("TimeEnd", "TimeEnd", 19),
    ("End", "TimeEnd", 19),
    ("State", "State", 6),
    ("StateRaw", "StateRaw", 8),
    ("Reason", "Reason", 30),
    ("User", "User", 10),
    ("Event", "Event", 7),
    ("EventRaw", "EventRaw", 8),
    ("TRES", "TRES", 20),
];
const TRANSACTION: &[Field] = &[
    ("Time", "Time", 19),
    ("TimeStamp", "Time", 19),
    ("Action", "Action", 20),
    ("Actor", "Actor", 10),
    ("Where", "Where", 20),
    ("Info", "Info", 20),
    ("Accounts", "Account", 10),
    ("Clusters", "Cluster", 10),
    ("ID", "ID", 6),
    ("Users", "User", 10),
];
const PROBLEM: &[Field] =
    &[("Cluster", "Cluster", 10), ("Account", "Account", 10), ("User", "User", 10), ("Problem", "Problem", 40)];
const RESERVATION: &[Field] = &[
    ("Cluster", "Cluster", 10),
    ("Name", "Name", 10),
    ("Associations", "Assocs", 10),
    ("Flags", "Flags", 20),
    ("ID", "ID", 6),
    ("NodeNames", "NodeName", -15),
    ("TRES", "TRES", 20),
    ("TimeStart", "TimeStart", 19),
    ("Start", "TimeStart", 19),
    ("TimeEnd", "TimeEnd", 19),
    ("End", "TimeEnd", 19),
    ("UnusedWall", "UnusedWall", 10),
];
const FEDERATION: &[Field] = &[
    ("Federation", "Federation", 10),
    ("Name", "Federation", 10),
    ("Cluster", "Cluster", 10),
    ("ID", "ID", 6),
    ("Features", "Features", 20),
    ("FedState", "FedState", 12),
    ("FedStateRaw", "FedStateRaw", 11),
];
const RUNAWAY: &[Field] = &[
    ("ID", "ID", 6),
    ("Name", "Name", 10),
    ("Partition", "Partition", 10),
    ("Cluster", "Cluster", 10),
    ("State", "State", 6),
    ("TimeSubmit", "TimeSubmit", 19),
    ("TimeStart", "TimeStart", 19),
    ("Start", "TimeStart", 19),
    ("TimeEnd", "TimeEnd", 19),
    ("End", "TimeEnd", 19),
];

pub fn of(record: Record) -> &'static [Field] {
    match record {
        Record::Event => EVENT,
        Record::Transaction => TRANSACTION,
        Record::Problem => PROBLEM,
        Record::Reservation => RESERVATION,
        Record::Federation => FEDERATION,
        Record::RunawayJobs => RUNAWAY,
        Record::Configuration | Record::Stats => &[],
    }
}

/// Of events, those of clusters alone have columns of their own.
pub fn usual(record: Record, of_clusters: bool) -> &'static str {
    match record {
        Record::Event if of_clusters => "Cluster,TRES,Start,End,ClusterNodes",
        Record::Event => "Cluster,NodeNames,Start,End,State,Reason,User",
        Record::Transaction => "Time,Action,Actor,Where,Info",
        Record::Problem => "Cluster,Account,User,Problem",
        Record::Reservation => "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall",
        Record::Federation => "Federation,Cluster,ID%2,Features,FedState",
        Record::RunawayJobs => "ID%12,Name,Partition,Cluster,State%10,TimeSubmit,Start,End",
        Record::Configuration | Record::Stats => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::RECORDS;
    use super::*;
    use crate::accounting::chosen;

    #[test]
    fn what_is_shown_unasked_is_there() {
        for (_, _, record) in RECORDS {
            for of_clusters in [false, true] {
                let format = usual(*record, of_clusters);
                assert!(chosen(of(*record), format, |field| field.0, |field| (field.1, field.2)).is_ok(), "{record:?}");
            }
        }
    }
}
