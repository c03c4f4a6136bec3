//! Every column of a job, by letter and by name.
use std::borrow::Cow;

use model::JobKind;
use model::duration;
use model::hostlist;
use model::job_state::JobState;
use model::kept::Spared;
use model::size;
use model::spec::TimeLimit;

use crate::job_view::{JobView, put};
use crate::render::{Column, Cut, Key, natural, or_null, view};
use crate::staging_view::Total;

view! {
    /// The view of jobs.
    Jobs of JobView
}

/// The order in which `%all` shows the letters.
pub const ALL: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

const NONE: char = '\0';

pub static COLUMNS: &[Column<Jobs>] = &[
    column('i', "jobarrayid", "JOBID", |view, out| view.write_id(out)).sorted_by(id_key),
    column('A', "jobid", "JOBID", |view, out| put(out, view.job.id)).sorted_by(|view| number(view.job.id.0)),
    column('F', "arrayjobid", "ARRAY_JOB_ID", |view, out| put(out, array_id(view)))
        .sorted_by(|view| number(array_id(view))),
    column('K', "arraytaskid", "ARRAY_TASK_ID", |view, out| view.write_task(out))
        .sorted_by(|view| number(view.task.or(view.job.array_task()).unwrap_or(u32::MAX))),
    column('j', "name", "NAME", |view, out| out.push_str(&view.spec().name)).sorted_by(|view| text(&view.spec().name)),
    column('P', "partition", "PARTITION", |view, out| view.write_partition(out)).sorted_by(|view| {
        let mut name = String::new();
        view.write_partition(&mut name);
        Key::Text(Cow::Owned(name))
    }),
    column('u', "username", "USER", |view, out| view.write_user(out)).sorted_by(|view| text(&view.spec().user)),
    column('U', "userid", "UID", |view, out| put(out, view.spec().uid)).sorted_by(|view| number(view.spec().uid)),
    column('g', "groupname", "GROUP", |view, out| view.write_group(out)).sorted_by(as_it_is),
    column('G', "groupid", "GROUP", |view, out| put(out, view.spec().gid)).sorted_by(|view| number(view.spec().gid)),
    column('t', "statecompact", "ST", |view, out| out.push_str(view.job.state().code()))
        .sorted_by(|view| text(view.job.state().code())),
    column('T', "state", "STATE", |view, out| out.push_str(view.job.state().name()))
        .sorted_by(|view| text(view.job.state().name())),
    column('M', "timeused", "TIME", |view, out| out.push_str(&duration::show_short(view.run_secs())))
        .sorted_by(|view| number64(view.run_secs()))
        .cutting(Cut::Titles),
    column('l', "timelimit", "TIME_LIMIT", |view, out| write_limit(view.time_limit(), out))
        .sorted_by(|view| limit_key(view.time_limit()))
        .cutting(Cut::Titles),
    column('L', "timeleft", "TIME_LEFT", write_time_left)
        .sorted_by(|view| match view.time_limit() {
            TimeLimit::Secs(secs) => Key::Number(secs as i64 - view.run_secs() as i64),
            TimeLimit::Unlimited => Key::Number(i64::MAX),
        })
        .cutting(Cut::Titles),
    column('S', "starttime", "START_TIME", |view, out| view.scene.clock.write_or(view.start_time(), "N/A", out))
        .sorted_by(|view| view.start_time().map_or(Key::Absent, |start| number64(start.secs()))),
    column('e', "endtime", "END_TIME", |view, out| view.write_end(out))
        .sorted_by(|view| number64(view.end_time().map_or(0, |end| end.secs()))),
    column('V', "submittime", "SUBMIT_TIME", |view, out| view.scene.clock.write(view.job.submitted, out))
        .sorted_by(|view| number64(view.job.submitted.secs())),
    column(NONE, "eligibletime", "ELIGIBLE_TIME", |view, out| view.scene.clock.write_or(view.eligible(), "N/A", out)),
    column(NONE, "accruetime", "ACCRUE_TIME", |view, out| {
        view.scene.clock.write_or(view.job.accrue_time(), "N/A", out)
    }),
    column(NONE, "lastschedeval", "LAST_SCHED_EVAL", |view, out| view.scene.clock.write(view.last_evaluated(), out)),
    column(NONE, "deadline", "DEADLINE", |view, out| view.scene.clock.write_or(view.spec().deadline, "N/A", out)),
    column(NONE, "preempttime", "PREEMPT_TIME", |view, out| {
        view.scene.clock.write_or(view.job.preempted_at, "N/A", out)
    }),
    column(NONE, "resizetime", "RESIZE_TIME", |_, out| out.push_str("N/A")).cutting(Cut::Titles),
    column(NONE, "pendingtime", "PENDING_TIME", |view, out| {
        let until = view.job.started.unwrap_or(view.now());
        put(out, (until - view.job.submitted).secs())
    }),
    column('D', "numnodes", "NODES", |view, out| put(out, view.n_nodes())).sorted_by(|view| number(view.n_nodes())),
    column('C', "numcpus", "CPUS", |view, out| put(out, view.n_cpus())).sorted_by(|view| number(view.n_cpus())),
    column(NONE, "numtasks", "TASKS", |view, out| put(out, view.n_tasks())),
    column(NONE, "maxcpus", "MAX_CPUS", |view, out| put(out, view.n_cpus())),
    column(NONE, "maxnodes", "MAX_NODES", |view, out| {
        put(out, view.spec().size.max_nodes.filter(|_| !view.has_nodes()).unwrap_or(view.n_nodes()))
    }),
    column(NONE, "cpus-per-task", "CPUS_PER_TASK", |view, out| put(out, view.spec().size.n_cpus_per_task())),
    column('c', "mincpus", "MIN_CPUS", |view, out| put(out, view.min_cpus_per_node())).sorted_by(as_it_is),
    column('m', "minmemory", "MIN_MEMORY", |view, out| view.write_megabytes(view.min_memory_mb(), out))
        .sorted_by(|view| number64(view.min_memory_mb())),
    column('d', "mintmpdisk", "MIN_TMP_DISK", |view, out| view.write_megabytes(view.spec().size.tmp_disk_mb, out))
        .sorted_by(|view| number64(view.spec().size.tmp_disk_mb)),
    column(NONE, "mintime", "TIME_MIN", |view, out| match view.spec().time_min {
        Some(limit) => write_limit(limit, out),
        None => out.push_str("0:00"),
    }),
    column('N', "nodelist", "NODELIST", |view, out| out.push_str(&view.node_list()))
        .sorted_by(|view| match view.has_nodes() {
            true => view.job.allocation.names().next().map_or(Key::Missing, |name| natural(name.as_str())),
            false => Key::Missing,
        })
        .cutting(Cut::Nothing),
    column('R', "reasonlist", "NODELIST(REASON)", write_nodes_or_reason).cutting(Cut::Reasons),
    column('r', "reason", "REASON", |view, out| out.push_str(&view.short_reason())),
    column('B', "batchhost", "EXEC_HOST", |view, out| out.push_str(view.batch_host().unwrap_or("n/a")))
        .sorted_by(|view| text(view.batch_host().unwrap_or_default())),
    column(NONE, "allocnodes", "ALLOC_NODES", |view, out| or_null(&view.spec().submit_host, out)),
    column(NONE, "allocsid", "ALLOC_SID", |_, out| out.push('0')),
    column('n', "reqnodes", "REQ_NODES", |view, out| {
        out.push_str(&hostlist::compress(view.spec().size.listed_nodes()))
    })
    .sorted_by(as_it_is),
    column('x', "excnodes", "EXC_NODES", |view, out| out.push_str(&hostlist::compress(&view.spec().size.excluded))),
    column('Y', "schednodes", "SCHEDNODES", |view, out| or_null(&view.job.expected_nodes, out)).cutting(Cut::Nothing),
    column('f', "feature", "FEATURES", |view, out| or_null(&view.spec().size.features, out)).sorted_by(as_it_is),
    column('b', "tres-per-node", "TRES_PER_NODE", |view, out| match view.tres_per_node() {
        none if none.is_empty() => out.push_str("N/A"),
        some => out.push_str(&some),
    })
    .sorted_by(as_it_is),
    column(NONE, "tres-alloc", "TRES_ALLOC", |view, out| out.push_str(&view.tres())),
    column('h', "oversubscribe", "OVER_SUBSCRIBE", |view, out| out.push_str(view.oversubscribe())).sorted_by(as_it_is),
    column('O', "contiguous", "CONTIGUOUS", |view, out| put(out, u8::from(view.spec().size.contiguous)))
        .sorted_by(as_it_is),
    column('p', "priority", "PRIORITY", |view, out| {
        put(out, format_args!("{:.14}", f64::from(view.priority()) / f64::from(u32::MAX)))
    })
    .sorted_by(by_priority),
    column('Q', "prioritylong", "PRIORITY", |view, out| put(out, view.priority())).sorted_by(by_priority),
    column('y', "nice", "NICE", |view, out| put(out, view.spec().nice))
        .sorted_by(|view| Key::Number(i64::from(view.spec().nice))),
    column('a', "account", "ACCOUNT", |view, out| or_null(&view.spec().account, out)),
    column('q', "qos", "QOS", |view, out| or_null(&view.spec().qos, out)),
    column('w', "wckey", "WCKEY", |view, out| or_null(&view.spec().wckey, out)),
    column('k', "comment", "COMMENT", |view, out| or_null(&view.spec().comment, out)),
    column('E', "dependency", "DEPENDENCY", |view, out| or_null(&view.dependency(), out)),
    column('o', "command", "COMMAND", |view, out| or_null(&view.command(), out)),
    column('Z', "workdir", "WORK_DIR", |view, out| or_null(&view.spec().work_dir, out)),
    column(NONE, "stdin", "STDIN", |view, out| match view.spec().is_batch() {
        true => out.push_str(&view.stdin()),
        false => out.push_str("(null)"),
    }),
    column(NONE, "stdout", "STDOUT", |view, out| out.push_str(&view.stdout())),
    column(NONE, "stderr", "STDERR", |view, out| match view.spec().is_batch() {
        true => out.push_str(&view.stderr()),
        false => out.push_str("N/A"),
    }),
    column(NONE, "batchflag", "BATCH_FLAG", |view, out| put(out, u8::from(view.spec().is_batch()))),
    column(NONE, "requeue", "REQUEUE", |view, out| put(out, u8::from(view.requeues()))),
    column(NONE, "restartcnt", "RESTART_COUNT", |view, out| put(out, view.job.restarts)),
    column(NONE, "exit_code", "EXIT_CODE", |view, out| put(out, view.job.exit.shell_code())),
    column(NONE, "derivedec", "DERIVED_EC", |view, out| put(out, view.job.derived_exit.shell_code())),
    column(NONE, "cluster", "CLUSTER", |view, out| out.push_str(&view.scene.config.cluster_name)),
    column(NONE, "ntpernode", "NTASKS_PER_NODE", |view, out| {
        put(out, view.spec().size.tasks_per_node.unwrap_or_default())
    }),
    column('v', "reservation", "RESERVATION", |view, out| or_null(&view.reservation(), out))
        .sorted_by(|view| Key::Text(Cow::Owned(view.reservation()))),
    column('W', "licenses", "LICENSES", |view, out| or_null(&view.spec().licenses.to_string(), out)),
    column('X', "corespec", "CORE_SPEC", |view, out| match view.spec().size.spared {
        Some(Spared::Cores(count)) => out.push_str(&count.to_string()),
        Some(Spared::Threads(count)) => out.push_str(&format!("{count} Threads")),
        None => out.push_str("N/A"),
    }),
    column('H', "sockets", "SOCKETS_PER_NODE", |view, out| or_any(view.spec().size.sockets_per_node, out))
        .sorted_by(|view| any_key(view.spec().size.sockets_per_node)),
    column('I', "cores", "CORES_PER_SOCKET", |view, out| or_any(view.spec().size.cores_per_socket, out))
        .sorted_by(|view| any_key(view.spec().size.cores_per_socket)),
    column('J', "threads", "THREADS_PER_CORE", |view, out| or_any(view.spec().size.threads_per_core, out))
        .sorted_by(|view| any_key(view.spec().size.threads_per_core)),
    column('z', "sct", "S:C:T", |view, out| {
        let size = &view.spec().size;
        or_any(size.sockets_per_node, out);
        out.push(':');
        or_any(size.cores_per_socket, out);
        out.push(':');
        or_any(size.threads_per_core, out);
    })
    .sorted_by(|view| any_key(view.spec().size.sockets_per_node)),
    column('s', "selectjobinfo", "", |_, _| {}),
    column(NONE, "admin_comment", "ADMIN_COMMENT", |view, out| or_null(&view.job.admin_comment, out)),
    column(NONE, "system_comment", "SYSTEM_COMMENT", |view, out| match view.job.remarks.is_empty() {
        true => out.push_str("(null)"),
        false => out.push_str(&view.system_comment()),
    }),
    column(NONE, "associd", "ASSOC_ID", |view, out| put(out, view.job.association)),
    column(NONE, "boardspernode", "BOARDS_PER_NODE", |_, out| out.push('0')),
    column(NONE, "burstbuffer", "BURST_BUFFER", |view, out| {
        out.push_str(view.spec().buffer.as_ref().map_or("(null)", |request| &request.text))
    }),
    column(NONE, "burstbufferstate", "BURST_BUFFER_STATE", |view, out| {
        out.push_str(view.job.buffer_state().map_or("(null)", |state| state.word()))
    }),
    column(NONE, "burstbufferprogress", "BURST_BUFFER_PROGRESS", |view, out| {
        out.push_str(&staging(view).map_or("n/a".into(), |total| total.show()))
    }),
    column(NONE, "burstbufferrate", "BURST_BUFFER_RATE", |view, out| {
        out.push_str(&staging(view).map_or("n/a".into(), |total| total.rate()))
    }),
    column(NONE, "burstbuffereta", "BURST_BUFFER_ETA", |view, out| {
        out.push_str(&staging(view).map_or("n/a".into(), |total| total.time_left()))
    }),
    column(NONE, "clusterfeature", "CLUSTER_FEATURES", |_, out| out.push_str("(null)")),
    column(NONE, "container", "CONTAINER", |_, out| out.push_str("(null)")),
    // Of later releases.
    column(NONE, "containerid", "CONTAINER_ID", |_, out| out.push_str("(null)")),
    column(NONE, "licensesalloc", "LICENSES_ALLOC", |view, out| match view.has_nodes() {
        true => or_null(&view.spec().licenses.to_string(), out),
        false => out.push_str("(null)"),
    }),
    column(NONE, "segmentsize", "SEGMENT_SIZE", |view, out| put(out, view.spec().size.network.segment)),
    column(NONE, "cpus-per-tres", "CPUS_PER_TRES", |view, out| or_not_there(&view.cpus_per_tres(), out)),
    column(NONE, "delayboot", "DELAY_BOOT", |_, out| out.push_str("0:00")),
    column(NONE, "hetjobid", "HET_JOB_ID", |view, out| of_het(view, out, |het| het.leader.to_string())),
    column(NONE, "hetjobidset", "HET_JOB_ID_SET", |view, out| of_het(view, out, model::HetPlace::id_set)),
    column(NONE, "hetjoboffset", "HET_JOB_OFFSET", |view, out| of_het(view, out, |het| het.offset.to_string())),
    column(NONE, "mcslabel", "MCSLABEL", |view, out| match view.spec().mcs_label.as_str() {
        "" => out.push_str("(null)"),
        label => out.push_str(label),
    }),
    column(NONE, "mem-per-tres", "MEM_PER_TRES", |view, out| or_not_there(&view.memory_per_tres(), out)),
    column(NONE, "network", "NETWORK", |_, out| out.push_str("(null)")),
    column(NONE, "ntperboard", "NTASKS_PER_BOARD", |_, out| out.push('0')),
    column(NONE, "ntpercore", "NTASKS_PER_CORE", |view, out| {
        or_not_there(&view.spec().size.tasks_per_core.map_or(String::new(), |count| count.to_string()), out)
    }),
    column(NONE, "ntpersocket", "NTASKS_PER_SOCKET", |view, out| {
        or_not_there(&view.spec().size.tasks_per_socket.map_or(String::new(), |count| count.to_string()), out)
    }),
    column(NONE, "origin", "ORIGIN", |_, out| out.push_str("NA")),
    column(NONE, "originraw", "ORIGIN_RAW", |_, out| out.push_str("NA")),
    column(NONE, "prefer", "PREFER", |view, out| or_null(&view.spec().size.preferred, out)),
    column(NONE, "profile", "PROFILE", |_, out| out.push_str("NotSet")),
    column(NONE, "reboot", "REBOOT", |view, out| out.push(if view.spec().wants_reboot { '1' } else { '0' })),
    column(NONE, "reqswitch", "REQ_SWITCH", |view, out| {
        out.push_str(&view.spec().size.network.n_switches.to_string());
    }),
    column(NONE, "siblingsactive", "ACTIVE_SIBLINGS", |_, out| out.push_str("NA")),
    column(NONE, "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", |_, out| out.push_str("NA")),
    column(NONE, "siblingsviable", "VIABLE_SIBLINGS", |_, out| out.push_str("NA")),
    column(NONE, "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", |_, out| out.push_str("NA")),
    column(NONE, "sperboard", "SOCKETS_PER_BOARD", |_, out| out.push('0')),
    column(NONE, "tres-bind", "TRES_BIND", |view, out| or_not_there(&view.tres_bind(), out)),
    column(NONE, "tres-freq", "TRES_FREQ", |view, out| or_not_there(&view.tres_freq(), out)),
    column(NONE, "tres-per-job", "TRES_PER_JOB", |view, out| or_not_there(&view.tres_per_job(), out)),
    column(NONE, "tres-per-socket", "TRES_PER_SOCKET", |view, out| {
        or_not_there(&view.spec().tres_words.per_socket, out)
    }),
    column(NONE, "tres-per-task", "TRES_PER_TASK", |view, out| or_not_there(&view.tres_per_task(), out)),
    column(NONE, "wait4switch", "WAIT4SWITCH", |view, out| {
        out.push_str(&model::duration::show_short(view.switch_wait().map_or(0, |wait| wait.secs())));
    }),
];

