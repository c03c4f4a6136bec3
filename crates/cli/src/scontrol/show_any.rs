//! `scontrol show ENTITY`: what is asked of the controller for each, and who renders it.
use model::Reject;
use model::request::JobFilter;
use wire::CallError;

use super::{
    Entity, Mode, Reply, asking, bbstat, help, hosts, now, only_asking, owner, show, show_assoc_mgr, show_burst,
    show_config, show_node, show_reservation, show_slurmd, show_topology,
};
use crate::zone::Clock;

pub(super) fn show_any(word: &str, rest: &[String], mode: Mode) -> Reply {
    let (entity, glued) = match rest[0].split_once('=') {
        Some((entity, id)) => (entity, Some(id.to_string())),
        None => (rest[0].as_str(), None),
    };
    let Some(entity) = Entity::parse(entity) else {
        return Reply::failed(&format!("invalid entity:{entity} for keyword:{word} "));
    };
    if let Entity::BurstStatus = entity {
        let words = rest[1..].to_vec();
        return asking("slurm_load_burst_buffer_stat error", async |controller, cluster| {
            let page = controller.burst().await?;
            if page.config.as_ref().is_some_and(|config| config.plugin.is_external()) {
                return Ok(Reply::text(controller.burst_status(words.clone()).await?));
            }
            bbstat::show(cluster, &page, &words).await
        });
    }
    if entity == Entity::Associations {
        let words: Vec<String> = glued.into_iter().chain(rest[1..].iter().cloned()).collect();
        return only_asking("slurm_load_assoc_mgr_info error", async |controller| {
            let accounts = controller.accounts().await?;
            let standing = controller.standing().await?;
            let cluster = controller.configuration().await?.config.cluster_name;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Ok(show_assoc_mgr::show(&words, &accounts, &standing, &cluster, mode.style))
        });
    }
    if matches!(entity, Entity::Topology | Entity::Topoconf) {
        return show_network(entity, &rest[1..], glued);
    }
    if rest.len() > 2 || rest.len() == 2 && glued.is_some() {
        return Reply::failed(&format!("too many arguments for keyword:{word}"));
    }
    let id = glued.or_else(|| rest.get(1).cloned());
    let id = id.as_deref();
    let can_be_document = matches!(
        entity,
        Entity::Job
            | Entity::Node
            | Entity::Partition
            | Entity::BurstBuffer
            | Entity::Reservation
            | Entity::Licenses
            | Entity::Step
    );
    if mode.json && !can_be_document {
        return Reply::failed(&format!("scontrol: error: --json is not supported for show {}", rest[0]));
    }
    match entity {
        Entity::HostNames | Entity::HostList | Entity::HostListSorted => host_names(entity, id),
        Entity::Job => show_jobs(id, mode),
        Entity::Step => only_asking("slurm_get_job_steps error", async |controller| {
            let jobs = id.and_then(show::job_of_step).into_iter().collect();
            let filter = JobFilter { jobs, with_steps: true, with_finished: true, ..JobFilter::default() };
            let config = controller.configuration().await?.config;
            let page = controller.all_jobs(&filter).await?;
            let clock = now().at(page.now);
            let mut reply = show::steps(id, &page, &config, &clock, mode.style, mode.document(&config));
            preface(&mut reply, mode, &clock, page.steps.len());
            Ok(reply)
        }),
        Entity::Node => only_asking("slurm_load_node error", async |controller| {
            let configuration = controller.configuration().await?;
            if configuration.config.hides_partitions() {
                return Ok(Reply::failed(&format!("slurm_load_partitions error: {}", Reject::NotPermitted)));
            }
            let nodes = match controller.nodes().await {
                Err(CallError::Refused(refusal @ Reject::NotPermitted)) => {
                    return Ok(Reply::failed(&format!("slurm_load_node error: {refusal}")));
                }
                other => other?,
            };
            let clock = now().at(configuration.now);
            let mut reply = show::nodes(
                id,
                &nodes,
                &configuration.config,
                &clock,
                mode.style,
                mode.document(&configuration.config),
            );
            preface(&mut reply, mode, &clock, nodes.len());
            Ok(reply)
        }),
        Entity::Partition => only_asking("slurm_load_partitions error", async |controller| {
            let config = controller.configuration().await?.config;
            if config.hides_partitions() {
                return Ok(Reply::failed(&format!("slurm_load_partitions error: {}", Reject::NotPermitted)));
            }
            // Where nodes are private, what the configuration says of them is enough.
            let nodes = match controller.nodes().await {
                Err(CallError::Refused(Reject::NotPermitted)) => show_node::as_configured(&config),
                other => other?,
            };
            let sees_hidden = mode.all || crate::users::sees_hidden(&config);
            let mut reply = show::partitions(id, &nodes, &config, mode.style, sees_hidden, mode.document(&config));
            preface(&mut reply, mode, &now(), config.partitions.len());
            Ok(reply)
        }),
        Entity::Config => show_config_reply(),
        Entity::Aliases => only_asking("slurm_load_node error", async |controller| {
            let nodes = controller.nodes().await?;
            let fits = |view: &&model::request::NodeView| {
                id.is_none_or(|id| id == view.node.machine.hostname || id == view.node.name.as_str())
            };
            let names: Vec<&str> = nodes.iter().filter(fits).map(|view| view.node.name.as_str()).collect();
            Ok(Reply::text(if names.is_empty() { String::new() } else { names.join(" ") + "\n" }))
        }),
        Entity::Slurmd => show_slurmd::show(id),
        Entity::Daemons => Reply::text("slurmctld slurmd\n".into()),
        Entity::Reservation => only_asking("slurm_load_reservations error", async |controller| {
            let reservations = controller.reservations().await?;
            // Nodes may be private; then only their names are shown.
            let nodes = controller.nodes().await.unwrap_or_default();
            let config = controller.configuration().await?.config;
            let clock = now();
            Ok(match mode.document(&config) {
                Some(shape) => {
                    let whose = (shape, config.cluster_name.as_str());
                    show_reservation::document(id, &reservations, &nodes, &clock, whose)
                }
                None => show_reservation::reservations(id, &reservations, &nodes, &clock, mode.style),
            })
        }),
        Entity::Licenses => only_asking("slurm_load_licenses error", async |controller| {
            let config = controller.configuration().await?.config;
            let as_json = mode.document(&config).map(|shape| (shape, config.cluster_name.as_str()));
            Ok(show_reservation::licenses(id, &controller.licenses().await?, mode.style, as_json))
        }),
        Entity::Associations | Entity::Topology | Entity::Topoconf => unreachable!("told apart before"),
        Entity::BurstBuffer => only_asking("slurm_load_burst_buffer error", async |controller| {
            let page = controller.burst().await?;
            if mode.json {
                return Ok(Reply::text(show_burst::json(&page)));
            }
            Ok(Reply::text(show_burst::text(&page, &now(), mode.style, mode.verbose)))
        }),
        Entity::BurstStatus | Entity::Federation => Reply::default(),
        Entity::Unsupported(name) => {
            Reply::failed(&format!("scontrol: error: show {name} is not supported; see docs/compat.md"))
        }
    }
}

