//! A job in Slurm's JSON.
use std::collections::BTreeMap;

use model::kept::Spared;
use model::spec::{Mail, Memory, Sharing, TimeLimit};
use model::{JobKind, Timestamp, hostlist};

use crate::job_view::JobView;

use super::Json;

/// Writes the fields of one job.
pub fn write(view: &JobView, json: &mut Json) {
    let (job, spec) = (view.job, view.spec());
    let size = &spec.size;
    let is_batch = matches!(spec.kind, JobKind::Batch { .. });
    let secs = |moment: Option<Timestamp>| moment.map_or(0, Timestamp::secs);
    let memory = view.memory();
    let mut tasks = String::new();
    if job.waiting_tasks.is_some() && view.task.is_none() {
        view.write_task(&mut tasks);
    }
    json.field("account", &spec.account);
    json.field("accrue_time", secs(job.accrue_time()));
    json.field("admin_comment", &job.admin_comment);
    json.field("array_job_id", job.array_id().map_or(0, |id| id.0));
    json.field("array_task_id", view.task.or(job.array_task()));
    json.field("array_max_tasks", spec.array.as_ref().and_then(|array| array.limit).unwrap_or(0));
    json.field("array_task_string", &tasks);
    json.field("association_id", job.association);
    json.field("batch_features", &spec.batch_features);
    json.field("batch_flag", is_batch);
    json.field("batch_host", view.batch_host().filter(|_| view.has_nodes()).unwrap_or(""));
    json.list_field("flags", |json| flags(view).for_each(|flag| json.item(flag)));
    json.field("burst_buffer", view.spec().buffer.as_ref().map_or("", |request| &request.text));
    json.field("burst_buffer_state", view.job.buffer_state().map_or("", |state| state.word()));
    json.field("cluster", &view.scene.config.cluster_name);
    json.field("cluster_features", "");
    json.field("command", &view.command());
    json.field("comment", &spec.comment);
    json.field("container", "");
    json.field("contiguous", size.contiguous);
    let (cores, threads) = match size.spared {
        None => (None, None),
        Some(Spared::Cores(count)) => (Some(count), None),
        Some(Spared::Threads(count)) => (None, Some(count)),
    };
    json.field("core_spec", cores);
    json.field("thread_spec", threads);
    json.field("cores_per_socket", size.cores_per_socket);
    json.field("billable_tres", view.has_nodes().then(|| view.billing() as f64));
    json.field("cpus_per_task", size.cpus_per_task);
    json.field("cpu_frequency_minimum", None::<u32>);
    json.field("cpu_frequency_maximum", None::<u32>);
    json.field("cpu_frequency_governor", None::<u32>);
    json.field("cpus_per_tres", &view.cpus_per_tres());
    json.field("deadline", secs(spec.deadline));
    json.field("delay_boot", view.spec().delay_boot.secs());
    json.field("dependency", &view.dependency());
    json.field("derived_exit_code", job.derived_exit.to_wait_status());
    json.field("eligible_time", secs(view.eligible()));
    json.field("end_time", secs(view.end_time()));
    json.field("excluded_nodes", &hostlist::compress(&size.excluded));
    json.field("exit_code", job.exit.to_wait_status());
    json.field("features", &size.features);
    json.field("federation_origin", "");
    json.field("federation_siblings_active", "");
    json.field("federation_siblings_viable", "");
    json.list_field("gres_detail", |json| {
        for share in job.allocation.nodes.iter().filter(|share| !share.gres.is_empty()) {
            let held: Vec<String> = share.gres.iter().map(|gres| gres.to_string()).collect();
            json.item(&held.join(","));
        }
    });
    json.field("group_id", spec.gid);
    json.field("group_name", &spec.group);
    json.field("job_id", job.id.0);
    if view.has_nodes() {
        json.object_field("job_resources", |json| match json.shape().is_at_least(41) {
            true => resources_by_place(view, json),
            false => resources(view, json),
        });
    }
    // Passing states are flags on the one below; 22.05 names the flag alone.
    let (state, base) = (job.state().name(), job.base_state().name());
    match json.shape().is_newer() && state != base {
        true => json.field("job_state", format!("{base},{state}").as_str()),
        false => json.field("job_state", state),
    }
    json.field("last_sched_evaluation", view.last_evaluated().secs());
    json.field("licenses", &view.spec().licenses.to_string());
    json.field("max_cpus", 0_u32);
    json.field("max_nodes", size.max_nodes.unwrap_or(0));
    json.field("mcs_label", &spec.mcs_label);
    json.field("memory_per_tres", &view.memory_per_tres());
    json.field("name", &spec.name);
    json.field("nodes", &view.node_list());
    json.field("nice", (spec.nice != 0).then_some(spec.nice));
    json.field("tasks_per_core", size.tasks_per_core);
    json.field("tasks_per_node", size.tasks_per_node.unwrap_or(0));
    json.field("tasks_per_socket", size.tasks_per_socket);
    json.field("tasks_per_board", 0_u32);
    json.field("cpus", view.n_cpus());
    json.field("node_count", view.n_nodes());
    json.field("tasks", view.n_tasks());
    let het = job.het.as_ref();
    json.field("het_job_id", het.map_or(0, |het| het.leader.0));
    json.field("het_job_id_set", het.map_or(String::new(), |het| het.id_set()).as_str());
    json.field("het_job_offset", het.map_or(0, |het| het.offset));
    json.field("partition", view.partition.unwrap_or(&job.partition));
    json.field("prefer", &size.preferred);
    json.field("memory_per_node", if let Memory::PerNodeMb(megabytes) = memory { Some(megabytes) } else { None });
    json.field("memory_per_cpu", if let Memory::PerCpuMb(megabytes) = memory { Some(megabytes) } else { None });
    json.field("minimum_cpus_per_node", view.min_cpus_per_node());
    json.field("minimum_tmp_disk_per_node", size.tmp_disk_mb);
    json.field("preempt_time", job.preempted_at.map_or(0, |at| at.secs()));
    json.field("pre_sus_time", job.run_before_suspend.secs());
    json.field("priority", view.priority());
    json.field("profile", None::<u32>);
    json.field("qos", &spec.qos);
    json.field("reboot", spec.wants_reboot);
    json.field("required_nodes", &hostlist::compress(size.listed_nodes()));
    json.field("requeue", view.requeues());
    json.field("resize_time", 0_u32);
    json.field("restart_cnt", job.restarts);
    json.field("resv_name", &view.reservation());
    json.field(
        "shared",
        match size.sharing {
            Sharing::Default => None,
            Sharing::WholeNodes => Some("none"),
            Sharing::OneUser => Some("user"),
            Sharing::Oversubscribe => Some("oversubscribe"),
        },
    );
    json.list_field("show_flags", |json| {
        let is_short = json.shape().is_at_least(40);
        ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"]
            .into_iter()
            .for_each(|flag| json.item(if is_short { &flag["SHOW_".len()..] } else { flag }));
    });
    json.field("sockets_per_board", 0_u32);
    json.field("sockets_per_node", size.sockets_per_node);
    json.field("start_time", secs(view.start_time()));
    json.field("state_description", &job.reason_text);
    json.field("state_reason", job.reason_word().unwrap_or("None"));
    json.field("standard_error", if is_batch { view.stderr() } else { String::new() }.as_str());
    json.field("standard_input", if is_batch { view.stdin() } else { String::new() }.as_str());
    json.field("standard_output", if is_batch { view.stdout() } else { String::new() }.as_str());
    json.field("submit_time", job.submitted.secs());
    json.field("suspend_time", secs(job.suspend_changed));
    json.field("system_comment", &view.system_comment());
    json.field(
        "time_limit",
        match view.time_limit() {
            TimeLimit::Secs(secs) => Some(secs / 60),
            TimeLimit::Unlimited => None,
        },
    );
    json.field(
        "time_minimum",
        match spec.time_min {
            Some(TimeLimit::Secs(secs)) => secs / 60,
            Some(TimeLimit::Unlimited) | None => 0,
        },
    );
    json.field("threads_per_core", size.threads_per_core);
    json.field("tres_bind", &view.tres_bind());
    json.field("tres_freq", &view.tres_freq());
    json.field("tres_per_job", &view.tres_per_job());
    json.field("tres_per_node", &view.tres_per_node());
    json.field("tres_per_socket", &spec.tres_words.per_socket);
    json.field("tres_per_task", &view.tres_per_task());
    json.field("tres_req_str", &view.tres());
    json.field("tres_alloc_str", if view.has_nodes() { view.tres() } else { String::new() }.as_str());
    json.field("user_id", spec.uid);
    json.field("user_name", &spec.user);
    json.field("wckey", &spec.wckey);
    json.field("current_working_directory", &spec.work_dir);
    if json.shape().is_newer() {
        newer(view, json);
    }
}