fn of_het(view: &JobView, out: &mut String, show: impl Fn(&model::HetPlace) -> String) {
    match &view.job.het {
        Some(het) => out.push_str(&show(het)),
        None => out.push_str("N/A"),
    }
}

fn staging(view: &JobView) -> Option<Total> {
    Total::of(view.job, view.scene.progress)
}

fn array_id(view: &JobView) -> u32 {
    view.job.array_id().unwrap_or(view.job.id).0
}

/// The task of an array after the array, what waits of it last.
fn id_key<'r>(view: &'r JobView) -> Key<'r> {
    if let Some(het) = &view.job.het {
        return Key::Number(i64::from(het.leader.0) << 32 | i64::from(het.offset));
    }
    let task = match view.task.or(view.job.array_task()) {
        Some(task) => i64::from(task),
        None if view.job.array.is_some() => i64::from(u32::MAX),
        None => 0,
    };
    Key::Number(i64::from(array_id(view)) << 32 | task)
}

fn text(text: &str) -> Key<'_> {
    Key::Text(Cow::Borrowed(text))
}

/// Rows that stand for one partition go by its tier first (`-P`).
fn by_priority<'r>(view: &'r JobView<'_>) -> Key<'r> {
    let partition = view.partition.and_then(|name| view.scene.config.partition(name));
    let tier = partition.map_or(0, |partition| partition.priority_tier);
    Key::Number((i64::from(tier) << 32) | i64::from(view.priority()))
}

