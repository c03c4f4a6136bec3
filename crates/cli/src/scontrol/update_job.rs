//! Reads `scontrol update JobId=… Key=value …` into changes.
use model::calendar::Zone;
use model::dependency;
use model::duration::{self, Limit};
use model::gres;
use model::hostlist;
use model::size;
use model::spec::{Memory, TimeLimit};
use model::update::{JobChanges, TimeLimitChange};
use model::when::{self, Lean};
use model::{NodeName, Timestamp};

/// What a job's key means.
type Apply = fn(&mut JobChanges, &str, &Now) -> Result<(), String>;

/// What relative times count from.
pub struct Now<'a> {
    pub unix_secs: i64,
    pub zone: &'a dyn ZoneDyn,
}

/// A zone behind a pointer.
pub trait ZoneDyn {
    fn moment(&self, text: &str, now: i64) -> Option<i64>;
}

impl<Z: Zone> ZoneDyn for Z {
    fn moment(&self, text: &str, now: i64) -> Option<i64> {
        when::parse(text, now, self, Lean::Future)
    }
}

/// Keys with the fewest letters that name them, in the order in which abbreviations are tried.
const KEYS: &[(&str, usize, Apply)] = &[
    ("Account", 2, |changes, value, _| {
        changes.account = Some(value.to_lowercase());
        Ok(())
    }),
    ("AdminComment", 3, |changes, value, _| {
        changes.admin_comment = Some(value.into());
        Ok(())
    }),
    ("ArrayTaskThrottle", 10, |changes, value, _| {
        changes.array_limit = Some(number(value, "ArrayTaskThrottle")?);
        Ok(())
    }),
    ("BurstBuffer", 1, |changes, value, _| {
        changes.burst_buffer = Some(value.into());
        Ok(())
    }),
    ("Comment", 3, |changes, value, _| {
        changes.comment = Some(value.into());
        Ok(())
    }),
    ("CPUsPerTask", 9, |changes, value, _| {
        changes.cpus_per_task = Some(number(value, "CPUsPerTask")?);
        Ok(())
    }),
    ("Deadline", 3, |changes, value, now| {
        changes.deadline = Some(moment(value, now)?);
        Ok(())
    }),
    ("DelayBoot", 5, |changes, value, _| {
        let wait = duration::parse(value).and_then(Limit::seconds);
        changes.delay_boot_secs = Some(wait.ok_or_else(|| "Invalid DelayBoot value".to_string())?);
        Ok(())
    }),
    ("Dependency", 3, |changes, value, _| {
        changes.dependency = Some(match value {
            "" => Default::default(),
            value => dependency::parse(value).map_err(|_| "\u{1}Job dependency problem".to_string())?,
        });
        Ok(())
    }),
    ("Contiguous", 3, |changes, value, _| {
        changes.contiguous = Some(flag(value, "Contiguous")?);
        Ok(())
    }),
    ("EndTime", 1, |changes, value, now| {
        changes.end = Some(moment(value, now)?);
        Ok(())
    }),
    ("MailType", 5, |changes, value, _| {
        let kinds = crate::submit::set::mail_kinds(value);
        changes.mail_kinds = Some(kinds.ok_or_else(|| format!("\u{2}Invalid MailType: {value}"))?.0);
        Ok(())
    }),
    ("MailUser", 5, |changes, value, _| {
        changes.mail_to = Some(value.into());
        Ok(())
    }),
    ("MinCPUsNode", 4, |changes, value, _| {
        changes.min_cpus_per_node = Some(number(value, "MinCPUsNode")?);
        Ok(())
    }),
    ("MinTmpDiskNode", 4, |changes, value, _| {
        changes.tmp_disk_mb = Some(memory(value, "MinTmpDiskNode")?);
        Ok(())
    }),
    ("OverSubscribe", 3, set_sharing),
    ("Shared", 2, set_sharing),
    ("Prefer", 3, |changes, value, _| {
        changes.preference = Some(value.into());
        Ok(())
    }),
    ("TasksPerNode", 2, |changes, value, _| {
        changes.tasks_per_node = Some(number(value, "TasksPerNode")?);
        Ok(())
    }),
    ("TimeMin", 5, |changes, value, _| {
        let limit = duration::parse(value).map(Limit::in_whole_minutes);
        changes.time_min = Some(match limit {
            Some(Limit::Seconds(secs)) => TimeLimit::Secs(secs),
            Some(Limit::Unlimited) => TimeLimit::Unlimited,
            None => return Err("Invalid TimeMin value".into()),
        });
        Ok(())
    }),
    ("ExcNodeList", 3, |changes, value, _| {
        changes.excluded = Some(nodes(value)?);
        Ok(())
    }),
    ("Features", 1, |changes, value, _| {
        changes.features = Some(value.into());
        Ok(())
    }),
    ("Gres", 2, |changes, value, _| {
        let list = gres::parse_list(value);
        changes.gres = Some(list.map_err(|_| "\u{1}Invalid generic resource (gres) specification".to_string())?);
        Ok(())
    }),
    ("JobName", 4, set_name),
    ("Licenses", 1, |changes, value, _| {
        let licenses = model::license::parse(value);
        changes.licenses = Some(licenses.ok_or_else(|| "\u{1}Invalid license specification".to_string())?);
        Ok(())
    }),
    ("MinMemoryCPU", 10, |changes, value, _| {
        changes.memory = Some(Memory::PerCpuMb(memory(value, "MinMemoryCPU")?));
        Ok(())
    }),
    ("MinMemoryNode", 10, |changes, value, _| {
        changes.memory = Some(match memory(value, "MinMemoryNode")? {
            0 => Memory::WholeNode,
            megabytes => Memory::PerNodeMb(megabytes),
        });
        Ok(())
    }),
    ("Name", 2, set_name),
    ("Nice", 2, |changes, value, _| {
        changes.nice = Some(
            value
                .parse()
                .map_err(|_| format!("Invalid nice value, must be between -2147483645 and 2147483645: {value}"))?,
        );
        Ok(())
    }),
    ("NodeList", 5, set_nodes),
    ("NumCPUs", 4, |changes, value, _| {
        let least = value.split('-').next().unwrap_or(value);
        let invalid = |why| format!("Invalid numeric value \"{least}\" for NumCPUs.\nscontrol: error: {why}");
        changes.n_cpus = Some(number(least, "NumCPUs").map_err(invalid)?);
        Ok(())
    }),
    ("NumNodes", 4, set_node_count),
    ("NumTasks", 4, |changes, value, _| {
        changes.n_tasks = Some(number(value, "NumTasks")?);
        Ok(())
    }),
    ("Partition", 2, |changes, value, _| {
        changes.partitions = Some(value.split(',').map(str::to_string).collect());
        Ok(())
    }),
    ("Priority", 2, |changes, value, _| {
        changes.priority = Some(number(value, "Priority")?);
        Ok(())
    }),
    ("QOS", 1, |changes, value, _| {
        changes.qos = Some(value.to_lowercase());
        Ok(())
    }),
    ("ReqCores", 4, |changes, value, _| {
        changes.cores_per_socket = Some(number(value, "ReqCores")?);
        Ok(())
    }),
    ("ReqSockets", 4, |changes, value, _| {
        changes.sockets_per_node = Some(number(value, "ReqSockets")?);
        Ok(())
    }),
    ("ReqThreads", 4, |changes, value, _| {
        changes.threads_per_core = Some(number(value, "ReqThreads")?);
        Ok(())
    }),
    ("ReqNodeList", 8, set_nodes),
    ("ReqNodes", 8, set_node_count),
    ("ReqProcs", 8, |changes, value, _| {
        changes.n_tasks = Some(number(value, "NumTasks")?);
        Ok(())
    }),
    ("Requeue", 4, |changes, value, _| {
        changes.requeue = Some(number(value, "Requeue")? != 0);
        Ok(())
    }),
    ("SiteFactor", 2, |changes, value, _| {
        // As much as a priority can be moved by, on Slurm's scale.
        const MOST: i64 = (1 << 31) - 3;
        let factor: i64 = value.parse().map_err(|_| format!("Invalid SiteFactor value: {value}"))?;
        if factor.abs() > MOST {
            return Err(format!("scontrol: error: SiteFactor value out of range (+/- {MOST}). Value ignored"));
        }
        changes.site_factor = i32::try_from(factor).ok();
        Ok(())
    }),
    ("ReservationName", 3, |changes, value, _| {
        changes.reservations = Some(value.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect());
        Ok(())
    }),
    ("StartTime", 2, set_begin),
    ("EligibleTime", 2, set_begin),
    ("StdErr", 4, |changes, value, _| {
        changes.stderr = Some(value.into());
        Ok(())
    }),
    ("StdIn", 4, |changes, value, _| {
        changes.stdin = Some(value.into());
        Ok(())
    }),
    ("StdOut", 4, |changes, value, _| {
        changes.stdout = Some(value.into());
        Ok(())
    }),
    ("ConsolidateSegments", 5, |changes, value, _| {
        changes.consolidates_segments = Some(flag(value, "ConsolidateSegments")?);
        Ok(())
    }),
    ("SegmentSize", 3, |changes, value, _| {
        changes.segment = Some(number(value, "SegmentSize")?);
        Ok(())
    }),
    ("SpreadSegments", 6, |changes, value, _| {
        changes.spreads_segments = Some(flag(value, "SpreadSegments")?);
        Ok(())
    }),
    ("Switches", 5, |changes, value, _| {
        let read = crate::submit::set_network::parse_switches(value);
        let (count, wait) = read.ok_or_else(|| format!("Invalid Switches value: {value}"))?;
        changes.n_switches = Some(count);
        changes.switch_wait_secs = wait.map(|wait| wait.secs()).or(changes.switch_wait_secs);
        Ok(())
    }),
    ("wait-for-switch", 5, |changes, value, _| {
        changes.switch_wait_secs = Some(number(value, "wait-for-switch")?.into());
        Ok(())
    }),
    ("TimeLimit", 5, |changes, value, _| {
        changes.time_limit = Some(time_limit(value)?);
        Ok(())
    }),
    // What Slurm's own controller says where nodes have no specialised cores.
    ("CoreSpec", 4, |_, _, _| Err("\u{1}Access/permission denied".into())),
    ("ThreadSpec", 4, |_, _, _| Err("\u{1}Access/permission denied".into())),
    ("WCKey", 1, |changes, value, _| {
        changes.wckey = Some(value.into());
        Ok(())
    }),
    ("WorkDir", 2, |changes, value, _| {
        changes.work_dir = Some(value.into());
        Ok(())
    }),
];

