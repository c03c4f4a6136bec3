//! A new job.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::accounts::{ROOT, Wckey};
use model::command::Blob;
use model::config::{PartitionLimits, SchedulerConfig};
use model::dependency::{Dependency, Term};
use model::fit::Candidate;
use model::job::ArrayPlace;
use model::reject::Lack;
use model::reservation::Flag;
use model::spec::{Memory, OpenMode, Sharing, Size, SocketOrder, TimeLimit};
use model::time::Span;
use model::{Caller, Event, HeldBy, Job, JobKind, JobRef, JobSpec, Node, NodeName, Partition, Reason, Reject, Reply};

use super::Answer;
use crate::features::partition_limit;
use crate::{Cluster, access, arrays, batch_host, blobs, buffers, job_life, licenses, limits, network, settle};

/// Where priorities start; each submission gets a little less than the one before.
const FIRST_PRIORITY: u32 = 4_294_901_760;

/// What a job with a deadline is given at least, unless it says otherwise.
const SHORTEST_BEFORE_DEADLINE: TimeLimit = TimeLimit::Secs(60);

pub(crate) fn submit(cluster: &mut Cluster, by: Caller, spec: &JobSpec, brought: &[Blob]) -> Answer {
    if !by.may_act_for(spec.uid) {
        return Err(Reject::NotPermitted);
    }
    if spec.nice < 0 && !by.is_admin {
        return Err(Reject::BadNice);
    }
    if !spec.dependency.is_well_formed() {
        return Err(Reject::BadDependency);
    }
    let names_no_time = spec.time_limit.is_none();
    let mut spec = network::with_units(cluster, completed(cluster, spec))?;
    let association = place_in_accounts(cluster, &mut spec)?;
    leave_out_closed_partitions(cluster, &mut spec);
    if names_no_time {
        within_max_wall(cluster, &mut spec, association);
    }
    buffers::admission::complete(cluster, by, &mut spec, brought)?;
    limits::admit(cluster, &spec, association)?;
    admissible(cluster, by, &spec)?;
    let wanted = blobs::of_job(&spec);
    blobs::are_at_hand(cluster, &wanted, brought)?;
    blobs::take(cluster, &wanted, brought);
    let id = cluster.next_job_id();
    cluster.n_submitted = cluster.n_submitted.wrapping_add(1);
    let array = spec.array.clone();
    let job = Job {
        id,
        attempt: 1,
        array: array.as_ref().map(|_| ArrayPlace { array: id, task: None }),
        waiting_tasks: array.as_ref().map(|array| array.tasks.clone()),
        held: spec.held.then_some(if spec.priority == Some(0) && by.is_admin { HeldBy::Admin } else { HeldBy::User }),
        priority: priority(cluster, &spec),
        partition: spec.partitions.first().cloned().unwrap_or_default(),
        dependency: of_known_jobs(cluster, &spec.dependency),
        submitted: cluster.now,
        association,
        admin_comment: spec.admin_comment.clone(),
        site_factor: spec.site_factor,
        spec: Arc::new(spec),
        ..Default::default()
    };
    cluster.jobs.insert(id, Arc::new(job));
    if let Some(array) = array {
        arrays::create(cluster, id, &array.tasks, array.limit);
    }
    settle::weigh(cluster, id);
    job_life::remember_name(cluster, id);
    limits::keep(cluster, id);
    cluster.unsettled.insert(id);
    let at = cluster.now;
    cluster.tell(Event::JobSubmitted { job: id, at });
    Ok(Reply::Submitted(id))
}

/// The scheduler's own order unless an administrator asked for another: first come, first served.
fn priority(cluster: &Cluster, spec: &JobSpec) -> u32 {
    if let Some(priority) = spec.priority {
        return priority.max(1);
    }
    let first = i64::from(FIRST_PRIORITY) - i64::from(cluster.n_submitted) - i64::from(spec.nice);
    first.clamp(1, i64::from(u32::MAX - 1)) as u32
}

/// Who names no time gets no more than limits allow.
fn within_max_wall(cluster: &Cluster, spec: &mut JobSpec, association: u32) {
    let Some(minutes) = limits::max_wall_mins(cluster, spec, association) else { return };
    let most = TimeLimit::Secs(u64::from(minutes) * 60);
    spec.time_limit = Some(spec.time_limit.map_or(most, |limit| limit.min(most)));
}

