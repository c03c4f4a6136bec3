//! The plugin's pools: asked for at the start and again and again; told to the state when they have changed.
use model::pool::{Plugin, Pool, PoolKind};
use model::{Caller, Command};
use serde_json::Value;

use super::{Site, calls, datawarp, duration};

pub async fn run(site: std::sync::Arc<Site>) {
    let mut last_problem = String::new();
    let mut is_first = true;
    loop {
        let problem = look(&site, is_first).await.err().unwrap_or_default();
        if !problem.is_empty() && problem != last_problem {
            tracing::error!(problem, "the burst buffer plugin's pools stay as they were");
        }
        (last_problem, is_first) = (problem, false);
        tokio::time::sleep(duration(site.config().pools_interval)).await;
    }
}

async fn look(site: &Site, is_first: bool) -> Result<(), String> {
    let cluster = site.published.now();
    let config = site.config();
    let limit = duration(config.other_timeout);
    let told = match config.plugin {
        Plugin::Native => return Ok(()),
        Plugin::Lua => lua(&site.ask(&calls::lua(&cluster, "slurm_bb_pools", Vec::new(), None, limit)).await?)?,
        Plugin::DataWarp => {
            let ask =
                async |function: &str| site.ask(&calls::cli(&config, function, function, Vec::new(), limit)).await;
            let pools = datawarp::pools(&ask("pools").await?)?;
            let mut functions = vec!["show_instances", "show_sessions"];
            functions.extend(is_first.then_some("show_configurations"));
            let mut told = [String::new(), String::new(), String::new()];
            for (function, told) in functions.into_iter().zip(&mut told) {
                match ask(function).await {
                    Ok(text) => *told = text,
                    Err(text) if text.starts_with('{') => *told = text,
                    Err(why) => tracing::error!(function, why, "dw_wlm_cli"),
                }
            }
            compare(site, &told[0], &told[1]).await;
            pools
        }
    };
    let mut known = config.pools.clone();
    known.retain(|pool| pool.total_bytes != Some(0) || told.iter().any(|new| new.name == pool.name));
    if config.is_loaded && known == told {
        return Ok(());
    }
    let reported = Command::PoolsReported { plugin: config.plugin, pools: told };
    match site.door.propose(Caller::SYSTEM, reported).await {
        Ok(_) => Ok(()),
        Err(refusal) => Err(format!("{refusal:?}")),
    }
}

/// Persistent buffers that the infrastructure has and we do not know, or the other way round.
async fn compare(site: &Site, instances: &str, sessions: &str) {
    let Some(mut sessions) = datawarp::sessions(sessions, instances) else { return };
    let cluster = site.published.now();
    if !state::buffers::sessions::is_news(&cluster, &sessions) {
        return;
    }
    for session in &mut sessions {
        session.user = wire::accounts::user_name(session.uid).unwrap_or_else(|| session.uid.to_string());
        if cluster.persistent(&session.token).is_none() {
            tracing::error!(token = session.token, uid = session.uid, "a session that nobody here made");
        }
    }
    // The next look sees the same.
    let _ = site.door.propose(Caller::SYSTEM, Command::SessionsSeen { sessions }).await;
}

/// A script that says nothing works without pools.
pub fn lua(text: &str) -> Result<Vec<Pool>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("slurm_bb_pools: not JSON: {error}"))?;
    let list = value.get("pools").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or("slurm_bb_pools: no list \"pools\" with anything in it")?;
    list.iter().map(|item| pool(item, "slurm_bb_pools")).collect()
}

/// One pool: `id`, and numbers `quantity`, `granularity` and `free` in granules.
pub fn pool(item: &Value, whose: &str) -> Result<Pool, String> {
    let name = item.get("id").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("{whose}: a pool has no \"id\""))?;
    let number = |key: &str| match item.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{whose}: pool {name}: \"{key}\" is not a whole number")),
        },
    };
    let granularity = number("granularity")?.unwrap_or(0).max(1);
    let quantity = number("quantity")?.unwrap_or(0);
    let free = number("free")?;
    if free.is_some_and(|free| free > quantity) {
        tracing::error!(pool = name, "has more free than it has");
    }
    let unfree = free.map_or(0, |free| quantity.saturating_sub(free));
    let bytes = |granules: u64| {
        granules.checked_mul(granularity).ok_or_else(|| format!("{whose}: pool {name} is larger than can be counted"))
    };
    Ok(Pool {
        name: name.to_owned(),
        kind: PoolKind::Shared,
        granularity_bytes: granularity,
        total_bytes: Some(bytes(quantity)?),
        unfree_bytes: bytes(unfree)?,
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_told_as_json() {
        let text = r#"{"pools":[{"id":"a","quantity":10,"granularity":4,"free":7},{"id":"b"}]}"#;
        let pools = lua(text).unwrap();
        assert_eq!((pools[0].total_bytes, pools[0].unfree_bytes, pools[0].granularity_bytes), (Some(40), 12, 4));
        assert_eq!((pools[1].total_bytes, pools[1].granularity_bytes), (Some(0), 1));
        assert_eq!(lua("").unwrap(), []);
        for wrong in
            ["{", "[]", r#"{"pools":[]}"#, r#"{"pools":[{"quantity":1}]}"#, r#"{"pools":[{"id":"a","free":"x"}]}"#]
        {
            assert!(lua(wrong).is_err(), "{wrong}");
        }
    }
}
