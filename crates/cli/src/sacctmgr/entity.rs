//! What sacctmgr speaks of, and what it may do with it.
use model::accounts::Field;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Account,
    Association,
    Cluster,
    Coordinator,
    Qos,
    Tres,
    User,
    Wckey,
}

pub const ENTITIES: &[(&str, usize, Entity)] = &[
    ("accounts", 4, Entity::Account),
    ("acct", 4, Entity::Account),
    ("associations", 2, Entity::Association),
    ("clusters", 2, Entity::Cluster),
    ("coordinators", 4, Entity::Coordinator),
    ("qos", 1, Entity::Qos),
    ("tres", 2, Entity::Tres),
    ("users", 1, Entity::User),
    ("wckeys", 1, Entity::Wckey),
];

impl Entity {
    pub fn has(self, field: Field) -> bool {
        let is_qos_only = field >= Field::Flags;
        match self {
            Entity::Qos => {
                is_qos_only
                    || field >= Field::GrpJobs
                    || matches!(field, Field::Description | Field::Priority | Field::MinPriority | Field::RawUsage)
            }
            Entity::Account => {
                let of_others = [
                    Field::DefaultAccount,
                    Field::DefaultWckey,
                    Field::AdminLevel,
                    Field::NewName,
                    Field::Classification,
                ];
                !is_qos_only && !of_others.contains(&field)
            }
            Entity::User => {
                let of_others = [Field::Description, Field::Organization, Field::Parent, Field::Classification];
                !is_qos_only && !of_others.contains(&field)
            }
            Entity::Cluster | Entity::Association => {
                !is_qos_only && field >= Field::Comment && field != Field::RawUsage
            }
            Entity::Coordinator | Entity::Tres | Entity::Wckey => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Add,
    Delete,
    Modify,
    Show,
}

pub const VERBS: &[(&str, usize, Verb)] = &[
    ("add", 2, Verb::Add),
    ("create", 2, Verb::Add),
    ("delete", 3, Verb::Delete),
    ("remove", 3, Verb::Delete),
    ("list", 2, Verb::Show),
    ("show", 2, Verb::Show),
    ("modify", 1, Verb::Modify),
    ("update", 1, Verb::Modify),
];

pub fn may(verb: Verb, entity: Entity) -> bool {
    match verb {
        Verb::Show => true,
        Verb::Add | Verb::Delete => !matches!(entity, Entity::Association | Entity::Tres),
        Verb::Modify => !matches!(entity, Entity::Association | Entity::Tres | Entity::Wckey | Entity::Coordinator),
    }
}

pub fn must_include(verb: Verb) -> &'static str {
    match verb {
        Verb::Add => {
            "Input line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
        }
        Verb::Show => {
            "Input line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\""
        }
        Verb::Modify => {
            "Input line must include \"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\""
        }
        Verb::Delete => {
            "Input line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
        }
    }
}

/// By any beginning of a name that is long enough.
pub fn find<T: Copy>(table: &[(&str, usize, T)], word: &str) -> Option<T> {
    let fits = |(name, least, _): &&(&str, usize, T)| word.len() >= *least && name.starts_with(word);
    table.iter().find(fits).map(|(_, _, found)| *found)
}