/// Among which QOS a job's may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QosChoice {
    /// Those of its association.
    OfItsOwn,
    OfAll,
}

/// The association the job is charged to, 0 for none. Who says nothing uses the user's own account and QOS.
/// A cluster without accounts welcomes everybody; with them, what is not known is refused as far as it is enforced.
pub(crate) fn place_in_accounts(cluster: &Cluster, spec: &mut JobSpec) -> Result<u32, Reject> {
    place_choosing(cluster, spec, QosChoice::OfItsOwn)
}

pub(crate) fn place_choosing(cluster: &Cluster, spec: &mut JobSpec, choice: QosChoice) -> Result<u32, Reject> {
    let (accounts, enforce) = (&cluster.accounts, cluster.config.accounting.enforce);
    let is_strict = enforce.associations;
    // Somebody without a place is welcome where none is asked for, as long as there is such an account.
    let outside = |spec: &JobSpec| {
        let is_known =
            accounts.are_unused() || spec.account.is_empty() || accounts.accounts.contains_key(&spec.account);
        // Root has a place in every cluster, also in one where nothing was added yet.
        let is_root = accounts.are_unused() && spec.user == ROOT && ["", ROOT].contains(&spec.account.as_str());
        let may = is_root || (!is_strict && (is_known || !enforce.qos));
        if may { Ok(0) } else { Err(Reject::BadAccount) }
    };
    let Some(user) = accounts.users.get(&spec.user) else { return outside(spec) };
    if spec.account.is_empty() {
        spec.account.clone_from(&user.default_account);
    }
    let partition = spec.partitions.first().map_or("", String::as_str);
    let Some(association) = accounts.association(&spec.account, &spec.user, partition) else {
        return if is_strict || enforce.qos { Err(Reject::BadAccount) } else { Ok(0) };
    };
    if spec.qos.is_empty() {
        spec.qos = accounts.qos_unasked(association.id);
    }
    let must_be_own = enforce.qos && choice == QosChoice::OfItsOwn;
    if must_be_own && !spec.qos.is_empty() && !accounts.allows_qos(association.id, &spec.qos) {
        return Err(Reject::BadQos);
    }
    let qos = accounts.qos.get(&spec.qos);
    if spec.reservations.is_empty() && qos.is_some_and(|qos| qos.has_flag("RequiresReservation")) {
        return Err(Reject::BadQos);
    }
    // What is reckoned by the resources of one partition is that partition's alone.
    let is_partitions = |name: &str| cluster.config.partitions.iter().any(|partition| partition.qos == name);
    if qos.is_some_and(|qos| qos.has_flag("Relative") && is_partitions(&qos.name)) {
        return Err(Reject::BadQos);
    }
    if enforce.wckeys && !spec.wckey.is_empty() {
        let key = Wckey { name: spec.wckey.clone(), user: spec.user.clone(), cluster: String::new() };
        if !accounts.wckeys.contains(&key) {
            return Err(Reject::BadWckey);
        }
    }
    Ok(association.id)
}

/// Of several partitions those count that are for the job's account and QOS, unless the site wants all of them to be.
fn leave_out_closed_partitions(cluster: &Cluster, spec: &mut JobSpec) {
    if spec.partitions.len() < 2 || cluster.config.scheduler.partition_limits == PartitionLimits::All {
        return;
    }
    let is_open = |name: &&String| {
        cluster.config.partition(name).is_none_or(|partition| access::by_account(partition, spec).is_none())
    };
    let open: Vec<String> = spec.partitions.iter().filter(is_open).cloned().collect();
    if !open.is_empty() {
        spec.partitions = open;
    }
}