/// What `-v` puts before records.
fn preface(reply: &mut Reply, mode: Mode, clock: &Clock, n_records: usize) {
    if mode.verbose && !mode.json {
        let line = format!("last_update_time={}, records={n_records}\n", clock.show(clock.now()));
        reply.out.insert_str(0, &line);
    }
}

fn show_network(entity: Entity, words: &[String], glued: Option<String>) -> Reply {
    let words: Vec<String> = glued.into_iter().chain(words.iter().cloned()).collect();
    let width = std::env::var("SLURM_TOPO_LEN").ok().and_then(|width| width.parse().ok()).filter(|width| *width > 0);
    only_asking("slurm_load_topo error", async |controller| {
        let config = controller.configuration().await?.config;
        let nodes = controller.nodes().await?;
        Ok(match entity {
            Entity::Topoconf => show_topology::topoconf(&config, &nodes),
            _ => show_topology::reply(&words, &config, &nodes, width),
        })
    })
}

fn show_jobs(id: Option<&str>, mode: Mode) -> Reply {
    let filter = match show::job_request(id) {
        Ok(filter) => filter,
        Err(line) => return Reply::failed(&line),
    };
    only_asking("slurm_load_jobs error", async |controller| {
        let config = controller.configuration().await?.config;
        let page = controller.all_jobs(&filter).await?;
        let clock = now().at(page.now);
        let mut reply = show::jobs(id, &page, &config, &clock, mode.style, mode.document(&config));
        preface(&mut reply, mode, &clock, page.jobs.len());
        Ok(reply)
    })
}

fn show_config_reply() -> Reply {
    asking("slurm_load_ctl_conf error", async |controller, cluster| {
        let configuration = controller.configuration().await?;
        let clock = now().at(configuration.now);
        let file = cluster.file.display().to_string();
        let around = show_config::Around { file: &file, owner: owner(&configuration), clock: &clock };
        let mut out = show_config::text(&configuration, &around);
        let answer = controller.ping().await?;
        out.push_str(&format!("Slurmctld({}) at {} is UP\n", answer.mode, answer.host));
        Ok(Reply::text(out))
    })
}

fn host_names(entity: Entity, id: Option<&str>) -> Reply {
    let own = || ["SLURM_NODELIST", "SLURM_JOB_NODELIST"].iter().find_map(|name| std::env::var(name).ok());
    let answer = match (entity, id) {
        (Entity::HostNames, Some(list)) => hosts::names(list),
        (Entity::HostNames, None) => match own() {
            Some(list) => hosts::names(&list),
            None => Err("scontrol: error: host list is empty".into()),
        },
        (_, None) => return Reply { out: help::HELP.into(), ..Reply::failed("invalid encode argument") },
        (Entity::HostListSorted, Some(text)) => hosts::list_sorted(text),
        (_, Some(text)) => hosts::list(text),
    };
    match answer {
        Ok(text) => Reply::text(text),
        // Slurm complains, but does not fail.
        Err(line) => Reply { code: 0, ..Reply::failed(&line) },
    }
}
