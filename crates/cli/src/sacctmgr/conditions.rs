//! Keys that choose entities: which of them each entity has, and what becomes of their values.
//!
//! A condition that an entity does not have is refused: passed over, it would choose everybody.
use model::accounts::AdminLevel;

use super::Entity;
use super::words::{self, Words, is_begin, unquoted};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Accounts,
    AdminLevels,
    Classification,
    Clusters,
    DefaultAccounts,
    DefaultQos,
    DefaultWckeys,
    Descriptions,
    Ids,
    Kinds,
    Names,
    /// What no cluster here has: flags of machines, numbers of plugins and protocols, federations.
    OfOtherClusters,
    Organizations,
    Parents,
    Partitions,
    PreemptModes,
    Qos,
    Users,
}

/// With as many letters as Slurm needs of each.
type Table = &'static [(&'static str, usize, Condition)];

const OF_PLACES: Table = &[
    ("accounts", 2, Condition::Accounts),
    ("accts", 4, Condition::Accounts),
    ("ids", 1, Condition::Ids),
    ("associations", 2, Condition::Ids),
    ("clusters", 1, Condition::Clusters),
    ("defaultqos", 8, Condition::DefaultQos),
    ("partitions", 3, Condition::Partitions),
    ("parents", 4, Condition::Parents),
    ("qoslevel", 1, Condition::Qos),
    ("users", 1, Condition::Users),
];

/// The entity's own; those of places come after them.
fn own(entity: Entity) -> Table {
    match entity {
        Entity::Account => &[
            ("names", 1, Condition::Names),
            ("accounts", 1, Condition::Accounts),
            ("descriptions", 1, Condition::Descriptions),
            ("organizations", 1, Condition::Organizations),
        ],
        Entity::User => &[
            ("names", 1, Condition::Names),
            ("adminlevel", 2, Condition::AdminLevels),
            ("defaultaccount", 8, Condition::DefaultAccounts),
            ("defaultwckey", 8, Condition::DefaultWckeys),
        ],
        Entity::Association => &[],
        Entity::Cluster => &[
            ("names", 1, Condition::Names),
            ("clusters", 3, Condition::Names),
            ("classification", 3, Condition::Classification),
            ("federations", 3, Condition::OfOtherClusters),
            ("flags", 2, Condition::OfOtherClusters),
            ("pluginidselect", 1, Condition::OfOtherClusters),
            ("rpcversions", 1, Condition::OfOtherClusters),
        ],
        Entity::Qos => &[
            ("names", 1, Condition::Names),
            ("qoslevel", 1, Condition::Names),
            ("clusters", 1, Condition::Clusters),
            ("descriptions", 1, Condition::Descriptions),
            ("ids", 1, Condition::Ids),
            ("preemptmode", 8, Condition::PreemptModes),
        ],
        Entity::Coordinator => &[
            ("accounts", 1, Condition::Accounts),
            ("accts", 4, Condition::Accounts),
            ("names", 1, Condition::Names),
            ("users", 1, Condition::Names),
        ],
        Entity::Tres => &[("type", 2, Condition::Kinds), ("names", 1, Condition::Names), ("ids", 1, Condition::Ids)],
        Entity::Wckey => &[
            ("wckeys", 1, Condition::Names),
            ("names", 1, Condition::Names),
            ("clusters", 1, Condition::Clusters),
            ("users", 1, Condition::Users),
        ],
    }
}

fn all(entity: Entity) -> impl Iterator<Item = &'static (&'static str, usize, Condition)> {
    let has_places = matches!(entity, Entity::Account | Entity::User | Entity::Association);
    let of_places = if has_places { OF_PLACES } else { &[] };
    own(entity).iter().chain(of_places)
}

pub fn names(entity: Entity) -> impl Iterator<Item = (&'static str, Condition)> {
    all(entity).map(|(name, _, condition)| (*name, *condition))
}

pub fn find(entity: Entity, key: &str) -> Option<Condition> {
    all(entity).find(|(name, least, _)| is_begin(key, name, *least)).map(|(_, _, condition)| *condition)
}

/// When something is added, these say what and where.
pub fn names_what_is_added(entity: Entity, condition: Condition) -> bool {
    match entity {
        Entity::Account => matches!(condition, Condition::Accounts | Condition::Names | Condition::Clusters),
        Entity::User => {
            matches!(
                condition,
                Condition::Users | Condition::Names | Condition::Accounts | Condition::Partitions | Condition::Clusters
            )
        }
        Entity::Qos | Entity::Cluster => matches!(condition, Condition::Names | Condition::Clusters),
        _ => true,
    }
}