/// Fills in what the cluster decides for those who do not say.
fn completed(cluster: &Cluster, spec: &JobSpec) -> JobSpec {
    let mut spec = spec.clone();
    if spec.partitions.is_empty() {
        spec.partitions.extend(cluster.config.default_partition().map(|partition| partition.name.clone()));
    }
    if spec.deadline.is_some() && spec.time_min.is_none() {
        spec.time_min = Some(SHORTEST_BEFORE_DEADLINE);
    }
    let first = spec.partitions.first().and_then(|name| cluster.config.partition(name));
    if let Some(partition) = first {
        if spec.time_limit.is_none() {
            spec.time_limit = partition.default_time.or(partition.max_time).or(Some(TimeLimit::Unlimited));
        }
        if partition.exclusive_topology {
            spec.size.network.owns_units = true;
            spec.size.sharing = Sharing::WholeNodes;
        }
        if spec.size.asks_for_gpus() {
            bring_with_gpus(&cluster.config.scheduler, partition, &mut spec);
        }
        if spec.size.memory == Memory::Default {
            spec.size.memory = default_memory(cluster, partition);
        }
    }
    if cluster.config.jobs.appends_output && spec.open_mode == OpenMode::Default {
        spec.open_mode = OpenMode::Append;
    }
    let partitions = || spec.partitions.iter().filter_map(|name| cluster.config.partition(name));
    if partitions().any(|partition| partition.exclusive_nodes) {
        spec.size.sharing = Sharing::WholeNodes;
    } else if partitions().any(|partition| partition.exclusive_user) && spec.size.sharing != Sharing::WholeNodes {
        spec.size.sharing = Sharing::OneUser;
    }
    spec.size.spared = spec.size.spared.filter(|_| cluster.config.jobs.may_spare);
    if spec.size.spared.is_some() {
        spec.size.sharing = Sharing::WholeNodes;
    }
    let scheduler = &cluster.config.scheduler;
    if scheduler.one_task_per_core && !spec.size.overcommit {
        spec.size.tasks_per_core.get_or_insert(1);
    }
    if scheduler.fills_sockets && spec.size.socket_order == SocketOrder::Usual {
        spec.size.socket_order = SocketOrder::Block;
    }
    ask_for_nodes_with_memory(cluster, &mut spec.size);
    spec
}

/// Where memory is not handed out, a node must still have as much as the job says it needs.
pub(crate) fn ask_for_nodes_with_memory(cluster: &Cluster, size: &mut Size) {
    size.node_memory_mb = if cluster.config.scheduler.tracks_memory { 0 } else { size.least_memory_mb() };
}

/// CPUs and memory that come with each GPU, for who asks for none; these go before what every job gets.
fn bring_with_gpus(scheduler: &SchedulerConfig, partition: &Partition, spec: &mut JobSpec) {
    let (size, words) = (&mut spec.size, &mut spec.tres_words);
    let cpus = partition.default_cpus_per_gpu.or(scheduler.default_cpus_per_gpu);
    if size.cpus_per_gpu.is_none() && size.cpus_per_task.is_none() && cpus.is_some() {
        (size.cpus_per_gpu, words.cpus_by_default) = (cpus, true);
    }
    let memory_mb = partition.default_memory_per_gpu_mb.or(scheduler.default_memory_per_gpu_mb);
    if let (Memory::Default, Some(memory_mb)) = (size.memory, memory_mb) {
        (size.memory, words.memory_by_default) = (Memory::PerGpuMb(memory_mb), true);
    }
}

fn default_memory(cluster: &Cluster, partition: &Partition) -> Memory {
    let scheduler = &cluster.config.scheduler;
    let per_node = partition.default_memory_per_node_mb;
    let per_cpu = partition.default_memory_per_cpu_mb;
    match (per_node, per_cpu, scheduler.default_memory_per_node_mb, scheduler.default_memory_per_cpu_mb) {
        (Some(memory_mb), ..) => Memory::PerNodeMb(memory_mb),
        (None, Some(memory_mb), ..) => Memory::PerCpuMb(memory_mb),
        (None, None, Some(memory_mb), _) => Memory::PerNodeMb(memory_mb),
        (None, None, None, Some(memory_mb)) => Memory::PerCpuMb(memory_mb),
        (None, None, None, None) => Memory::Default,
    }
}

