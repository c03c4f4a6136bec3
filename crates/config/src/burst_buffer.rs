//! `[burst_buffer]` and its `[[burst_buffer.pools]]`.
use std::collections::BTreeMap;

use model::pool::{BurstBufferConfig, Plugin, Pool, PoolKind, Verify};
use model::{NodeName, hostlist, size};
use toml_edit::Item;

use crate::section::{Section, set};

const SIZE: &str = "a size like \"200TiB\", or bytes as a whole number";
const VERIFY: &str = "\"none\", \"size\", \"stream\" or \"full\"";
const FLAGS: &str = "a list of DisablePersistent, EnablePersistent, EmulateCray, PrivateData, TeardownFailure";

/// Keys may be written as Slurm writes them.
const SPELLINGS: [(&str, &str); 12] = [
    ("AllowUsers", "allow_users"),
    ("DenyUsers", "deny_users"),
    ("DefaultPool", "default_pool"),
    ("Flags", "flags"),
    ("StageInTimeout", "stage_in_timeout"),
    ("StageOutTimeout", "stage_out_timeout"),
    ("ValidateTimeout", "validate_timeout"),
    ("OtherTimeout", "other_timeout"),
    ("PollInterval", "poll_interval"),
    ("Directive", "directive"),
    ("GetSysState", "get_sys_state"),
    ("GetSysStatus", "get_sys_status"),
];

pub(crate) fn read(mut section: Section, known: &BTreeMap<String, usize>) -> BurstBufferConfig {
    let mut burst = BurstBufferConfig::default();
    let kind = section.read("type", "\"native\", \"lua\" or \"datawarp\"", |item| Plugin::parse(item.as_str()?));
    set(&mut burst.plugin, kind);
    for (theirs, ours) in SPELLINGS {
        let key = if section.has(theirs) { theirs } else { ours };
        if let Some(other) = Some(ours).filter(|ours| key != *ours && section.has(ours)) {
            let at = section.take(other).map_or(section.at, |found| found.key_at);
            section.notes.add(at, format!("{theirs} is given twice, here as {ours}"));
        }
        match ours {
            "allow_users" => section.words(key, &mut burst.allow_users),
            // The manual has colons between them, Slurm itself reads commas.
            "deny_users" => section.words_between(&[',', ':'], key, &mut burst.deny_users),
            "default_pool" => section.word(key, &mut burst.default_pool),
            "stage_in_timeout" => section.seconds(key, &mut burst.stage_in_timeout),
            "stage_out_timeout" => section.seconds(key, &mut burst.stage_out_timeout),
            "validate_timeout" => section.seconds(key, &mut burst.validate_timeout),
            "other_timeout" => section.seconds(key, &mut burst.other_timeout),
            "poll_interval" => section.seconds(key, &mut burst.poll_interval),
            "directive" => section.word(key, &mut burst.directive),
            "get_sys_state" => section.text(key, &mut burst.get_sys_state),
            "get_sys_status" => section.text(key, &mut burst.get_sys_status),
            _ => flags(&mut section, key, &mut burst),
        }
    }
    section.seconds("stage_ahead", &mut burst.stage_ahead);
    section.flag("preempt_staged", &mut burst.preempts);
    section.flag("hold_nodes", &mut burst.holds_nodes);
    section.flag("end_over_limit", &mut burst.ends_over_limit);
    section.seconds("measure_interval", &mut burst.measure_interval);
    let verify_in = section.read("verify_in", VERIFY, verify);
    set(&mut burst.verify_in, verify_in);
    let verify_out = section.read("verify_out", VERIFY, verify);
    set(&mut burst.verify_out, verify_out);
    section.number("workers", 0..=1024, &mut burst.n_workers);
    let bandwidth = section.read("bandwidth", SIZE, bytes);
    set(&mut burst.bandwidth_bytes, bandwidth);
    section.number("fanout", 0..=100_000, &mut burst.fanout);
    section.number("max_directives", 1..=100_000, &mut burst.max_directives);
    section.text("script", &mut burst.script);
    section.flag("allow_root", &mut burst.allows_root);
    section.flag("tres", &mut burst.counts);
    section.seconds("pools_interval", &mut burst.pools_interval);
    section.seconds("teardown_interval", &mut burst.teardown_interval);
    section.seconds("restart_delay", &mut burst.restart_delay);
    section.number("hooks", 1..=4096, &mut burst.n_hooks);
    section.number("array_tasks", 1..=100_000, &mut burst.n_array_tasks);
    for pool in section.sections("pools") {
        let pool = self::pool(pool, known);
        if burst.pool(&pool.name).is_some() {
            section.notes.add(section.at, format!("pool {} is given twice", pool.name));
        }
        burst.pools.push(pool);
    }
    shorthand(&mut section, &mut burst);
    if burst.plugin.is_external() {
        if !burst.pools.is_empty() {
            let why =
                format!("burst_buffer/{} tells of its pools itself: they cannot be given here", burst.plugin.word());
            section.notes.add(section.at, why);
        }
        section.finish();
        return burst;
    }
    if burst.pools.is_empty() {
        section.notes.add(section.at, "[burst_buffer] needs [[burst_buffer.pools]], or `total_gb`");
    }
    if !burst.default_pool.is_empty() && burst.pool(&burst.default_pool).is_none() {
        section.notes.add(section.at, format!("`default_pool`: there is no pool {}", burst.default_pool));
    }
    section.finish();
    burst
}

