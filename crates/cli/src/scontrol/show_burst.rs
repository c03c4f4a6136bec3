//! `scontrol show burstbuffer`.
use std::collections::BTreeMap;

use model::buffer::PersistentPhase;
use model::pool::BurstBufferConfig;
use model::request::{BurstPage, PoolView, UsedSpace};
use model::{Buffer, BufferPhase, Job, PersistentBuffer, Plugin, hostlist, size};

use crate::json::Json;
use crate::staging_view::Total;
use crate::zone::Clock;

use super::record::Style;

/// Everything, or nothing where there are no burst buffers.
pub fn text(page: &BurstPage, clock: &Clock, style: Style, is_verbose: bool) -> String {
    let Some(config) = &page.config else { return String::new() };
    let mut lines = header(page, config);
    let mut out = String::new();
    if style.one_line {
        let line: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
        out.push_str(&line.join(" "));
        out.push('\n');
        lines.clear();
    }
    if !page.buffers.is_empty() || !page.persistent.is_empty() {
        lines.push("  Allocated Buffers:".into());
        for buffer in &page.buffers {
            let job = page.jobs.iter().find(|job| job.id == buffer.job);
            let mut line = buffer_line(buffer, job, clock, is_verbose);
            if style.details {
                line.push_str(&details(buffer, job, page));
            }
            lines.push(line);
        }
        for buffer in &page.persistent {
            let mut line = persistent_line(buffer, clock);
            if style.details {
                line.push_str(&used(page, |one| one.name == buffer.name));
            }
            lines.push(line);
        }
    }
    let users = users(page);
    if !users.is_empty() {
        lines.push("  Per User Buffer Use:".into());
        lines.extend(users);
    }
    lines.iter().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    out
}

/// The same as a document.
pub fn json(page: &BurstPage) -> String {
    let mut json = Json::new(Default::default());
    json.object(|json| {
        json.list_field("burst_buffers", |json| {
            if let Some(config) = &page.config {
                json.object(|json| plugin_json(page, config, json));
            }
        })
    });
    json.finish()
}

fn plugin_json(page: &BurstPage, config: &BurstBufferConfig, json: &mut Json) {
    json.field("name", config.plugin.word());
    json.field("default_pool", config.default_pool().map(|pool| pool.name.as_str()));
    json.field("flags", flags(config).join(",").as_str());
    json.field("poll_interval", config.poll_interval.secs());
    json.field("stage_in_timeout", config.stage_in_timeout.secs());
    json.field("stage_out_timeout", config.stage_out_timeout.secs());
    json.field("validate_timeout", config.validate_timeout.secs());
    json.field("other_timeout", config.other_timeout.secs());
    json.list_field("pools", |json| {
        for pool in &config.pools {
            let view = page.pools.iter().find(|view| view.name == pool.name).cloned().unwrap_or_default();
            json.object(|json| {
                json.field("name", pool.name.as_str());
                json.field("granularity", pool.granularity_bytes.max(1));
                json.field("total_space", view.total_bytes);
                json.field("free_space", view.free_bytes);
                json.field("used_space", view.used_bytes);
            });
        }
    });
    json.list_field("buffers", |json| {
        for buffer in &page.buffers {
            let job = page.jobs.iter().find(|job| job.id == buffer.job);
            let pools: Vec<&str> = buffer.spaces.iter().map(|space| space.pool.as_str()).collect();
            let pool = Some(pools.join(",")).filter(|pools| !pools.is_empty());
            json.object(|json| {
                json.field("job_id", buffer.job.0);
                json.field("name", None::<&str>);
                json.field("create_time", buffer.created.secs());
                json.field("pool", pool.as_deref());
                json.field("size", held(buffer));
                json.field("state", state(buffer, job));
                json.field("user_id", buffer.uid);
            });
        }
        for buffer in &page.persistent {
            json.object(|json| {
                json.field("job_id", 0_u32);
                json.field("name", Some(buffer.name.as_str()));
                json.field("create_time", buffer.created.secs());
                json.field("pool", Some(buffer.pool.as_str()));
                json.field("size", buffer.bytes);
                json.field("state", persistent_state(buffer));
                json.field("user_id", buffer.uid);
            });
        }
    });
}

