//! What mails tell, as the bits that scripts know them by.
use model::spec::{Mail, MailKind};

const BITS: [(MailKind, u32); 10] = [
    (MailKind::Begin, 1),
    (MailKind::End, 2),
    (MailKind::Fail, 4),
    (MailKind::Requeue, 8),
    (MailKind::TimeLimit, 16),
    (MailKind::TimeLimit90, 32),
    (MailKind::TimeLimit80, 64),
    (MailKind::TimeLimit50, 128),
    (MailKind::StageOut, 256),
    (MailKind::InvalidDependency, 1024),
];

pub fn bits(mail: &Mail) -> u32 {
    BITS.iter().filter(|(kind, _)| mail.kinds.contains(kind)).map(|(_, bit)| bit).sum()
}

pub fn of_bits(bits: u32) -> Vec<MailKind> {
    BITS.iter().filter(|(_, bit)| bits & bit != 0).map(|(kind, _)| *kind).collect()
}
