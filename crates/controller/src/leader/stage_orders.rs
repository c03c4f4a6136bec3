//! From a buffer's duty to the orders its agents get.
use model::agent::Order;
use model::buffer::{PersistentPhase, Place, Transfer, TransferKind, When};
use model::directive::{Facts, Room, inside, replace, root_above};
use model::staging::{Access, Direction, Home, Removal, StageWork, TransferOrder};
use model::{Buffer, Duty, Job, NodeName, Outcome, Owner, PersistentBuffer, Phase, Task};
use state::Cluster;

use super::fanout;

/// One order, and the place it is about.
pub struct Errand {
    pub access: Access,
    pub node: NodeName,
    pub order: Order,
}

pub fn errands(cluster: &Cluster, duty: &Duty) -> Vec<Errand> {
    match &duty.owner {
        Owner::Buffer(id) => {
            let (Some(job), Some(buffer)) = (cluster.job(*id), cluster.buffer(*id)) else { return Vec::new() };
            // A plugin's hooks do it, not agents.
            if buffer.plugin.is_external() {
                return Vec::new();
            }
            let errands = buffer.places.iter().filter_map(|place| errand(cluster, job, buffer, place, duty.task));
            fanout::arrange(cluster, job, buffer, errands.collect())
        }
        Owner::Persistent(name) => {
            let Some(buffer) = cluster.persistent(name).filter(|buffer| !buffer.plugin.is_external()) else {
                return Vec::new();
            };
            vec![Errand { access: Access::Shared, node: buffer.node.clone(), order: of_persistent(cluster, buffer) }]
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => Vec::new(),
    }
}

/// What clears up after a buffer that nobody knows any more; nobody waits for the answers.
pub fn given_up(cluster: &Cluster, owner: &Owner) -> Vec<Errand> {
    let attempt = u32::MAX;
    match owner {
        Owner::Buffer(id) => {
            let places = cluster.buffer(*id).filter(|buffer| !buffer.plugin.is_external()).map(|buffer| {
                let remove = |place: &Place| {
                    let home = Some(buffer.home(place));
                    let (root, pool) = (place.root.clone(), place.pool.clone());
                    let order = Order::Remove { number: 0, removal: Removal { home, attempt, root, pool } };
                    Errand { access: place.access, node: place.node.clone(), order }
                };
                buffer.places.iter().map(remove).collect()
            });
            places.unwrap_or_default()
        }
        Owner::Persistent(name) => {
            let Some(buffer) = cluster.persistent(name).filter(|buffer| !buffer.plugin.is_external()) else {
                return Vec::new();
            };
            let (home, root, pool) =
                (Home::Persistent { name: name.clone() }, buffer.root.clone(), buffer.pool.clone());
            // A later buffer of the same name has a higher number.
            let removal = Removal { home: Some(home), attempt: buffer.attempt, root, pool };
            let order = Order::Remove { number: 0, removal };
            vec![Errand { access: Access::Shared, node: buffer.node.clone(), order }]
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => Vec::new(),
    }
}

fn errand(cluster: &Cluster, job: &Job, buffer: &Buffer, place: &Place, task: Task) -> Option<Errand> {
    let (access, node) = (place.access, place.node.clone());
    let is_open = !place.is_done && place.failure.is_empty();
    let direction = match task {
        Task::TearDown => None,
        _ if place.is_unwanted => None,
        Task::StageIn | Task::PreRun if is_open => Some(Direction::In),
        Task::StageOut if is_open => Some(Direction::Out),
        _ => return None,
    };
    let home = buffer.home(place);
    let order = match direction {
        None => {
            let (root, pool) = (place.root.clone(), place.pool.clone());
            Order::Remove { number: 0, removal: Removal { home: Some(home), attempt: buffer.attempt, root, pool } }
        }
        Some(direction) => {
            Order::Stage { number: 0, work: Box::new(work(cluster, job, buffer, place, home, direction)) }
        }
    };
    Some(Errand { access, node, order })
}

fn work(cluster: &Cluster, job: &Job, buffer: &Buffer, place: &Place, home: Home, direction: Direction) -> StageWork {
    let space = buffer.spaces.iter().find(|space| space.access == place.access);
    let transfers = transfers(cluster, job, buffer, place, direction);
    let settings = settings(cluster, direction, place.node.as_str());
    let forbidden = [settings.forbidden.clone(), named_roots(cluster, job, &transfers)].concat();
    StageWork {
        home: Some(home),
        attempt: buffer.attempt,
        direction,
        root: place.root.clone(),
        pool: place.pool.clone(),
        capacity_bytes: space.map_or(0, |space| space.bytes),
        uid: job.spec.uid,
        gid: job.spec.gid,
        user: job.spec.user.clone(),
        work_dir: job.spec.work_dir.clone(),
        transfers,
        forbidden,
        environment: state::buffers::environment(cluster, job, &place.node),
        ..settings
    }
}

/// A symbol may have made a path into a pool of one that was none; the agent refuses it, and says so.
fn named_roots(cluster: &Cluster, job: &Job, transfers: &[TransferOrder]) -> Vec<String> {
    let Some(config) = &cluster.config().burst_buffer else { return Vec::new() };
    let is_node = |name: &str| cluster.node(name).is_some();
    let paths = transfers.iter().flat_map(|transfer| [&transfer.outside, &transfer.manifest]);
    let absolute = paths.map(|path| match path.starts_with('/') {
        true => path.clone(),
        false => format!("{}/{path}", job.spec.work_dir),
    });
    let above = |path: String| config.pools.iter().find_map(|pool| root_above(&path, &pool.root, &is_node));
    absolute.filter_map(above).collect()
}

/// What the configuration says of all work.
fn settings(cluster: &Cluster, direction: Direction, node: &str) -> StageWork {
    let config = cluster.config().burst_buffer.clone().unwrap_or_default();
    let (timeout, verify) = match direction {
        Direction::In => (config.stage_in_timeout, config.verify_in),
        Direction::Out => (config.stage_out_timeout, config.verify_out),
    };
    StageWork {
        timeout,
        verify,
        n_workers: config.n_workers,
        bandwidth_bytes: config.bandwidth_bytes,
        forbidden: config.pools.iter().map(|pool| pool.root.replace("%n", node)).collect(),
        ..Default::default()
    }
}

fn transfers(cluster: &Cluster, job: &Job, buffer: &Buffer, place: &Place, direction: Direction) -> Vec<TransferOrder> {
    let Some(request) = &job.spec.buffer else { return Vec::new() };
    let room = Room::of(request);
    let succeeded = job.outcome == Some(Outcome::Completed) && job.phase != Phase::Pending;
    let is_wanted = |transfer: &&Transfer| match transfer.when {
        When::Always => true,
        When::Success => succeeded,
        When::Failure => !succeeded,
    };
    // A job that waits again has no nodes any more, its buffer has.
    let number = job.allocation.names().position(|node| *node == place.node);
    let facts = Facts {
        job: job.id,
        array: job.array_id(),
        task: job.array_task(),
        work_dir: &job.spec.work_dir,
        user: &job.spec.user,
        name: &job.spec.name,
        node: place.node.as_str(),
        node_index: number.map_or(place.rank, |number| number as u32),
    };
    let own = buffer.home(place).directory(&place.root);
    let resolve = |transfer: &Transfer| {
        let (source, destination) = (replace(&transfer.source, &facts), replace(&transfer.destination, &facts));
        let (within, outside) = match direction {
            Direction::In => (destination, source),
            Direction::Out => (source, destination),
        };
        if transfer.kind == TransferKind::Command {
            let outside = replace(&transfer.source, &facts);
            return TransferOrder { kind: transfer.kind, outside, base: own.clone(), ..Default::default() };
        }
        let (base, inside) = match inside(&within, &room) {
            Ok(found) if found.access.is_none() => {
                let root = cluster.persistent(found.persistent).map(|it| it.root.clone()).unwrap_or_default();
                let home = Home::Persistent { name: found.persistent.to_owned() };
                (home.directory(&root), found.path.to_owned())
            }
            Ok(found) => (own.clone(), found.path.to_owned()),
            // A symbol made it what no path may be; the agent refuses it, and says so.
            Err(_) => (own.clone(), within.clone()),
        };
        TransferOrder {
            kind: transfer.kind,
            outside,
            base,
            inside,
            is_optional: transfer.is_optional,
            symlinks: transfer.symlinks,
            manifest: replace(&transfer.manifest, &facts),
            with_attributes: transfer.with_attributes,
        }
    };
    request.transfers(place.access, direction).filter(is_wanted).map(resolve).collect()
}

fn of_persistent(cluster: &Cluster, buffer: &PersistentBuffer) -> Order {
    let home = Some(Home::Persistent { name: buffer.name.clone() });
    let (attempt, root, pool) = (buffer.attempt, buffer.root.clone(), buffer.pool.clone());
    match buffer.phase {
        PersistentPhase::Destroying => Order::Remove { number: 0, removal: Removal { home, attempt, root, pool } },
        PersistentPhase::Creating | PersistentPhase::Ready | PersistentPhase::Condemned => {
            let work = StageWork {
                home,
                attempt,
                root,
                pool,
                capacity_bytes: buffer.bytes,
                uid: buffer.uid,
                gid: buffer.gid,
                user: buffer.user.clone(),
                ..settings(cluster, Direction::In, "")
            };
            Order::Stage { number: 0, work: Box::new(work) }
        }
    }
}
