//! `BurstBuffer=[plugin:][pool:]SIZE[,…]` of a reservation.
use crate::pool::{BurstBufferConfig, Plugin};
use crate::size;

/// What is kept of each pool, in whole granules.
pub fn parse(text: &str, config: &BurstBufferConfig) -> Result<Vec<(String, u64)>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| one(part, config)).collect()
}

fn one(text: &str, config: &BurstBufferConfig) -> Result<(String, u64), String> {
    let mut parts: Vec<&str> = text.split(':').collect();
    if let Some(plugin) = parts.first().and_then(|word| Plugin::parse(word))
        && parts.len() > 1
    {
        if plugin != config.plugin {
            return Err(format!("{text}: the burst buffers here are {}'s", config.plugin.word()));
        }
        parts.remove(0);
    }
    let (name, amount) = match parts[..] {
        [amount] => (None, amount),
        [pool, amount] => (Some(pool), amount),
        _ => return Err(format!("{text}: expected [plugin:][pool:]SIZE")),
    };
    let pool = match name {
        Some(name) => config.pool(name).ok_or_else(|| format!("{text}: there is no pool {name}"))?,
        None => config.default_pool().ok_or_else(|| format!("{text}: no pool is named, and none is the default"))?,
    };
    let bare_bytes = if config.plugin == Plugin::Native { 1 << 30 } else { 1 };
    let bytes = size::parse_bytes(amount, bare_bytes).ok_or_else(|| format!("{text}: {amount} is not a size"))?;
    let bytes = pool.rounded(bytes).ok_or_else(|| format!("{text}: more than can be counted"))?;
    Ok((pool.name.clone(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;

    #[test]
    fn plugin_and_pool_may_be_left_out() {
        let pool = |name: &str| Pool { name: name.into(), granularity_bytes: 10, ..Default::default() };
        let lua = BurstBufferConfig { plugin: Plugin::Lua, pools: vec![pool("a"), pool("b")], ..Default::default() };
        assert_eq!(parse("lua:a:15,b:1K", &lua), Ok(vec![("a".into(), 20), ("b".into(), 1030)]));
        for wrong in ["15", "lua:15", "datawarp:a:15", "c:15", "a:x", "a:0", "a:b:c:1"] {
            assert!(parse(wrong, &lua).is_err(), "{wrong}");
        }
        let datawarp = BurstBufferConfig { plugin: Plugin::DataWarp, ..lua };
        assert_eq!(parse("15", &datawarp), Ok(vec![("a".into(), 20)]));
        assert_eq!(parse("", &datawarp), Ok(vec![]));
    }
}