/// A word without a key: a name, or several; of associations a number, of resources a kind.
pub fn alone(entity: Entity, word: &str, read: &mut Words) -> Result<(), String> {
    let condition = match entity {
        Entity::Association => Condition::Ids,
        Entity::Tres => Condition::Kinds,
        _ => Condition::Names,
    };
    add(entity, condition, word, read)
}

pub fn add(entity: Entity, condition: Condition, value: &str, read: &mut Words) -> Result<(), String> {
    let mut values = words::names(value, entity);
    // `user=`: those that are nobody's.
    if values.is_empty()
        && entity == Entity::Association
        && matches!(condition, Condition::Users | Condition::Partitions)
    {
        values.insert(String::new());
    }
    if condition == Condition::Accounts {
        let in_order = unquoted(value).split(',').map(|name| name.trim().to_lowercase());
        read.accounts.extend(in_order.filter(|name| !name.is_empty()));
    }
    let filter = &mut read.filter;
    let target = match condition {
        Condition::Ids => {
            let what = if entity == Entity::Qos { "QOS ID" } else { "AssocId" };
            for text in values {
                let bad = format!("sacctmgr: error: Invalid value for {what} ({text})");
                filter.ids.insert(text.parse().map_err(|_| bad)?);
            }
            return Ok(());
        }
        Condition::AdminLevels => {
            let levels = values.iter().map(|text| AdminLevel::parse(text).ok_or(format!(" Bad admin level: {text}")));
            filter.admin_levels =
                levels.map(|level| level.map(|level| level.name().to_string())).collect::<Result<_, _>>()?;
            return Ok(());
        }
        Condition::OfOtherClusters => {
            read.is_elsewhere = true;
            return Ok(());
        }
        Condition::Accounts if entity == Entity::Account => &mut filter.names,
        Condition::Users if entity == Entity::User => &mut filter.names,
        Condition::Accounts => &mut filter.accounts,
        Condition::Users => &mut filter.users,
        Condition::Clusters => &mut filter.clusters,
        Condition::Classification => &mut read.classifications,
        Condition::DefaultAccounts => &mut filter.default_accounts,
        Condition::DefaultQos => &mut filter.default_qos,
        Condition::DefaultWckeys => &mut filter.default_wckeys,
        Condition::Descriptions => &mut filter.descriptions,
        Condition::Kinds => &mut read.kinds,
        Condition::Names => &mut filter.names,
        Condition::Organizations => &mut filter.organizations,
        Condition::Parents => &mut filter.parents,
        Condition::Partitions => &mut filter.partitions,
        Condition::PreemptModes => &mut filter.preempt_modes,
        Condition::Qos => &mut filter.qos,
    };
    target.extend(values);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::words::{Begin, read};
    use super::*;

    #[test]
    fn a_condition_that_is_anothers_is_refused() {
        for (entity, word) in [
            (Entity::User, "organization=physics"),
            (Entity::User, "description=x"),
            (Entity::Account, "adminlevel=operator"),
            (Entity::Account, "defaultaccount=x"),
            (Entity::Association, "names=x"),
            (Entity::Association, "description=x"),
            (Entity::Qos, "account=x"),
            (Entity::Qos, "partition=x"),
            (Entity::Cluster, "account=x"),
            (Entity::Tres, "user=x"),
        ] {
            let wrong = read(entity, &[word.into()], Begin::Conditions).unwrap_err();
            assert!(wrong[0].starts_with(&format!(" Unknown condition: {word}")), "{entity:?} {word}: {wrong:?}");
        }
    }

    #[test]
    fn every_condition_chooses() {
        for entity in [
            Entity::Account,
            Entity::Association,
            Entity::Cluster,
            Entity::Coordinator,
            Entity::Qos,
            Entity::Tres,
            Entity::User,
            Entity::Wckey,
        ] {
            let has_places = matches!(entity, Entity::Account | Entity::User | Entity::Association);
            for (key, _, condition) in own(entity).iter().chain(if has_places { OF_PLACES } else { &[] }) {
                let value = match condition {
                    Condition::AdminLevels => "operator",
                    Condition::Ids => "7",
                    _ => "word",
                };
                let said = read(entity, &[format!("{key}={value}")], Begin::Conditions).unwrap();
                assert_ne!(said, Words::default(), "{entity:?} {key}");
            }
        }
        let wrong = read(Entity::Association, &["nobody".into()], Begin::Conditions);
        assert_eq!(wrong, Err(vec!["sacctmgr: error: Invalid value for AssocId (nobody)".into()]));
    }
}
