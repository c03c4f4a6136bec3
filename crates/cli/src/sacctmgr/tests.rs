use model::accounts::{Accounts, Edit, Field, NamedValue, Shares, Value};

use super::show::{self, ClusterFacts};
use super::words::{self, Begin};
use super::{Entity, Options, tell};
use crate::table::Style;

fn read(entity: Entity, text: &str, begin: Begin) -> Result<words::Words, Vec<String>> {
    let words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    words::read(entity, &words, begin)
}

#[test]
fn conditions_and_values_are_told_apart() {
    let read =
        read(Entity::User, "where name=Bob,eve account=chem set fairshare=parent qos+=high,low", Begin::Conditions)
            .unwrap();
    assert_eq!(read.filter.names.iter().collect::<Vec<_>>(), ["bob", "eve"]);
    assert_eq!(read.filter.accounts.iter().collect::<Vec<_>>(), ["chem"]);
    let added = NamedValue::Changes(vec![(true, "high".into()), (true, "low".into())]);
    assert_eq!(
        read.edits,
        [
            Edit { field: Field::Shares, value: Value::Shares(Shares::Parent) },
            Edit { field: Field::Qos, value: Value::Names(added) }
        ]
    );
}

#[test]
fn names_may_stand_alone_and_keys_may_be_cut_short() {
    let read = read(Entity::Account, "physics,Chem desc='the' org=uni parent=root", Begin::Values).unwrap();
    assert_eq!(read.filter.names.iter().collect::<Vec<_>>(), ["chem", "physics"]);
    assert_eq!(read.parent, "root");
    let fields: Vec<Field> = read.edits.iter().map(|edit| edit.field).collect();
    assert_eq!(fields, [Field::Description, Field::Organization, Field::Parent]);
}

#[test]
fn wrong_words_are_all_named() {
    let wrong = read(Entity::User, "bob colour=red share=many", Begin::Values).unwrap_err();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("colour=red") && wrong[1].contains("'many'"), "{wrong:?}");
}

#[test]
fn an_empty_cluster_shows_its_heading() {
    let words = read(Entity::User, "", Begin::Conditions).unwrap();
    let options = Options { has_heading: true, style: Style::Aligned, ..Options::default() };
    let text = show::render(&Accounts::default(), &ClusterFacts::default(), Entity::User, &words, &options).unwrap();
    assert_eq!(text, "      User   Def Acct     Admin \n---------- ---------- --------- \n");
    let words = read(Entity::User, "format=nonsense", Begin::Conditions).unwrap();
    let refused = show::render(&Accounts::default(), &ClusterFacts::default(), Entity::User, &words, &options);
    assert_eq!(refused, Err("nonsense".into()));
}

#[test]
fn a_user_needs_an_account_that_exists() {
    let words = read(Entity::User, "bob account=nope", Begin::Values).unwrap();
    let (text, code) = tell::add(&Accounts::default(), &ClusterFacts::default(), Entity::User, &words).unwrap_err();
    assert_eq!(code, 1);
    assert!(text.contains("This account 'nope' doesn't exist."), "{text}");
}
