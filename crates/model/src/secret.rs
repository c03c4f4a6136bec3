//! What is never shown, sent or written down: passwords, and the texts that hold them.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Stands where a secret would.
pub const HIDDEN: &str = "(hidden)";

/// A text that prints, and is encoded, as nothing of itself; `expose` alone gives it away.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> SecretText {
        SecretText(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without this secret, wherever it stands in it.
    pub fn hidden_in(&self, text: &str) -> String {
        if self.is_empty() { text.to_owned() } else { text.replace(self.expose(), HIDDEN) }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "" } else { HIDDEN })
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("")
    }
}

/// Whatever stands there is passed over: a secret comes from its own file only.
impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(from).map(|_| SecretText::default())
    }
}

/// A key or parameter of this name holds a secret, or the place of one.
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "pwd", "secret", "privatekey", "apikey", "credential"].iter().any(|word| name.contains(word))
        || matches!(name.as_str(), "token" | "auth_token" | "access_token" | "bearer")
}

/// An address such as `postgres://user:password@host/name?password=…` without what is secret of it.
pub fn without_password(address: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = address.split_once("://") else { return Cow::Borrowed(address) };
    // A password may hold any sign, so the last `@` ends it.
    let (user, place) = match rest.rsplit_once('@') {
        // Whether it is a login or a parameter that holds the `@` cannot be told.
        Some((login, _)) if login.contains(':') && login.contains('?') => {
            return Cow::Owned(format!("{scheme}://{HIDDEN}"));
        }
        Some((login, place)) if login.contains(':') => (login.split(':').next(), place),
        _ => (None, rest),
    };
    let (place, parameters) = place.split_once('?').map_or((place, None), |(place, rest)| (place, Some(rest)));
    let is_public = |one: &&str| !names_secret(one.split('=').next().unwrap_or_default());
    let kept: Option<Vec<&str>> = parameters.map(|all| all.split('&').filter(is_public).collect());
    let is_whole = parameters.is_none_or(|all| kept.as_ref().is_some_and(|kept| kept.len() == all.split('&').count()));
    if user.is_none() && is_whole {
        return Cow::Borrowed(address);
    }
    let login = user.map(|user| format!("{user}@")).unwrap_or_default();
    let parameters = kept.filter(|kept| !kept.is_empty()).map(|kept| format!("?{}", kept.join("&")));
    Cow::Owned(format!("{scheme}://{login}{place}{}", parameters.unwrap_or_default()))
}

/// The value of a configuration's key as it may be shown: `a=1,pass=x` without the `x`, addresses without passwords.
pub fn public_value(value: &str) -> Cow<'_, str> {
    let value = without_password(value);
    let is_public = |one: &str| !one.split_once('=').is_some_and(|(name, _)| names_secret(name.trim()));
    if value.split(',').all(is_public) {
        return value;
    }
    let shown = |one: &str| match one.split_once('=') {
        Some((name, _)) if names_secret(name.trim()) => format!("{name}={HIDDEN}"),
        _ => one.to_owned(),
    };
    Cow::Owned(value.split(',').map(shown).collect::<Vec<_>>().join(","))
}

/// For fields that hold an address: what is persisted or sent of it has no password, and neither has what is read.
pub mod address {
    use super::*;

    pub fn serialize<S: Serializer>(address: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&without_password(address))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        String::deserialize(from).map(|address| without_password(&address).into_owned())
    }
}

/// For keys as a site gave them: those that name a secret are left out, of the others what is secret is hidden.
pub mod given_keys {
    use super::*;

    type Keys = BTreeMap<String, String>;

    pub fn public(keys: &Keys) -> Keys {
        let public = keys.iter().filter(|(name, _)| !names_secret(name));
        public.map(|(name, value)| (name.clone(), public_value(value).into_owned())).collect()
    }