/// What may be said without a value.
pub fn alone(key: &str) -> Option<fn(&mut JobChanges)> {
    /// How far `Nice` alone moves a job back.
    const NICE: i32 = 100;
    if is_short_for(key, "Nice", 2) {
        return Some(|changes| changes.nice = Some(NICE));
    }
    is_short_for(key, "ResetAccrueTime", 5).then_some(|changes| changes.resets_age = Some(true))
}

fn set_begin(changes: &mut JobChanges, value: &str, now: &Now) -> Result<(), String> {
    changes.begin = Some(moment(value, now)?);
    Ok(())
}

fn flag(value: &str, key: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "1" => Ok(true),
        "no" | "0" => Ok(false),
        _ => Err(format!("Invalid {key} value: {value}")),
    }
}

/// Why a change cannot be asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// Lines as they are, before anything is sent.
    Lines(Vec<String>),
    /// What Slurm's controller would have said of the job.
    OfJob(String),
}

/// Whatever can be changed, by its whole name.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(name, ..)| *name)
}

/// Notes one `Key=value`.
pub fn note(changes: &mut JobChanges, key: &str, value: &str, now: &Now) -> Result<(), Problem> {
    let fits = |(name, least, _): &&(&str, usize, Apply)| is_short_for(key, name, *least);
    let Some((_, _, apply)) = KEYS.iter().find(fits) else {
        return Err(Problem::Lines(vec![
            format!("Update of this parameter is not supported: {key}={value}"),
            "Request aborted".into(),
        ]));
    };
    apply(changes, value, now).map_err(|problem| match problem.strip_prefix('\u{1}') {
        Some(of_job) => Problem::OfJob(of_job.into()),
        None if problem.starts_with("Invalid time spec") => {
            Problem::Lines(vec![problem, "No changes specified".into()])
        }
        None => Problem::Lines(vec![match problem.strip_prefix('\u{2}') {
            Some(bare) => bare.into(),
            None => format!("scontrol: error: {problem}"),
        }]),
    })
}

