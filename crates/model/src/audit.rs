//! The audit: who asked for which change, from where, for whom, and what became of it.
use crate::Timestamp;

record! {
    /// One call. `spur audit` shows it; the controller keeps it as a line of JSON.
    pub struct AuditRecord {
        pub at: Timestamp,
        /// The user who called; empty: a daemon for itself, or nobody whom the cluster knows.
        pub user: String,
        pub uid: Option<u32>,
        /// `local`, `node n1`, `token`, `controller 2` or `stranger 10.0.0.1:4000`.
        pub from: String,
        /// The user for whom it is, where that is another.
        pub behalf: String,
        pub call: String,
        /// What it names: jobs, nodes, accounts and their changes, shortened.
        pub about: String,
        /// Why it was refused; empty: it was allowed.
        pub refused: String,
        /// As many calls like this one, within a minute, are not told one by one. 0: this is one call.
        pub n_more: u32,
        /// So many records before this one were not written, since the disk took none.
        pub n_lost: u32,
        /// The controller that heard it; 0: there is only one.
        pub controller: u64,
    }

    /// Which records are wanted; each list that is empty passes everything.
    pub struct AuditQuery {
        pub users: Vec<String>,
        pub calls: Vec<String>,
        pub only_refused: bool,
        pub since: Option<Timestamp>,
        pub until: Option<Timestamp>,
        /// No more than the newest so many; 0: all.
        pub last: u32,
    }

    pub struct AuditPage {
        pub records: Vec<AuditRecord>,
        /// Controllers that do not answer: what they heard is not among the records.
        pub missing: Vec<u64>,
    }
}

impl AuditQuery {
    pub fn wants(&self, record: &AuditRecord) -> bool {
        let is_of_user = || {
            let names = |word: &String| {
                *word == record.user || *word == record.behalf || record.uid.is_some_and(|uid| uid.to_string() == *word)
            };
            self.users.is_empty() || self.users.iter().any(names)
        };
        let is_of_call =
            || self.calls.is_empty() || self.calls.iter().any(|call| call.eq_ignore_ascii_case(&record.call));
        (!self.only_refused || !record.refused.is_empty())
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at < until)
            && is_of_user()
            && is_of_call()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_passes_what_it_names() {
        let record = AuditRecord {
            at: Timestamp::from_secs(100),
            user: "root".into(),
            uid: Some(0),
            behalf: "alice".into(),
            call: "Submit".into(),
            ..AuditRecord::default()
        };
        let wants = |query: AuditQuery| query.wants(&record);
        assert!(wants(AuditQuery::default()));
        for word in ["root", "0", "alice"] {
            assert!(wants(AuditQuery { users: vec!["bob".into(), word.into()], ..AuditQuery::default() }), "{word}");
        }
        assert!(!wants(AuditQuery { users: vec!["bob".into()], ..AuditQuery::default() }));
        assert!(wants(AuditQuery { calls: vec!["submit".into()], ..AuditQuery::default() }));
        assert!(!wants(AuditQuery { calls: vec!["Cancel".into()], ..AuditQuery::default() }));
        assert!(!wants(AuditQuery { only_refused: true, ..AuditQuery::default() }));
        assert!(!wants(AuditQuery { since: Some(Timestamp::from_secs(101)), ..AuditQuery::default() }));
        assert!(!wants(AuditQuery { until: Some(Timestamp::from_secs(100)), ..AuditQuery::default() }));
    }
}