/// The cluster could run such a job some day.
pub fn admissible(cluster: &Cluster, by: Caller, spec: &JobSpec) -> Result<(), Reject> {
    if cluster.jobs.len() >= cluster.config.controller.max_job_count as usize {
        return Err(Reject::TooManyJobs);
    }
    if spec.uid == 0 && cluster.config.scheduler.disable_root_jobs {
        return Err(Reject::NotPermitted);
    }
    if spec.partitions.is_empty() {
        return Err(Reject::NoDefaultPartition);
    }
    for name in &spec.partitions {
        let partition = cluster.config.partition(name).ok_or_else(|| Reject::UnknownPartition(name.clone()))?;
        access::refused(partition, by, spec)?;
        if !partition.state.takes_jobs() {
            return Err(Reject::PartitionDown);
        }
    }
    enforce_limits(cluster, spec)?;
    is_looked_at(cluster, spec)?;
    can_end_in_time(cluster, spec)?;
    let has = |feature: &str| cluster.nodes.values().any(|node| node.config.features.iter().any(|own| own == feature));
    let wanted = spec.size.constraint.iter().flat_map(|wanted| wanted.names());
    if wanted.chain(spec.size.feature_sets.names()).any(|feature| !has(feature)) {
        return Err(Reject::BadConstraint(spec.size.features.clone()));
    }
    batch_host::check(spec)?;
    may_reboot(cluster, by, spec)?;
    if let JobKind::Run(step) = &spec.kind
        && cluster.config.mpi_ports.map_or(0, |range| range.count()) < step.n_ports.unwrap_or(0)
    {
        return Err(Reject::TooManyPorts);
    }
    licenses::exist(cluster, &spec.licenses)?;
    for name in &spec.reservations {
        let reservation = cluster.reservation(name).ok_or(Reject::BadReservation)?;
        if !reservation.admits(spec) {
            return Err(Reject::ReservationAccess);
        }
    }
    for name in spec.size.nodes.iter().chain(&spec.size.excluded).chain(&spec.size.network.among) {
        if !cluster.nodes.contains_key(name) {
            return Err(Reject::NoSuchNode(name.to_string()));
        }
    }
    let excluded: BTreeSet<&NodeName> = spec.size.excluded.iter().collect();
    if let Some(name) = spec.size.nodes.iter().find(|name| excluded.contains(name)) {
        return Err(Reject::NoSuchNode(name.to_string()));
    }
    if let Some(array) = &spec.array {
        let most = cluster.config.controller.max_array_size;
        if array.tasks.is_empty() || array.tasks.last().is_some_and(|last| last >= most) {
            return Err(Reject::BadArray);
        }
    }
    // It creates or destroys persistent buffers, and never has nodes.
    if spec.size.max_nodes == Some(0) && spec.buffer.is_some() {
        return Ok(());
    }
    network::admits(cluster, spec)?;
    let (min, _) = spec.size.node_bounds();
    if spec.size.max_nodes.is_some_and(|max| max < spec.size.feature_sets.least_nodes()) {
        return Err(Reject::NeverFits);
    }
    if spec.size.max_nodes.is_some_and(|max| max < min) {
        return Err(Reject::TooManyNodes);
    }
    // A job that wants more nodes than there are may wait for them (PartitionConfig), as Slurm lets it.
    let n_nodes_in = |name: &String| cluster.config.partition(name).map_or(0, |partition| partition.nodes.len() as u32);
    let waits_for_nodes = spec.partitions.iter().all(|name| n_nodes_in(name) < min);
    if mixes_whole_and_shared_gpus(spec) {
        return Err(Reject::StepGres);
    }
    match waits_for_nodes || partitions_of(cluster, spec).any(|partition| could_fit(cluster, spec, partition)) {
        true => Ok(()),
        false if spec.size.network.segment > 0 && !spec.size.listed_nodes().is_empty() => Err(Reject::NoSuchTopology),
        false if names_unknown_gres(cluster, &spec.size) => Err(Reject::StepGres),
        false => Err(lacking(cluster, &spec.size).map_or(Reject::NeverFits, Reject::NoNodeHas)),
    }
}

/// `--reboot` is for administrators, and passes where the site has no program that would start nodes anew.
fn may_reboot(cluster: &Cluster, by: Caller, spec: &JobSpec) -> Result<(), Reject> {
    let refuse = |told: &str, why| Err(Reject::Told { told: told.into(), why: Box::new(why) });
    match (spec.wants_reboot, by.is_admin, cluster.config.health.reboot_program.is_empty()) {
        (false, _, _) | (true, true, true) => Ok(()),
        (true, false, _) => refuse("rebooting of nodes is only allowed for admins", Reject::NotPermitted),
        (true, true, false) => refuse("--reboot is not supported by this version of Spur", Reject::NotSupported),
    }
}

