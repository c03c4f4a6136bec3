//! User and group names, remembered: a submission should not read the user database each time.
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use wire::accounts;

/// A name that was changed is believed after this long.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A user's groups, with the moment since which they are known.
type Memberships = HashMap<(String, u32), (Instant, Vec<String>)>;

#[derive(Default)]
pub struct Names {
    users: Mutex<HashMap<u32, (Instant, String)>>,
    groups: Mutex<HashMap<u32, (Instant, String)>>,
    memberships: Mutex<Memberships>,
}

impl Names {
    /// The user's login name; the number itself where there is none.
    pub fn user(&self, uid: u32) -> String {
        remembered(&self.users, uid, accounts::user_name)
    }

    /// Every group of a user, that of `gid` among them.
    pub fn groups_of(&self, user: &str, gid: u32) -> Vec<String> {
        let mut known = self.memberships.lock().expect("nobody panics while holding this lock");
        let key = (user.to_string(), gid);
        match known.get(&key) {
            Some((since, groups)) if since.elapsed() < REMEMBERED => groups.clone(),
            _ => {
                let groups: Vec<String> =
                    accounts::groups_of(user, gid).into_iter().filter_map(accounts::group_name).collect();
                known.insert(key, (Instant::now(), groups.clone()));
                groups
            }
        }
    }

    pub fn group(&self, gid: u32) -> String {
        remembered(&self.groups, gid, accounts::group_name)
    }
}

fn remembered(known: &Mutex<HashMap<u32, (Instant, String)>>, id: u32, look_up: fn(u32) -> Option<String>) -> String {
    let mut known = known.lock().expect("nobody panics while holding this lock");
    match known.get(&id) {
        Some((since, name)) if since.elapsed() < REMEMBERED => name.clone(),
        _ => {
            let name = look_up(id).unwrap_or_else(|| id.to_string());
            known.insert(id, (Instant::now(), name.clone()));
            name
        }
    }
}