/// What it was asked to be besides, in Slurm's words.
fn flags(view: &JobView) -> impl Iterator<Item = &'static str> {
    let (spec, size) = (view.spec(), &view.spec().size);
    let flags = [
        (spec.kill_on_invalid_dependency == Some(true), "KILL_INVALID_DEPENDENCY"),
        (spec.kill_on_invalid_dependency == Some(false), "NO_KILL_INVALID_DEPENDENCY"),
        (size.spreads, "SPREAD_JOB"),
        (size.prefers_few_nodes, "PREFER_MINIMUM_NODE_COUNT"),
    ];
    flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag)
}

/// What parsers after 22.05's have besides.
fn newer(view: &JobView, json: &mut Json) {
    let (job, spec) = (view.job, view.spec());
    json.field("allocating_node", &spec.submit_host);
    json.field("container_id", "");
    json.field("extra", "");
    json.field("failed_node", "");
    json.field("hold", job.held.is_some());
    json.list_field("job_size_str", |_| {});
    json.list_field("mail_type", |json| {
        let words = spec.mail.as_ref().map(Mail::words).unwrap_or_default();
        words.split(',').filter(|word| !word.is_empty()).for_each(|word| json.item(word));
    });
    json.field("mail_user", spec.mail.as_ref().map_or("", |mail| &mail.to));
    json.field("network", "");
    json.number("tasks_per_tres", None);
    json.number("preemptable_time", Some(0));
    json.field("minimum_switches", spec.size.network.n_switches);
    json.field("required_switches", spec.size.network.n_switches);
    json.field("maximum_switch_wait_time", view.switch_wait().map_or(0, |wait| wait.secs()));
    json.field("scheduled_nodes", &job.expected_nodes);
    json.field("selinux_context", "");
    json.field("oversubscribe", spec.size.sharing == Sharing::Oversubscribe);
    json.list_field("priority_by_partition", |_| {});
    if json.shape().is_at_least(43) {
        let path = |text: String| if spec.is_batch() { text } else { String::new() };
        json.field("stdin_expanded", &path(view.stdin()));
        json.field("stdout_expanded", &path(view.stdout()));
        json.field("stderr_expanded", &path(view.stderr()));
    }
}