fn flags(config: &BurstBufferConfig) -> Vec<&'static str> {
    let flags = [
        ("DisablePersistent", !config.enables_persistent),
        ("EmulateCray", config.emulates_cray),
        ("EnablePersistent", config.enables_persistent),
        ("PrivateData", config.is_private),
        ("TeardownFailure", config.tears_down_after_failure),
    ];
    flags.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| *word).collect()
}

fn header(page: &BurstPage, config: &BurstBufferConfig) -> Vec<String> {
    let default = config.default_pool().map(|pool| pool.name.as_str()).unwrap_or_default();
    let space = |name: &str| {
        let pool = config.pool(name);
        let granularity = pool.map_or(1, |pool| pool.granularity_bytes.max(1));
        let view = page.pools.iter().find(|view| view.name == name).cloned().unwrap_or_default();
        let PoolView { total_bytes, used_bytes, free_bytes, .. } = view;
        format!(
            "Granularity={} TotalSpace={} FreeSpace={} UsedSpace={}",
            size::show_bytes(granularity),
            size::show_bytes(total_bytes),
            size::show_bytes(free_bytes),
            size::show_bytes(used_bytes),
        )
    };
    let mut lines = vec![format!("Name={} DefaultPool={} {}", config.plugin.word(), or_null(default), space(default))];
    let others = config.pools.iter().filter(|pool| pool.name != default).enumerate();
    lines.extend(others.map(|(number, pool)| format!("  PoolName[{number}]={} {}", pool.name, space(&pool.name))));
    lines.push(format!("  Flags={}", flags(config).join(",")));
    lines.push(format!("  PollInterval={}", config.poll_interval.secs()));
    lines.push(format!(
        "  StageInTimeout={} StageOutTimeout={} ValidateTimeout={} OtherTimeout={}",
        config.stage_in_timeout.secs(),
        config.stage_out_timeout.secs(),
        config.validate_timeout.secs(),
        config.other_timeout.secs(),
    ));
    match (&config.allow_users[..], &config.deny_users[..]) {
        ([], []) => (),
        ([], denied) => lines.push(format!("  DenyUsers={}", denied.join(","))),
        (allowed, _) => lines.push(format!("  AllowUsers={}", allowed.join(","))),
    }
    lines.extend(config.legacy.iter().map(|line| format!("  {line}")));
    let is_called = config.plugin == Plugin::DataWarp;
    let program = |path: &str| if is_called { or_null(path).to_owned() } else { "(null)".into() };
    lines.push(format!("  GetSysState={}", program(&config.get_sys_state)));
    lines.push(format!("  GetSysStatus={}", program(&config.get_sys_status)));
    lines
}

fn or_null(text: &str) -> &str {
    if text.is_empty() { "(null)" } else { text }
}

fn buffer_line(buffer: &Buffer, job: Option<&Job>, clock: &Clock, is_verbose: bool) -> String {
    let name = match job.and_then(|job| Some((job.array_id()?, job.array_task()?))) {
        Some((array, task)) => format!("JobID={array}_{task}({})", buffer.job),
        None => format!("JobID={}", buffer.job),
    };
    let pools: Vec<&str> = buffer.spaces.iter().map(|space| space.pool.as_str()).collect();
    let pool = pools.join(",");
    let pool = or_null(&pool);
    let spec = job.map(|job| &job.spec);
    let (created, bytes, state) = (clock.show(buffer.created), size::show_bytes(held(buffer)), state(buffer, job));
    let user = spec.map_or(String::new(), |spec| spec.user.clone());
    let user = format!("{user}({})", buffer.uid);
    if !is_verbose {
        return format!("    {name} CreateTime={created} Pool={pool} Size={bytes} State={state} UserID={user}");
    }
    let or_null = |text: Option<&str>| or_null(text.unwrap_or_default()).to_owned();
    format!(
        "    {name} Account={} CreateTime={created} Partition={} Pool={pool} QOS={} Size={bytes} State={state} UserID={user}",
        or_null(spec.map(|spec| spec.account.as_str())),
        or_null(job.map(|job| job.partition.as_str())),
        or_null(spec.map(|spec| spec.qos.as_str())),
    )
}