fn number(number: u32) -> Key<'static> {
    Key::Number(i64::from(number))
}

fn number64(number: u64) -> Key<'static> {
    Key::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A letter that Slurm takes for a key, and that changes nothing.
fn as_it_is<'r>(_: &'r JobView<'_>) -> Key<'r> {
    Key::Number(0)
}

/// Any number is more than one that was asked for.
fn any_key(count: Option<u32>) -> Key<'static> {
    number(count.unwrap_or(u32::MAX))
}

fn limit_key(limit: TimeLimit) -> Key<'static> {
    match limit {
        TimeLimit::Secs(secs) => number64(secs),
        TimeLimit::Unlimited => Key::Number(i64::MAX),
    }
}

pub(super) fn write_limit(limit: TimeLimit, out: &mut String) {
    match limit {
        TimeLimit::Secs(secs) => out.push_str(&duration::show_short(secs)),
        TimeLimit::Unlimited => out.push_str("UNLIMITED"),
    }
}

fn write_time_left(view: &JobView, out: &mut String) {
    match view.time_limit() {
        TimeLimit::Secs(secs) => out.push_str(&duration::show_elapsed(secs as i64 - view.run_secs() as i64)),
        TimeLimit::Unlimited => out.push_str("UNLIMITED"),
    }
}