/// Parts of GPUs (`mps`, `shard`) cannot be asked for beside whole ones, nor with a clock of their own.
fn mixes_whole_and_shared_gpus(spec: &JobSpec) -> bool {
    let size = &spec.size;
    let units = || size.gres.iter().chain(&size.gres_per_task).chain(&size.gres_total);
    let has_parts = units().any(|unit| ["mps", "shard"].contains(&unit.name.as_str()));
    has_parts && (units().any(|unit| unit.name == "gpu") || !spec.gpu_freq_words.is_empty())
}

/// Devices of a kind that no node has.
fn names_unknown_gres(cluster: &Cluster, size: &Size) -> bool {
    let is_known =
        |name: &str| cluster.nodes.values().any(|node| node.config.gres.iter().any(|unit| unit.name == name));
    size.gres.iter().chain(&size.gres_per_task).chain(&size.gres_total).any(|unit| !is_known(&unit.name))
}

/// What none of the nodes has enough of for its part of the job.
fn lacking(cluster: &Cluster, size: &Size) -> Option<Lack> {
    let n_tasks = size.tasks_per_node.unwrap_or(1);
    let nobody = |has: &dyn Fn(&Node) -> bool| !cluster.nodes.values().any(|node| has(node));
    let has_sockets = |node: &Node| {
        size.threads_per_core.is_none_or(|threads| threads <= node.config.n_threads_per_core())
            && size.sockets_per_node.is_none_or(|sockets| sockets <= node.config.sockets.max(1))
            && size.cores_per_socket.is_none_or(|cores| cores <= node.config.cores_per_socket.max(1))
    };
    if nobody(&has_sockets) {
        return Some(Lack::Sockets);
    }
    if nobody(&|node| size.cpus_for(n_tasks) <= size.whole_of(&node.config)) {
        return Some(Lack::Cpus);
    }
    let needs_memory = cluster.config.scheduler.tracks_memory;
    if needs_memory && nobody(&|node| size.part_of(&node.config, n_tasks).memory_mb <= node.config.memory_mb) {
        return Some(Lack::Memory);
    }
    if nobody(&|node| size.node_memory_mb <= node.config.memory_mb) {
        return Some(Lack::Memory);
    }
    nobody(&|node| size.tmp_disk_mb <= node.config.tmp_disk_mb).then_some(Lack::TmpDisk)
}

/// A deadline that has passed, or that the shortest run would miss, is a mistake.
fn can_end_in_time(cluster: &Cluster, spec: &JobSpec) -> Result<(), Reject> {
    let Some(deadline) = spec.deadline else { return Ok(()) };
    if deadline <= cluster.now {
        return Err(Reject::TimeLimitTooLong);
    }
    // What it is given for want of a word of its own may be less.
    let asked = spec.time_min.filter(|least| *least != SHORTEST_BEFORE_DEADLINE);
    let least = asked.and_then(TimeLimit::span).unwrap_or(Span(0));
    if cluster.now + least > deadline { Err(Reject::BadTimeMin) } else { Ok(()) }
}

/// Memory is watched where it has a limit: nobody may ask for that to be done less often, or never.
fn is_looked_at(cluster: &Cluster, spec: &JobSpec) -> Result<(), Reject> {
    let most = cluster.config.jobs.accounting_secs;
    let Some(asked) = spec.accounting_secs.filter(|_| most > 0 && spec.size.memory != Memory::WholeNode) else {
        return Ok(());
    };
    if asked == 0 || asked > most { Err(Reject::BadAccountingFrequency) } else { Ok(()) }
}

/// Where limits of partitions refuse at once, as the cluster wants it.
fn enforce_limits(cluster: &Cluster, spec: &JobSpec) -> Result<(), Reject> {
    let wanted = cluster.config.scheduler.partition_limits;
    if wanted == PartitionLimits::Wait {
        return Ok(());
    }
    let partitions = spec.partitions.iter().filter_map(|name| cluster.config.partition(name));
    let mut first = None;
    let mut n_refusals = 0;
    for reason in partitions.filter_map(|partition| partition_limit(cluster, partition, spec)) {
        first.get_or_insert(reason);
        n_refusals += 1;
    }
    let too_many_cpus = |name: &String| {
        let nodes = cluster.config.partition(name).into_iter().flat_map(|partition| &partition.nodes);
        let n_cpus: u64 =
            nodes.filter_map(|node| cluster.nodes.get(node)).map(|node| u64::from(node.config.cpus)).sum();
        n_cpus < u64::from(spec.asked_of_nodes().1)
    };
    match first {
        Some(Reason::PartitionNodeLimit | Reason::PartitionConfig) if spec.partitions.iter().all(too_many_cpus) => {
            Err(Reject::TooManyCpus)
        }
        Some(reason) if wanted == PartitionLimits::All || n_refusals == spec.partitions.len() => Err(match reason {
            Reason::PartitionTimeLimit => Reject::TimeLimitTooLong,
            Reason::PartitionNodeLimit | Reason::PartitionConfig => Reject::TooManyNodes,
            _ => Reject::MemoryTooLarge,
        }),
        _ => Ok(()),
    }
}