/// What it is charged with, on all nodes.
fn held(buffer: &Buffer) -> u64 {
    let of_place = |place: &model::buffer::Place| {
        let spaces = buffer.spaces.iter().filter(|space| space.access == place.access);
        spaces.map(|space| space.bytes).sum::<u64>()
    };
    buffer.places.iter().map(of_place).sum()
}

/// The buffer's own state, which is less than the job's.
fn state(buffer: &Buffer, job: Option<&Job>) -> &'static str {
    match buffer.phase {
        _ if buffer.plugin == Plugin::Lua => "allocated",
        BufferPhase::Allocating | BufferPhase::StagingIn => "allocated",
        BufferPhase::TearingDown if job.is_some_and(|job| !job.buffer_failure.is_empty()) => "teardown-fail",
        BufferPhase::TearingDown => "teardown",
        _ if buffer.places.iter().any(|place| place.is_over_limit) => "overlimit",
        BufferPhase::StagedIn
        | BufferPhase::Deleting
        | BufferPhase::PreRun
        | BufferPhase::Revoked
        | BufferPhase::InUse
        | BufferPhase::PostRun
        | BufferPhase::StagingOut => "staged-in",
    }
}

fn details(buffer: &Buffer, job: Option<&Job>, page: &BurstPage) -> String {
    let nodes = hostlist::compress(buffer.places.iter().map(|place| place.node.as_str()));
    let used = used(page, |one| one.name.is_empty() && one.job == buffer.job);
    match job.and_then(|job| Total::of(job, &page.progress)) {
        Some(total) => format!("{used} Progress={} Nodes={nodes}", total.show().replace(' ', "_")),
        None => format!("{used} Nodes={nodes}"),
    }
}

/// What agents have measured last; nothing while none has.
fn used(page: &BurstPage, is_it: impl Fn(&UsedSpace) -> bool) -> String {
    let found = page.used.iter().find(|one| is_it(one));
    found.map_or(String::new(), |one| format!(" Used={}", size::show_bytes(one.used_bytes)))
}

fn persistent_state(buffer: &PersistentBuffer) -> &'static str {
    match buffer.phase {
        PersistentPhase::Creating => "allocating",
        PersistentPhase::Ready => "allocated",
        PersistentPhase::Condemned | PersistentPhase::Destroying => "deleting",
    }
}

fn persistent_line(buffer: &PersistentBuffer, clock: &Clock) -> String {
    let state = persistent_state(buffer);
    format!(
        "    Name={} CreateTime={} Pool={} Size={} State={state} UserID={}({})",
        buffer.name,
        clock.show(buffer.created),
        buffer.pool,
        size::show_bytes(buffer.bytes),
        buffer.user,
        buffer.uid,
    )
}

fn users(page: &BurstPage) -> Vec<String> {
    let mut used: BTreeMap<u32, (String, u64)> = BTreeMap::new();
    for buffer in &page.buffers {
        let job = page.jobs.iter().find(|job| job.id == buffer.job);
        let entry = used.entry(buffer.uid).or_default();
        entry.0 = job.map(|job| job.spec.user.clone()).unwrap_or_default();
        entry.1 += held(buffer);
    }
    for buffer in &page.persistent {
        let entry = used.entry(buffer.uid).or_default();
        entry.0 = buffer.user.clone();
        entry.1 += buffer.bytes;
    }
    let line = |(uid, (user, bytes)): (u32, (String, u64))| {
        (bytes > 0).then(|| format!("    UserID={user}({uid}) Used={}", size::show_bytes(bytes)))
    };
    used.into_iter().filter_map(line).collect()
}