/// `total_gb = N`: one shared pool named `default`. Where no `root` is named the cluster has one of its own.
fn shorthand(section: &mut Section, burst: &mut BurstBufferConfig) {
    let mut total_gb = 0;
    section.number("total_gb", 1..=u32::MAX, &mut total_gb);
    let mut root = String::new();
    section.text("root", &mut root);
    if total_gb == 0 {
        if !root.is_empty() {
            section.notes.add(section.at, "`root` belongs to `total_gb`, or into [[burst_buffer.pools]]");
        }
        return;
    }
    burst.pools.push(Pool {
        name: "default".into(),
        root,
        granularity_bytes: 1 << 30,
        total_bytes: Some(u64::from(total_gb) << 30),
        ..Default::default()
    });
}

fn flags(section: &mut Section, key: &'static str, burst: &mut BurstBufferConfig) {
    let words = section.read(key, FLAGS, |item| match item.as_str() {
        Some(text) => Some(text.split(',').map(|word| word.trim().to_lowercase()).collect::<Vec<_>>()),
        None => item.as_array()?.iter().map(|word| Some(word.as_str()?.to_lowercase())).collect(),
    });
    for word in words.unwrap_or_default() {
        if !crate::slurm::burst::set_flag(burst, &word) {
            section.notes.add(section.at, format!("`{key}`: unknown flag {word}; expected {FLAGS}"));
        }
    }
}

fn pool(mut section: Section, known: &BTreeMap<String, usize>) -> Pool {
    let mut pool = Pool { granularity_bytes: 1, ..Default::default() };
    for key in ["name", "root"] {
        if !section.has(key) {
            section.notes.add(section.at, format!("[[burst_buffer.pools]] needs `{key}`"));
        }
    }
    section.word("name", &mut pool.name);
    section.text("root", &mut pool.root);
    let kind = section.read("kind", "\"shared\" or \"node\"", |item| match item.as_str()? {
        "shared" => Some(PoolKind::Shared),
        "node" => Some(PoolKind::Node),
        _ => None,
    });
    set(&mut pool.kind, kind);
    if pool.kind == PoolKind::Shared && pool.root.contains("%n") {
        section.notes.add(section.at, "`root` of a shared pool is one directory for all nodes: it cannot contain %n");
    }
    let granularity = section.read("granularity", SIZE, bytes);
    set(&mut pool.granularity_bytes, granularity);
    let total = section.read("total", "a size like \"200TiB\", or \"auto\"", |item| match item.as_str() {
        Some("auto") => Some(None),
        _ => bytes(item).map(Some),
    });
    pool.total_bytes = total.flatten();
    let reserve = section.read("reserve", "a share like \"5%\"", |item| {
        item.as_str()?.strip_suffix('%')?.parse::<u32>().ok().filter(|percent| *percent < 100)
    });
    set(&mut pool.reserve_percent, reserve);
    let movers = section.read("movers", "a hostlist", |item| hostlist::expand(item.as_str()?).ok());
    let movers = movers.unwrap_or_default();
    if let Some(unknown) = movers.iter().find(|name| !known.contains_key(*name)) {
        section.notes.add(section.at, format!("`movers`: no [[nodes]] table names {unknown}"));
    }
    pool.movers = movers.into_iter().map(NodeName::from).collect();
    section.finish();
    pool
}

fn bytes(item: &Item) -> Option<u64> {
    match item.as_str() {
        Some(text) => size::parse_bytes(text, 1),
        None => u64::try_from(item.as_integer()?).ok().filter(|bytes| *bytes > 0),
    }
}

fn verify(item: &Item) -> Option<Verify> {
    match item.as_str()? {
        "none" => Some(Verify::None),
        "size" => Some(Verify::Size),
        "stream" => Some(Verify::Stream),
        "full" => Some(Verify::Full),
        _ => None,
    }
}

pub(crate) fn verify_word(verify: Verify) -> &'static str {
    match verify {
        Verify::None => "none",
        Verify::Size => "size",
        Verify::Stream => "stream",
        Verify::Full => "full",
    }
}