/// What is left to wait for: jobs that are not known, as those that ended long ago, hold nobody up (Slurm does the same).
pub fn of_known_jobs(cluster: &Cluster, wanted: &Dependency) -> Dependency {
    let terms: Vec<Term> = wanted.terms.iter().filter(|term| names_a_known_job(cluster, term)).cloned().collect();
    // One met term is enough, and the forgotten ones count as met.
    let is_met = wanted.any_is_enough && terms.len() < wanted.terms.len();
    Dependency { terms: if is_met { Vec::new() } else { terms }, any_is_enough: wanted.any_is_enough }
}

fn names_a_known_job(cluster: &Cluster, term: &Term) -> bool {
    let Some(job) = term.job else { return true };
    let tasks = term.task.map(|task| [task].into_iter().collect());
    // A task may have been forgotten already; its array must be known.
    cluster.named(&JobRef { job, tasks, component: None }).is_some() || cluster.arrays.contains_key(&job)
}

fn partitions_of<'c>(cluster: &'c Cluster, spec: &'c JobSpec) -> impl Iterator<Item = &'c Partition> {
    spec.partitions.iter().filter_map(|name| cluster.config.partition(name))
}

/// A job that is to start in a reservation whose time it is could do so if nothing else ran there.
/// Asked before a submission goes to the log, and not by `apply`, which must go on taking what is in it.
pub fn fits_its_reservations(cluster: &Cluster, spec: &JobSpec) -> bool {
    let is_to_wait = spec.held || spec.begin.is_some() || !spec.dependency.terms.is_empty();
    if spec.reservations.is_empty() || is_to_wait {
        return true;
    }
    let spec = &completed(cluster, spec);
    spec.reservations.iter().any(|name| {
        // Who asks for what is not there, or not theirs, is told so elsewhere.
        let Some(reservation) = cluster.reservation(name).filter(|one| one.admits(spec)) else { return true };
        let is_open = [Flag::Flex, Flag::AnyNodes].iter().any(|flag| reservation.has(*flag));
        if is_open
            || !reservation.is_active(cluster.now)
            || reservation.nodes.is_empty()
            || !reservation.cpus.is_empty()
        {
            return true;
        }
        let has = |name: &&NodeName| reservation.nodes.contains(*name);
        spec.size.nodes.iter().all(|name| has(&name))
            && partitions_of(cluster, spec).any(|partition| {
                let nodes = partition.nodes.iter().filter(has).cloned().collect();
                could_fit(cluster, spec, &Partition { nodes, ..partition.clone() })
            })
    })
}

/// With nothing else running, the partition's nodes would be enough.
fn could_fit(cluster: &Cluster, spec: &JobSpec, partition: &Partition) -> bool {
    if spec.size.feature_sets.is_empty() {
        return could_fit_size(cluster, &spec.size, partition);
    }
    let kinds = spec.size.of_each_kind();
    kinds.iter().any(|size| could_fit_counts(cluster, size, partition))
}