/// Nodes, or in parentheses why there are none, or why it failed.
fn write_nodes_or_reason(view: &JobView, out: &mut String) {
    let state = view.job.base_state();
    let tells_why = matches!(
        state,
        JobState::Pending | JobState::Failed | JobState::Timeout | JobState::OutOfMemory | JobState::Deadline
    );
    if view.job.is_staging_out() || (tells_why && view.job.state() != JobState::Completing) {
        out.push('(');
        out.push_str(&view.short_reason());
        out.push(')');
        return;
    }
    match &view.job.allocation.nodes[..] {
        [only] if view.has_nodes() => out.push_str(only.node.as_str()),
        _ => out.push_str(&view.node_list()),
    }
}

impl JobView<'_> {
    fn write_partition(&self, out: &mut String) {
        if let Some(partition) = self.partition {
            return out.push_str(partition);
        }
        let waiting = self.job.phase == model::Phase::Pending;
        match &self.spec().partitions[..] {
            many @ [_, _, ..] if waiting => out.push_str(&many.join(",")),
            _ => out.push_str(&self.job.partition),
        }
    }

    fn write_user(&self, out: &mut String) {
        match self.spec().user.as_str() {
            "" => put(out, self.spec().uid),
            user => out.push_str(user),
        }
    }

    fn write_group(&self, out: &mut String) {
        match self.spec().group.as_str() {
            "" => put(out, self.spec().gid),
            group => out.push_str(group),
        }
    }

    fn write_end(&self, out: &mut String) {
        match self.end_time() {
            Some(end) => self.scene.clock.write(end, out),
            None if self.start_time().is_some() => out.push_str("NONE"),
            None => out.push_str("N/A"),
        }
    }

    fn write_megabytes(&self, megabytes: u64, out: &mut String) {
        if self.scene.converts {
            out.push_str(&size::show_megabytes(megabytes));
        } else {
            put(out, format_args!("{megabytes}M"));
        }
    }

    /// A step made by `srun` itself runs the same program as its job.
    pub fn is_run(&self) -> bool {
        matches!(self.spec().kind, JobKind::Run(_))
    }
}

/// A count, or a star for any.
fn or_any(count: Option<u32>, out: &mut String) {
    match count {
        Some(count) => put(out, count),
        None => out.push('*'),
    }
}

fn or_not_there(text: &str, out: &mut String) {
    out.push_str(if text.is_empty() { "N/A" } else { text });
}