/// `TIMEL` is TimeLimit: any case, at least so many letters.
pub fn is_short_for(word: &str, name: &str, least: usize) -> bool {
    word.len() >= least && name.len() >= word.len() && name[..word.len()].eq_ignore_ascii_case(word)
}

fn set_name(changes: &mut JobChanges, value: &str, _: &Now) -> Result<(), String> {
    changes.name = Some(value.into());
    Ok(())
}

fn set_sharing(changes: &mut JobChanges, value: &str, _: &Now) -> Result<(), String> {
    let shares = flag(value, "OverSubscribe").map_err(|_| format!("Invalid OverSubscribe value: {value}"))?;
    changes.shares = Some(shares);
    Ok(())
}

fn set_nodes(changes: &mut JobChanges, value: &str, _: &Now) -> Result<(), String> {
    changes.nodes = Some(nodes(value)?);
    Ok(())
}

fn set_node_count(changes: &mut JobChanges, value: &str, _: &Now) -> Result<(), String> {
    let read =
        |text: &str| text.parse().map_err(|_| format!("Invalid numeric value \"{text}\" for requested node count."));
    let (least, most) = value.split_once('-').unwrap_or((value, value));
    changes.min_nodes = Some(read(least)?);
    changes.max_nodes = Some(read(most)?);
    Ok(())
}