    pub fn serialize<S: Serializer>(keys: &Keys, to: S) -> Result<S::Ok, S::Error> {
        public(keys).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        Keys::deserialize(from).map(|keys| public(&keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_scripts_and_environments_are_not_printed() {
        use crate::agent::Launch;
        use crate::command::{Blob, Command};
        use crate::trust::{JoinRequest, OldJwtKey, Trust, TrustChange};
        use crate::{Entry, Timestamp, history, hooks, staging};
        const PLANTED: &str = "xyzzy";
        let (text, bytes) = (|| PLANTED.to_owned(), || PLANTED.as_bytes().to_vec());
        let until = Timestamp::from_secs(1);
        let found =
            || TrustChange::Found { ca_certificate: String::new(), ca_key: text(), fingerprint: "f1".into(), until };
        let old = OldJwtKey { key: bytes(), until };
        let trust = Trust { ca_key: text(), jwt_key: bytes(), old_jwt_keys: vec![old], ..Default::default() };
        let entry = |command| Entry { at: until, by: Default::default(), command };
        let submission = Command::Submit { spec: Default::default(), blobs: vec![Blob::of(bytes())] };
        let launch =
            Launch { script: bytes(), environment: bytes(), buffer_environment: vec![text()], ..Default::default() };
        let run = history::RunHistory { script: bytes(), environment: bytes(), ..Default::default() };
        let printed = [
            format!("{trust:?}{:?}", found()),
            format!("{:?}", entry(Command::Trust(found()))),
            format!("{:?}", entry(Command::Trust(TrustChange::KeepJwtKey { key: bytes() }))),
            format!("{:?}", TrustChange::RotateJwtKey { key: bytes(), old_until: None }),
            format!("{:?}", JoinRequest { secret: bytes(), ..Default::default() }),
            format!("{:?}", entry(submission)),
            format!("{launch:?}"),
            format!("{run:?}"),
            format!("{:?}", hooks::Hook { environment: vec![text()], ..Default::default() }),
            format!("{:?}", staging::StageWork { environment: vec![text()], ..Default::default() }),
            format!("{:?}", crate::Job { buffer_environment: vec![text()], ..Default::default() }),
        ]
        .concat();
        let as_list = format!("{:?}", bytes());
        assert!(!printed.contains(PLANTED) && !printed.contains(as_list.trim_matches(['[', ']'])), "{printed}");
        // All the rest is shown.
        assert!(printed.contains("f1") && printed.contains("submitted"), "{printed}");
    }

    #[test]
    fn secret_prints_and_encodes_as_nothing_of_itself() {
        let secret = SecretText::new("hunter2");
        assert!(!format!("{secret} {secret:?}").contains("hunter2"));
        let bytes = crate::codec::encode(&secret);
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
        assert_eq!(
            crate::codec::decode::<SecretText>(&crate::codec::encode("hunter2")).unwrap(),
            SecretText::default()
        );
        assert_eq!(secret.hidden_in("no hunter2 here"), "no (hidden) here");
    }

    #[test]
    fn passwords_of_addresses_are_left_out_wherever_they_stand() {
        for (address, shown) in [
            ("postgres://u:pw@h:5432/db", "postgres://u@h:5432/db"),
            ("postgres://u:p/w@1?@h/db", "postgres://(hidden)"),
            ("postgres://u:p/w@1@h/db", "postgres://u@h/db"),
            ("postgres://u@h/db?password=pw&connect_timeout=5", "postgres://u@h/db?connect_timeout=5"),
            ("postgres://u@h/db?password=p@w", "postgres://u@h/db"),
            ("postgres://h:5432/db?password=p@w", "postgres://(hidden)"),
            ("postgres://u@h/db?sslmode=disable", "postgres://u@h/db?sslmode=disable"),
            ("postgres://:pw@h/db", "postgres://@h/db"),
            ("/var/lib/spur/history.sqlite", "/var/lib/spur/history.sqlite"),
            ("http://elastic:pw@host:9200/x", "http://elastic@host:9200/x"),
        ] {
            assert_eq!(without_password(address), shown, "{address}");
        }
    }

    #[test]
    fn keys_of_a_site_keep_all_but_their_secrets() {
        let given = [
            ("AccountingStoragePass", "x"),
            ("JobCompLoc", "https://u:x@h/y"),
            ("JobCompParams", "timeout=5,password=x"),
            ("SlurmUser", "slurm"),
        ];
        let keys: BTreeMap<String, String> = given.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let shown: Vec<_> = given_keys::public(&keys).into_iter().collect();
        let expected =
            [("JobCompLoc", "https://u@h/y"), ("JobCompParams", "timeout=5,password=(hidden)"), ("SlurmUser", "slurm")];
        assert_eq!(shown, expected.map(|(k, v)| (k.to_string(), v.to_string())));
    }

    #[test]
    fn configuration_of_an_older_journal_loses_its_password() {
        #[derive(Serialize)]
        struct OlderConfig {
            accounting: OlderAccounting,
            as_given: BTreeMap<String, String>,
        }
        #[derive(Serialize)]
        struct OlderAccounting {
            records: bool,
            database: String,
        }
        let accounting = OlderAccounting { records: true, database: "postgres://u:hunter2@h/db".into() };
        let as_given = BTreeMap::from([("JobCompPass".into(), "hunter2".into()), ("SlurmUser".into(), "s".into())]);
        let kept = crate::codec::encode(&OlderConfig { accounting, as_given });
        let config: crate::Config = crate::codec::decode(&kept).unwrap();
        assert_eq!(config.accounting.database, "postgres://u@h/db");
        assert!(config.accounting.records && config.as_given.len() == 1);
        assert!(!format!("{config:?}").contains("hunter2"));
        let anew = crate::codec::encode(&config);
        assert!(!anew.windows(7).any(|window| window == b"hunter2"));
        // Neither is one encoded that came from a file just now.
        let mut fresh = crate::Config::default();
        fresh.accounting.database = "postgres://u:hunter2@h/db".into();
        fresh.accounting.database_address = SecretText::new("postgres://u:hunter2@h/db");
        assert!(!crate::codec::encode(&fresh).windows(7).any(|window| window == b"hunter2"));
    }
}
