use model::accounts::{Account, Accounts, Association, Change, Edit, Field, NamedValue, Shares, Value, Wckey};

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

#[test]
fn of_wckeys_only_the_new_are_told_and_those_named_go() {
    let mut all = Accounts::default();
    all.wckeys.insert(Wckey { name: "one".into(), user: "bob".into(), cluster: String::new() });
    let words = read(Entity::User, "bob wckey=one,two", Begin::Values).unwrap();
    let (_, text) = tell::add(&all, &ClusterFacts::default(), Entity::User, &words).unwrap();
    assert_eq!(text.matches("W = ").count(), 1, "{text}");
    let words = read(Entity::User, "bob wckey=one,two", Begin::Conditions).unwrap();
    let (change, _) = tell::delete(&all, &ClusterFacts::default(), Entity::User, &words).unwrap();
    assert!(matches!(change, Change::DeleteWckeys { names, users, .. } if names.len() == 2 && users == ["bob"]));
}

#[test]
fn wckeys_are_chosen_by_either_name() {
    for condition in ["names=one", "wckeys=one", "one"] {
        let words = read(Entity::Wckey, condition, Begin::Conditions).unwrap();
        assert_eq!(words.filter.names.into_iter().collect::<Vec<_>>(), ["one"], "{condition}");
    }
}

#[test]
fn users_who_take_over_a_limit_are_told_too() {
    let mut all = Accounts::default();
    let account = |id, parent, name: &str, user: &str| Association {
        id,
        parent,
        account: name.into(),
        user: user.into(),
        ..Default::default()
    };
    for one in [account(1, 0, "root", ""), account(2, 1, "a", ""), account(3, 2, "a", "bob"), account(4, 2, "a", "eve")]
    {
        all.accounts.entry(one.account.clone()).or_insert(Account { name: one.account.clone(), ..Default::default() });
        all.associations.insert(one.id, one);
    }
    all.associations.get_mut(&4).unwrap().limits.max_jobs = Some(1);
    let modify = |text: &str| {
        let words = read(Entity::Account, text, Begin::Conditions).unwrap();
        tell::modify(&all, &ClusterFacts::default(), Entity::Account, &words).unwrap().1
    };
    let told = modify("where name=a set maxjobs=3");
    assert!(told.contains("U = bob") && !told.contains("U = eve"), "{told}");
    assert!(!modify("where name=a set grpjobs=3").contains("U = "));
}

/// The entities as a program reads them.
fn read_back(all: &Accounts, entity: Entity, text: &str) -> serde_json::Value {
    let words = read(entity, text, Begin::Conditions).unwrap();
    let facts = ClusterFacts { name: "main".into(), gres: vec!["gpu".into()], ..ClusterFacts::default() };
    let text = super::json::document(all, &facts, entity, &words, &Options::default(), Default::default());
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn entities_are_documents_as_slurms_clients_read_them() {
    let mut all = Accounts::default();
    let mut qos = model::accounts::Qos { id: 3, name: "fast".into(), priority: 7, ..Default::default() };
    qos.flags.insert("DenyOnLimit".into());
    qos.limits.max_jobs_per_user = Some(5);
    qos.limits.max_tres_per_user.0.insert("gres/gpu".into(), 2);
    all.qos.insert("fast".into(), qos);
    let read = read_back(&all, Entity::Qos, "");
    let qos = &read["qos"][0];
    assert_eq!(qos["flags"], serde_json::json!(["DENY_ON_LIMIT"]));
    assert_eq!(qos["priority"], serde_json::json!({"set": true, "infinite": false, "number": 7}));
    let max = &qos["limits"]["max"];
    assert_eq!(max["jobs"]["active_jobs"]["per"]["user"]["number"], 5);
    assert_eq!(max["jobs"]["active_jobs"]["per"]["account"]["infinite"], true);
    let gpus = serde_json::json!([{"type": "gres", "name": "gpu", "id": 1001, "count": 2}]);
    assert_eq!(max["tres"]["per"]["user"], gpus);

    let own = |id, parent, account: &str, user: &str| Association {
        id,
        parent,
        account: account.into(),
        user: user.into(),
        ..Default::default()
    };
    for one in [own(1, 0, "root", ""), own(2, 1, "physics", ""), own(3, 2, "physics", "bob")] {
        all.associations.insert(one.id, one);
    }
    all.associations.get_mut(&2).unwrap().limits.max_wall = Some(60);
    let bob = model::accounts::User { name: "bob".into(), default_account: "physics".into(), ..Default::default() };
    all.users.insert("bob".into(), bob);
    let read = read_back(&all, Entity::Association, "user=bob");
    let [place] = &read["associations"].as_array().expect("a list")[..] else { panic!("one place: {read}") };
    assert_eq!((&place["cluster"], &place["lineage"]), (&"main".into(), &"/physics/0-bob/".into()));
    assert_eq!(place["max"]["jobs"]["per"]["wall_clock"]["number"], 60, "the account's holds for its users");
    assert_eq!(place["is_default"], true);
    let read = read_back(&all, Entity::User, "withassoc");
    assert_eq!(read["users"][0]["default"]["account"], "physics");
    assert_eq!(read["users"][0]["associations"][0]["id"], 3);
    assert_eq!(read_back(&all, Entity::Tres, "")["TRES"][8]["name"], "gpu");
}

#[test]
fn a_key_needs_a_name_and_a_user_and_what_is_not_there_is_not_deleted() {
    let all = Accounts {
        wckeys: [Wckey { name: "one".into(), user: "bob".into(), ..Wckey::default() }].into_iter().collect(),
        ..Accounts::default()
    };
    let facts = ClusterFacts::default();
    for (text, complaint) in [("names=one", "user to add"), ("user=bob", "wckey to add")] {
        let words = read(Entity::Wckey, text, Begin::Conditions).unwrap();
        let (told, code) = tell::add(&all, &facts, Entity::Wckey, &words).unwrap_err();
        assert!(told.contains(complaint) && code == 1, "{text}: {told}");
    }
    let words = read(Entity::Wckey, "names=two users=bob", Begin::Conditions).unwrap();
    let (_, told) = tell::add(&all, &facts, Entity::Wckey, &words).unwrap();
    assert_eq!(told, " Adding WCKey(s)\n  U = bob       W = two       \n");
    assert_eq!(tell::delete(&all, &facts, Entity::Wckey, &words), Err((" Nothing deleted\n".into(), 1)));
    let words = read(Entity::Wckey, "names=one", Begin::Conditions).unwrap();
    assert!(tell::delete(&all, &facts, Entity::Wckey, &words).is_ok());
}