/// What the job holds, as parsers since v0.0.41 tell it.
fn resources_by_place(view: &JobView, json: &mut Json) {
    let allocation = &view.job.allocation;
    json.list_field("select_type", |json| ["CPU", "MEMORY"].into_iter().for_each(|word| json.item(word)));
    json.object_field("nodes", |json| {
        json.field("count", allocation.nodes.len() as u32);
        json.list_field("select_type", |json| json.item("AVAILABLE"));
        json.field("list", &view.node_list());
        json.field("whole", allocation.is_exclusive);
        json.list_field("allocation", |json| {
            for (index, share) in allocation.nodes.iter().enumerate() {
                json.object(|json| {
                    json.field("index", index as u32);
                    json.field("name", share.node.as_str());
                    json.object_field("cpus", |json| {
                        json.field("count", share.cpus.len());
                        json.field("used", 0_u32);
                    });
                    json.object_field("memory", |json| {
                        json.field("used", 0_u32);
                        json.field("allocated", share.memory_mb);
                    });
                    json.list_field("sockets", |json| {
                        for cpu in share.cpus.iter() {
                            json.object(|json| {
                                json.field("index", cpu);
                                json.list_field("cores", |json| {
                                    json.object(|json| {
                                        json.field("index", 0_u32);
                                        json.list_field("status", |json| json.item("ALLOCATED"));
                                    });
                                });
                            });
                        }
                    });
                });
            }
        });
    });
    json.field("cpus", allocation.n_cpus());
    json.number("threads_per_core", None);
}

/// Each CPU counts as a socket with one core: machines are not described in more detail.
fn resources(view: &JobView, json: &mut Json) {
    let allocation = &view.job.allocation;
    json.field("nodes", &view.node_list());
    if json.shape().is_newer() {
        json.field("allocated_cores", allocation.n_cpus());
    }
    json.field("allocated_cpus", allocation.n_cpus());
    json.field("allocated_hosts", allocation.nodes.len() as u32);
    json.list_field("allocated_nodes", |json| {
        for share in &allocation.nodes {
            json.object(|json| {
                let sockets: BTreeMap<u32, ()> = share.cpus.iter().map(|cpu| (cpu, ())).collect();
                json.object_field("sockets", |json| {
                    for socket in sockets.keys() {
                        json.object_field(&socket.to_string(), |json| {
                            json.object_field("cores", |json| json.field("0", "allocated"));
                        });
                    }
                });
                json.field("nodename", share.node.as_str());
                json.field("cpus_used", 0_u32);
                json.field("memory_used", 0_u32);
                json.field("memory_allocated", share.memory_mb);
            });
        }
    });
}
