//! The older way to weigh shares (`NO_FAIR_TREE`): a factor of 2^(-use/share/d) for everybody, whatever the others have.
//!
//! Shares are parts of the whole cluster. What counts as somebody's use is their own, and of what the account's others used as
//! much as the share is of the account's (`DEPTH_OBLIVIOUS`: as much as keeps the account's own excess in proportion).
use std::collections::BTreeMap;

use model::accounts::{Accounts, Association, AssociationId, Classic, Place, Shares};

use super::level_above;

/// Fills in what the fair tree would have; `usage_norm` and `level_shares` are known.
pub(super) fn fill_in(accounts: &Accounts, rules: &Classic, places: &mut BTreeMap<AssociationId, Place>) {
    let level_use = level_use(accounts, places);
    for one in from_the_top(accounts) {
        let level = level_above(accounts, one);
        let above = level.map(|above| places[&above.id].clone());
        let siblings = || level.and_then(|above| level_use.get(&above.id).copied()).unwrap_or(0.0);
        let place = &places[&one.id];
        let (shares, used) = match &above {
            None => (1.0, 1.0),
            Some(above) => {
                let shares = norm_shares(one, place, above);
                let below_root = level.is_some_and(|above| above.parent == 0);
                let used = match one.shares {
                    _ if below_root => place.usage_norm,
                    Shares::Parent => above.usage_effective,
                    Shares::Number(_) if rules.is_depth_oblivious => oblivious(place, shares, above, siblings()),
                    Shares::Number(number) => {
                        let part = f64::from(number) / place.level_shares as f64;
                        place.usage_norm + (above.usage_effective - place.usage_norm) * part
                    }
                };
                (shares, used)
            }
        };
        let place = places.get_mut(&one.id).expect("each has a place");
        (place.shares_norm, place.usage_effective) = (shares, used);
        // It has no meaning here; Slurm shows nought.
        place.level_fs = Some(0.0);
        place.fair_share = Some(factor(rules, shares, used));
    }
}

fn factor(rules: &Classic, shares: f64, used: f64) -> f64 {
    if shares > 0.0 { (-(used / shares) / f64::from(rules.dampening.max(1))).exp2() } else { 0.0 }
}

fn norm_shares(one: &Association, place: &Place, above: &Place) -> f64 {
    match one.shares {
        Shares::Number(number) => above.shares_norm * f64::from(number) / place.level_shares as f64,
        Shares::Parent => above.shares_norm,
    }
}

/// Siblings who differ from each other are told apart, but less so the more their account as a whole differs from its share.
fn oblivious(place: &Place, shares: f64, above: &Place, siblings_use: f64) -> f64 {
    /// How much less.
    const EMPHASIS: f64 = 5.0;
    let all = [shares, above.shares_norm, above.usage_effective, place.usage_norm, siblings_use];
    if all.contains(&0.0) {
        return place.usage_norm;
    }
    let of_account = above.usage_effective / above.shares_norm;
    let of_siblings = siblings_use / above.shares_norm;
    let among_them = place.usage_norm / shares / of_siblings;
    let exponent = match of_account.ln() * among_them.ln() >= 0.0 {
        true => 1.0,
        false => 1.0 / (1.0 + (EMPHASIS * of_account.ln()).powi(2)),
    };
    of_account * among_them.powf(exponent) * shares
}

/// Of all that was used, the part of those who share below each.
fn level_use(accounts: &Accounts, places: &BTreeMap<AssociationId, Place>) -> BTreeMap<AssociationId, f64> {
    let mut together = BTreeMap::new();
    for one in accounts.associations.values().filter(|one| one.is_here() && one.shares != Shares::Parent) {
        if let Some(above) = level_above(accounts, one) {
            *together.entry(above.id).or_default() += places[&one.id].usage_norm;
        }
    }
    together
}

/// Each after what is above it.
fn from_the_top(accounts: &Accounts) -> Vec<&Association> {
    let mut all: Vec<&Association> = accounts.associations.values().filter(|one| one.is_here()).collect();
    all.sort_by_cached_key(|one| accounts.lineage(one.id).count());
    all
}