/// With the nodes named that make the counts of features right: on a network those that are near to each other, else any.
fn could_fit_counts(cluster: &Cluster, size: &Size, partition: &Partition) -> bool {
    let nodes = partition.nodes.iter().filter_map(|name| cluster.nodes.get(name)).filter(|node| node.suits(size));
    let fitting = |node: &Arc<Node>| size.n_tasks_fitting(room(cluster, partition, node), &node.config, &[]);
    let mut nodes: Vec<(u32, &Arc<Node>)> = nodes.filter_map(|node| Some((fitting(node)?, node))).collect();
    nodes.sort_by_key(|(n_tasks, _)| std::cmp::Reverse(*n_tasks));
    let would_do = |places: &[usize]| {
        let node = |place: &usize| nodes[*place].1;
        let asked = places.iter().map(node).map(|node| (node.features(), size.nodes.contains(&node.name)));
        let Some(pinned) = size.feature_sets.pin(asked) else { return false };
        let names = pinned.iter().map(|at| node(&places[*at]).name.clone());
        could_fit_size(cluster, &size.with_pinned(names), partition)
    };
    let is_near = |shape: &topology::Shape| {
        let ranks: Vec<u32> = nodes.iter().map(|(_, node)| node.rank).collect();
        let least = bounds_in(partition, size).0.max(size.feature_sets.least_nodes());
        shape.near_each_other(&ranks, least as usize).any(|places| would_do(&places))
    };
    let shape = crate::shape_for(cluster, partition, size).filter(|_| cluster.rules() >= 2);
    would_do(&(0..nodes.len()).collect::<Vec<_>>()) || shape.is_some_and(is_near)
}

fn could_fit_size(cluster: &Cluster, size: &Size, partition: &model::Partition) -> bool {
    let nodes = partition.nodes.iter().filter_map(|name| cluster.nodes.get(name)).filter(|node| node.suits(size));
    let candidate = |node: &Arc<Node>| {
        let n_tasks = size.n_tasks_fitting(room(cluster, partition, node), &node.config, &[])?;
        Some(Candidate { rank: node.rank, n_tasks, is_required: size.nodes.contains(&node.name) })
    };
    if !size.gres_total.is_empty() {
        let giver = |node: &Arc<Node>| {
            let room = room(cluster, partition, node);
            size.giver_with(size.nodes.contains(&node.name), room, &node.config, &[])
        };
        let givers: Vec<_> = nodes.filter_map(giver).collect();
        return size.share_out(size.node_bounds(), &givers).is_some();
    }
    let bounds = bounds_in(partition, size);
    let shape = crate::shape_for(cluster, partition, size);
    let would_do = |candidates: &mut Vec<Candidate>| {
        candidates.sort_unstable_by_key(|candidate| candidate.rank);
        candidates.dedup_by_key(|candidate| candidate.rank);
        match shape {
            Some(shape) => network::could_place(cluster, shape, size, bounds, candidates),
            None => size.choose(bounds, candidates).is_some(),
        }
    };
    // Segments that take different numbers of tasks are looked for among all nodes, as the scheduler does.
    let is_open = size.nodes.is_empty() && !size.contiguous && (size.n_tasks.is_none() || size.network.segment == 0);
    let mut candidates: Vec<Candidate> = Vec::new();
    let (mut n_tasks, mut next_try): (u64, usize) = (0, bounds.0 as usize);
    for candidate in nodes.filter_map(candidate) {
        // One node is near to itself in every network.
        let is_alone = bounds.0 == 1 && candidate.is_required != size.nodes.is_empty();
        if is_alone && size.n_tasks.is_none_or(|wanted| wanted <= candidate.n_tasks) {
            return true;
        }
        candidates.push(candidate);
        n_tasks += u64::from(candidate.n_tasks);
        // Most jobs would fit on the first few nodes. Neighbours in a network stand together; more of them never do harm.
        let n_nodes = candidates.len();
        let is_filled = size.n_tasks.is_none_or(|wanted| u64::from(wanted) <= n_tasks);
        if is_open && is_filled && n_nodes >= next_try {
            next_try = n_nodes * 2;
            if would_do(&mut candidates) {
                return true;
            }
        }
    }
    would_do(&mut candidates)
}

/// The fewest and the most nodes, as far as job and partition agree; where they do not, the job waits for another limit.
fn bounds_in(partition: &model::Partition, size: &Size) -> (u32, u32) {
    let (min, max) = size.node_bounds();
    let both = (min.max(partition.min_nodes), max.min(partition.max_nodes.unwrap_or(u32::MAX)));
    if both.0 <= both.1 { both } else { (min, max) }
}

/// What the partition's jobs can have of a node on which nothing runs.
fn room(cluster: &Cluster, partition: &model::Partition, node: &Node) -> model::fit::Room {
    let mut room = node.config.room();
    if !cluster.config.scheduler.tracks_memory {
        room.memory_mb = u64::MAX;
    }
    room.cpus = room.cpus.min(partition.max_cpus_per_node.unwrap_or(u32::MAX));
    room
}