fn number(value: &str, name: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("Invalid {name} value: {value}"))
}

fn memory(value: &str, name: &str) -> Result<u64, String> {
    size::parse_megabytes(value).ok_or_else(|| format!("Invalid {name} value: {value}"))
}

fn nodes(value: &str) -> Result<Vec<NodeName>, String> {
    let names = hostlist::expand(value).map_err(|_| "\u{1}Invalid node name specified".to_string())?;
    Ok(names.into_iter().map(NodeName::from).collect())
}

fn moment(value: &str, now: &Now) -> Result<Timestamp, String> {
    let moment = now.zone.moment(value, now.unix_secs).and_then(|moment| u64::try_from(moment).ok());
    moment.map(Timestamp::from_secs).ok_or_else(|| format!("Invalid time specification (pos=0): {value}"))
}

fn time_limit(value: &str) -> Result<TimeLimitChange, String> {
    let invalid = || "Invalid TimeLimit value".to_string();
    let secs = |text: &str| match duration::parse(text).map(Limit::in_whole_minutes) {
        Some(Limit::Seconds(secs)) => Ok(secs),
        Some(Limit::Unlimited) | None => Err(invalid()),
    };
    if let Some(more) = value.strip_prefix('+') {
        return Ok(TimeLimitChange::LongerBySecs(secs(more)?));
    }
    if let Some(less) = value.strip_prefix('-').filter(|less| *less != "1") {
        return Ok(TimeLimitChange::ShorterBySecs(secs(less)?));
    }
    match duration::parse(value).map(Limit::in_whole_minutes) {
        Some(Limit::Seconds(secs)) => Ok(TimeLimitChange::To(TimeLimit::Secs(secs))),
        Some(Limit::Unlimited) => Ok(TimeLimitChange::To(TimeLimit::Unlimited)),
        None => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::calendar::UTC;

    fn check(pair: &str, expected: &str) {
        let (key, value) = pair.split_once('=').expect("a pair");
        let mut changes = JobChanges::default();
        let now = Now { unix_secs: 1_794_744_000, zone: &UTC };
        let shown = match note(&mut changes, key, value, &now) {
            Ok(()) => {
                let all = format!("{changes:?}");
                let set = all.split(", ").filter(|field| !field.ends_with("None") && !field.ends_with("None }"));
                set.collect::<Vec<_>>().join(", ").replace("JobChanges { ", "").replace(" }", "")
            }
            Err(Problem::Lines(lines)) => lines.join(" / "),
            Err(Problem::OfJob(text)) => format!("{text} for job"),
        };
        assert_eq!(shown, expected, "{pair}");
    }

    #[test]
    fn keys_are_read_as_slurm_reads_them() {
        check("timelimit=20", "time_limit: Some(To(Secs(1200)))");
        check("TIMEL=8", "time_limit: Some(To(Secs(480)))");
        check("TimeLimit=+30", "time_limit: Some(LongerBySecs(1800))");
        check("timelimit=-30", "time_limit: Some(ShorterBySecs(1800))");
        check("timelimit=x", "scontrol: error: Invalid TimeLimit value");
        check("name=new name", "name: Some(\"new name\")");
        check("jobname=x", "name: Some(\"x\")");
        check("numnodes=2-4", "min_nodes: Some(2), max_nodes: Some(4)");
        check("numnodes=x", "scontrol: error: Invalid numeric value \"x\" for requested node count.");
        check("priority=x", "scontrol: error: Invalid Priority value: x");
        check("minmemorynode=x", "scontrol: error: Invalid MinMemoryNode value: x");
        check("minmemorycpu=50", "memory: Some(PerCpuMb(50))");
        check("dependency=x", "Job dependency problem for job");
        check("starttime=x", "Invalid time specification (pos=0): x / No changes specified");
        check("starttime=now+60", "begin: Some(Timestamp(1794744060000000))");
        check("gres=gpu:a:b:c", "Invalid generic resource (gres) specification for job");
        check("endtime=now+60", "end: Some(Timestamp(1794744060000000))");
        check("OverSubscribe=yes", "shares: Some(true)");
        check("shared=no", "shares: Some(false)");
        check("Contiguous=1", "contiguous: Some(true)");
        check("MinTmpDiskNode=5", "tmp_disk_mb: Some(5)");
        check("mintmp=5", "tmp_disk_mb: Some(5)");
        check("MinCPUsNode=2", "min_cpus_per_node: Some(2)");
        check("MailUser=bob", "mail_to: Some(\"bob\")");
        check("MailType=END,TIME_LIMIT_80", "mail_kinds: Some([End, TimeLimit80])");
        check("mailtype=x", "Invalid MailType: x");
        check("TimeMin=10", "time_min: Some(Secs(600))");
        check("ReqSockets=2", "sockets_per_node: Some(2)");
        check("ReqCores=4", "cores_per_socket: Some(4)");
        check("ReqThreads=1", "threads_per_core: Some(1)");
        check("delayboot=x", "scontrol: error: Invalid DelayBoot value");
        check("oversubscribe=x", "scontrol: error: Invalid OverSubscribe value: x");
        check(
            "numcpus=x",
            "scontrol: error: Invalid numeric value \"x\" for NumCPUs.\nscontrol: error: Invalid NumCPUs value: x",
        );
        check("DelayBoot=5", "delay_boot_secs: Some(300)");
        check("foo=bar", "Update of this parameter is not supported: foo=bar / Request aborted");
        check("state=x", "Update of this parameter is not supported: state=x / Request aborted");
    }
}
