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
            let mut line = persistent_line(buffer, clock, is_verbose);
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
        let PoolView { total_bytes, used_bytes, free_bytes, problems, .. } = view;
        format!(
            "Granularity={} TotalSpace={} FreeSpace={} UsedSpace={}{}",
            size::show_bytes(granularity),
            size::show_bytes(total_bytes),
            size::show_bytes(free_bytes),
            size::show_bytes(used_bytes),
            problem(&problems),
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

/// Why an agent does not use the pool; the others are told by `show bbstat pools`.
fn problem(problems: &[String]) -> String {
    let Some(first) = problems.first() else { return String::new() };
    let more = if problems.len() > 1 { format!("_({}_more)", problems.len() - 1) } else { String::new() };
    format!(" Problem={}{more}", first.replace(char::is_whitespace, "_"))
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

fn persistent_line(buffer: &PersistentBuffer, clock: &Clock, is_verbose: bool) -> String {
    let (name, pool, user, uid) = (&buffer.name, &buffer.pool, &buffer.user, buffer.uid);
    let (created, bytes, state) =
        (clock.show(buffer.created), size::show_bytes(buffer.bytes), persistent_state(buffer));
    if !is_verbose {
        return format!(
            "    Name={name} CreateTime={created} Pool={pool} Size={bytes} State={state} UserID={user}({uid})"
        );
    }
    // It belongs to no partition: those who use it run where they like.
    format!(
        "    Name={name} Account={} CreateTime={created} Partition=(null) Pool={pool} QOS={} Size={bytes} State={state} UserID={user}({uid})",
        or_null(&buffer.account),
        or_null(&buffer.qos),
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

#[cfg(test)]
mod tests {
    use model::buffer::{Place, Space};
    use model::pool::Pool;
    use model::spec::JobSpec;
    use model::staging::Access;
    use model::{JobId, Timestamp};

    use super::*;
    use crate::fixture;

    const GIB: u64 = 1 << 30;

    /// A job with both kinds of space on two nodes, one that is torn down, and a buffer of nobody's job.
    fn page() -> BurstPage {
        let created = Timestamp::from_secs(1_000_000_000);
        let space = |pool: &str, access, gib: u64| Space { pool: pool.into(), access, bytes: gib * GIB };
        let place = |access, node: &str| Place { access, node: node.into(), ..Default::default() };
        let (shared, private) = (Access::Shared, Access::Private);
        let both = Buffer {
            job: JobId(8),
            phase: BufferPhase::InUse,
            uid: 1000,
            spaces: vec![space("flash", shared, 4), space("nvme", private, 1)],
            places: vec![place(shared, "n1"), place(private, "n1"), place(private, "n2")],
            created,
            ..Default::default()
        };
        let torn_down = Buffer {
            job: JobId(7),
            phase: BufferPhase::TearingDown,
            uid: 1001,
            spaces: vec![space("flash", shared, 2)],
            places: vec![place(shared, "n2")],
            created,
            ..Default::default()
        };
        let job = |id, user: &str, partition: &str, failure: &str| Job {
            id: JobId(id),
            spec: JobSpec { user: user.into(), account: "physics".into(), qos: "normal".into(), ..Default::default() }
                .into(),
            partition: partition.into(),
            buffer_failure: failure.into(),
            ..Default::default()
        };
        let view = |name: &str, total: u64, used: u64| PoolView {
            name: name.into(),
            total_bytes: total * GIB,
            used_bytes: used * GIB,
            free_bytes: (total - used) * GIB,
            ..Default::default()
        };
        let pool = |name: &str| Pool { name: name.into(), granularity_bytes: GIB, ..Default::default() };
        let library = PersistentBuffer {
            name: "library".into(),
            pool: "flash".into(),
            bytes: GIB,
            uid: 1001,
            user: "bob".into(),
            account: "physics".into(),
            created,
            phase: PersistentPhase::Ready,
            ..Default::default()
        };
        BurstPage {
            config: Some(Box::new(BurstBufferConfig {
                pools: vec![pool("flash"), pool("nvme")],
                deny_users: vec!["eve".into()],
                ..Default::default()
            })),
            pools: vec![view("flash", 10, 7), view("nvme", 8, 2)],
            buffers: vec![both, torn_down],
            jobs: vec![job(8, "alice", "main", ""), job(7, "bob", "main", "n2: busy")],
            persistent: vec![library],
            used: vec![UsedSpace { job: JobId(8), used_bytes: 3 << 20, ..Default::default() }],
            ..Default::default()
        }
    }

    const PLAIN: Style = Style { one_line: false, details: false };

    fn shown(style: Style, is_verbose: bool) -> String {
        text(&page(), &fixture::clock(), style, is_verbose)
    }

    #[test]
    fn pools_buffers_and_users_are_shown_line_by_line() {
        let time = fixture::clock().show(Timestamp::from_secs(1_000_000_000));
        let expected = format!(
            "Name=native DefaultPool=flash Granularity=1GiB TotalSpace=10GiB FreeSpace=3GiB UsedSpace=7GiB
  PoolName[0]=nvme Granularity=1GiB TotalSpace=8GiB FreeSpace=6GiB UsedSpace=2GiB
  Flags=DisablePersistent
  PollInterval=15
  StageInTimeout=86400 StageOutTimeout=86400 ValidateTimeout=5 OtherTimeout=300
  DenyUsers=eve
  GetSysState=(null)
  GetSysStatus=(null)
  Allocated Buffers:
    JobID=8 CreateTime={time} Pool=flash,nvme Size=6GiB State=staged-in UserID=alice(1000)
    JobID=7 CreateTime={time} Pool=flash Size=2GiB State=teardown-fail UserID=bob(1001)
    Name=library CreateTime={time} Pool=flash Size=1GiB State=allocated UserID=bob(1001)
  Per User Buffer Use:
    UserID=alice(1000) Used=6GiB
    UserID=bob(1001) Used=3GiB
"
        );
        assert_eq!(shown(PLAIN, false), expected);
        let one_line = shown(Style { one_line: true, ..PLAIN }, false);
        assert!(one_line.lines().next().is_some_and(|line| line.ends_with("GetSysState=(null) GetSysStatus=(null)")));
        assert_eq!(one_line.lines().nth(1), Some("  Allocated Buffers:"));
        let verbose =
            format!("JobID=8 Account=physics CreateTime={time} Partition=main Pool=flash,nvme QOS=normal Size=6GiB");
        assert!(shown(PLAIN, true).contains(&verbose), "{}", shown(PLAIN, true));
        let named = format!("Name=library Account=physics CreateTime={time} Partition=(null) Pool=flash QOS=(null)");
        assert!(shown(PLAIN, true).contains(&named), "{}", shown(PLAIN, true));
        let details = shown(Style { details: true, ..PLAIN }, false);
        assert!(details.contains("UserID=alice(1000) Used=3MiB Nodes=n[1-2]\n"), "{details}");
        let mut refused = page();
        refused.pools[1].problems = vec!["n1: /nvme is not a directory".into(), "n2: x".into()];
        let refused = text(&refused, &fixture::clock(), PLAIN, false);
        assert!(refused.contains("UsedSpace=2GiB Problem=n1:_/nvme_is_not_a_directory_(1_more)\n"), "{refused}");
        assert_eq!(text(&BurstPage::default(), &fixture::clock(), PLAIN, false), "", "no plugin, nothing to show");
    }

    #[test]
    fn the_document_has_every_pool_and_all_pools_of_a_buffer() {
        let plain: String = json(&page()).split_whitespace().collect();
        for part in [
            r#""default_pool":"flash""#,
            r#"{"name":"flash","granularity":1073741824,"total_space":10737418240,"free_space":3221225472,"used_space":7516192768}"#,
            r#"{"name":"nvme","granularity":1073741824,"total_space":8589934592,"free_space":6442450944,"used_space":2147483648}"#,
            r#""pool":"flash,nvme","size":6442450944,"state":"staged-in","user_id":1000"#,
            r#""name":"library""#,
        ] {
            assert!(plain.contains(part), "{part} is not in {plain}");
        }
    }
}
