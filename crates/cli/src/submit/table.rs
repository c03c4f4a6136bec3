//! Every option of sbatch, salloc and srun, declared once: its names, whether it takes a value, which commands know it,
//! which variable gives it, and how it changes the request.
use super::Program;
use super::set::{self, Setter};
use super::{set_broadcast, set_hints, set_layout, set_network, set_plugins, set_size, set_step};
use crate::getopt::{Flag, Value};

/// One option.
#[derive(Debug)]
pub struct Opt {
    pub long: &'static str,
    pub short: Option<char>,
    pub value: Value,
    /// Which of sbatch, salloc and srun know it.
    pub programs: &'static [Program],
    /// Name in sbatch's, salloc's and srun's environment; empty is none.
    pub variables: [&'static str; 3],
    /// None: refused by name.
    pub set: Option<Setter>,
    /// For `--help`; empty keeps the option out of it.
    pub help: &'static str,
}

const BATCH: &[Program] = &[Program::Sbatch];
const ALLOC: &[Program] = &[Program::Salloc];
const RUN: &[Program] = &[Program::Srun];
const ALL: &[Program] = &[Program::Sbatch, Program::Salloc, Program::Srun];
const BATCH_RUN: &[Program] = &[Program::Sbatch, Program::Srun];
const ALLOC_RUN: &[Program] = &[Program::Salloc, Program::Srun];
const BATCH_ALLOC: &[Program] = &[Program::Sbatch, Program::Salloc];

const NONE: Value = Value::None;
const REQUIRED: Value = Value::Required;
const OPTIONAL: Value = Value::Optional;
const REFUSED: Option<Setter> = None;
const NO_VARIABLE: [&str; 3] = ["", "", ""];

/// The same ending after each command's own prefix.
macro_rules! named {
    ($ending:literal) => {
        [concat!("SBATCH_", $ending), concat!("SALLOC_", $ending), concat!("SLURM_", $ending)]
    };
}

/// One line of the table.
macro_rules! options {
    ($($long:literal $short:expr, $value:expr, $programs:expr, $variables:expr, $set:expr, $help:literal;)*) => {
        &[$(Opt { long: $long, short: $short, value: $value, programs: $programs, variables: $variables, set: $set, help: $help }),*]
    };
}

/// In the order of the names, as getopt lists them when an abbreviation is ambiguous.
#[rustfmt::skip]
pub static OPTIONS: &[Opt] = options! {
    "accel-bind" None, REQUIRED, RUN, NO_VARIABLE, Some(set_plugins::accel_bind), "accepted; no device is known to be near to a task";
    "account" Some('A'), REQUIRED, ALL, named!("ACCOUNT"), Some(set::account), "charge job to specified account";
    "acctg-freq" None, REQUIRED, ALL, named!("ACCTG_FREQ"), Some(set_hints::acctg_freq), "accepted; usage needs no sampling";
    "array" Some('a'), REQUIRED, BATCH, ["SBATCH_ARRAY_INX", "", ""], Some(set::array), "job array index values";
    "batch" None, REQUIRED, BATCH, ["SBATCH_BATCH", "", ""], Some(set_plugins::batch), "features of the node that runs the script";
    "bb" None, REQUIRED, ALL, ["SBATCH_BURST_BUFFER", "SALLOC_BURST_BUFFER", "SLURM_BURST_BUFFER"], Some(set::burst_buffer), "burst buffer specifications";
    "bbf" None, REQUIRED, ALL, NO_VARIABLE, Some(set::burst_buffer_file), "burst buffer specification file";
    "bcast" None, OPTIONAL, RUN, ["", "", "SLURM_BCAST"], Some(set_broadcast::bcast), "copy executable file to compute nodes";
    "bcast-exclude" None, REQUIRED, RUN, ["", "", "SLURM_BCAST_EXCLUDE"], Some(set_broadcast::exclude), "shared object directory paths to be excluded";
    "begin" Some('b'), REQUIRED, ALL, NO_VARIABLE, Some(set::begin), "defer job until HH:MM MM/DD/YY";
    "bell" None, NONE, ALLOC, ["", "SALLOC_BELL", ""], Some(set::bell), "ring the terminal bell when the job is allocated";
    "chdir" Some('D'), REQUIRED, ALL, ["", "", "SLURM_REMOTE_CWD"], Some(set::chdir), "set working directory";
    "cluster-constraint" None, REQUIRED, ALL, NO_VARIABLE, REFUSED, "";
    "clusters" Some('M'), REQUIRED, ALL, ["SBATCH_CLUSTERS", "SALLOC_CLUSTERS", "SLURM_CLUSTERS"], Some(set::clusters), "cluster to issue commands to";
    "comment" None, REQUIRED, ALL, NO_VARIABLE, Some(set::comment), "arbitrary comment";
    "compress" None, OPTIONAL, RUN, ["", "", "SLURM_COMPRESS"], Some(set_broadcast::compress), "accepted; nothing is compressed";
    "consolidate-segments" None, NONE, ALL, ["SBATCH_CONSOLIDATE_SEGMENTS", "SALLOC_CONSOLIDATE_SEGMENTS", "SRUN_CONSOLIDATE_SEGMENTS"], Some(set_network::consolidate_segments), "all segments in one higher-level block";
    "constraint" Some('C'), REQUIRED, ALL, named!("CONSTRAINT"), Some(set_size::constraint), "specify a list of constraints";
    "container" None, REQUIRED, ALL, named!("CONTAINER"), REFUSED, "";
    "container-id" None, REQUIRED, ALL, named!("CONTAINER_ID"), REFUSED, "";
    "contiguous" None, NONE, ALL, NO_VARIABLE, Some(set_size::contiguous), "demand a contiguous range of nodes";
    "core-spec" Some('S'), REQUIRED, ALL, named!("CORE_SPEC"), Some(set_layout::special_resources), "";
    "cores-per-socket" None, REQUIRED, ALL, NO_VARIABLE, Some(set_layout::cores_per_socket), "number of cores per socket to allocate";
    "cpu-bind" None, REQUIRED, RUN, ["", "", "SLURM_CPU_BIND"], Some(set_step::cpu_bind), "bind tasks to CPUs (none, rank, map_cpu, mask_cpu, threads, cores, sockets)";
    "cpu-freq" None, REQUIRED, ALL, ["", "", "SLURM_CPU_FREQ_REQ"], Some(set_plugins::cpu_freq), "requested CPU frequency (and governor); checked and shown";
    "cpus-per-gpu" None, REQUIRED, ALL, named!("CPUS_PER_GPU"), Some(set_size::cpus_per_gpu), "number of CPUs required per allocated GPU";
    "cpus-per-task" Some('c'), REQUIRED, ALL, ["", "", "SRUN_CPUS_PER_TASK"], Some(set_size::cpus_per_task), "number of cpus required per task";
    "deadline" None, REQUIRED, ALL, NO_VARIABLE, Some(set::deadline), "remove the job if no ending possible before this deadline";
    "debugger-test" None, NONE, RUN, NO_VARIABLE, Some(set_step::debugger_test), "have tasks stand still at their beginning, and tell their process ids";
    "delay-boot" None, REQUIRED, ALL, named!("DELAY_BOOT"), Some(set_hints::delay_boot), "accepted and shown; no node is rebooted for features";
    "dependency" Some('d'), REQUIRED, ALL, ["", "", "SLURM_DEPENDENCY"], Some(set::dependency), "defer job until condition on jobid is satisfied";
    "disable-status" Some('X'), NONE, RUN, ["", "", "SLURM_DISABLE_STATUS"], Some(set_step::disable_status), "Disable Ctrl-C status feature";
    "distribution" Some('m'), REQUIRED, ALL, ["SBATCH_DISTRIBUTION", "", "SLURM_DISTRIBUTION"], Some(set_layout::distribution), "distribution method for processes to nodes (block, cyclic, plane=N)";
    "epilog" None, REQUIRED, RUN, ["", "", "SLURM_EPILOG"], Some(set_step::epilog), "run \"program\" after the step";
    "error" Some('e'), REQUIRED, BATCH_RUN, ["SBATCH_ERROR", "", "SLURM_STDERRMODE"], Some(set::error), "file for standard error";
    "exact" None, NONE, RUN, ["", "", "SLURM_EXACT"], Some(set_step::exact), "use only the resources requested for the step";
    "exclude" Some('x'), REQUIRED, ALL, NO_VARIABLE, Some(set_size::exclude), "exclude a specific list of hosts";
    "exclusive" None, OPTIONAL, ALL, named!("EXCLUSIVE"), Some(set_size::exclusive), "allocate whole nodes";
    "export" None, REQUIRED, BATCH_RUN, ["SBATCH_EXPORT", "", "SLURM_EXPORT_ENV"], Some(set::export), "specify environment variables to export";
    "export-file" None, REQUIRED, BATCH, NO_VARIABLE, Some(set::export_file), "file or descriptor with environment variables, NUL separated";
    "external" None, NONE, BATCH_ALLOC, NO_VARIABLE, REFUSED, "";
    "external-launcher" None, NONE, RUN, NO_VARIABLE, Some(set_step::external_launcher), "run beside all other steps, with all that the job has (for mpirun)";
    "extra" None, REQUIRED, ALL, NO_VARIABLE, REFUSED, "";
    "extra-node-info" Some('B'), REQUIRED, ALL, NO_VARIABLE, Some(set_layout::extra_node_info), "sockets, cores and threads per node";
    "get-user-env" None, OPTIONAL, BATCH, ["SBATCH_GET_USER_ENV", "", ""], Some(set::get_user_env), "load the environment that a login would give";
    "get-user-env" None, OPTIONAL, ALLOC, NO_VARIABLE, Some(set::get_user_env), "load the environment that a login would give (root only)";
    "gid" None, REQUIRED, ALL, NO_VARIABLE, Some(set::gid), "group of the job (root only)";
    "gpu-bind" None, REQUIRED, RUN, ["", "", "SLURM_GPU_BIND"], Some(set_step::gpu_bind), "which of the step's GPUs a task sees";
    "gpu-bind" None, REQUIRED, BATCH_ALLOC, ["SBATCH_GPU_BIND", "SALLOC_GPU_BIND", ""], Some(set_step::gpu_bind), "for the steps in the job: which of its GPUs a task sees";
    "gpu-freq" None, REQUIRED, ALL, named!("GPU_FREQ"), Some(set_step::gpu_freq), "frequency of the allocated GPUs; checked and shown";
    "gpus" Some('G'), REQUIRED, ALL, named!("GPUS"), Some(set_size::gpus), "count of GPUs required for the job";
    "gpus-per-node" None, REQUIRED, ALL, named!("GPUS_PER_NODE"), Some(set_size::gpus_per_node), "number of GPUs required per allocated node";
    "gpus-per-socket" None, REQUIRED, ALL, named!("GPUS_PER_SOCKET"), Some(set_size::gpus_per_socket), "number of gpus required per allocated socket";
    "gpus-per-task" None, REQUIRED, ALL, named!("GPUS_PER_TASK"), Some(set_size::gpus_per_task), "number of GPUs required per spawned task";
    "gres" None, REQUIRED, ALL, named!("GRES"), Some(set_size::gres), "required generic resources on each node";
    "gres-flags" None, REQUIRED, ALL, named!("GRES_FLAGS"), Some(set_hints::gres_flags), "accepted; no unit is bound to CPUs";
    "help" Some('h'), NONE, ALL, NO_VARIABLE, Some(set::help), "show this help message";
    "het-group" None, REQUIRED, RUN, NO_VARIABLE, Some(set_step::het_group), "components of a heterogeneous job to run in";
    "hint" None, REQUIRED, ALL, named!("HINT"), Some(set_layout::hint), "use of a core's threads (compute_bound, [no]multithread)";
    "hold" Some('H'), NONE, ALL, NO_VARIABLE, Some(set::hold), "submit job in held state";
    "ignore-pbs" None, NONE, BATCH, ["SBATCH_IGNORE_PBS", "", ""], Some(set::ignore_pbs), "ignore #PBS and #BSUB lines in the script";
    "immediate" Some('I'), OPTIONAL, ALLOC_RUN, ["", "SALLOC_IMMEDIATE", "SLURM_IMMEDIATE"], Some(set::immediate), "exit if resources not available in \"secs\"";
    "input" Some('i'), REQUIRED, BATCH_RUN, ["SBATCH_INPUT", "", "SLURM_STDINMODE"], Some(set::input), "file for standard input";
    "job-name" Some('J'), REQUIRED, ALL, ["SBATCH_JOB_NAME", "SALLOC_JOB_NAME", "SLURM_JOB_NAME"], Some(set::job_name), "name of job";
    "jobid" None, REQUIRED, RUN, ["", "", "SLURM_JOB_ID"], Some(set_step::job_id), "run under already allocated job";
    "kill-command" Some('K'), OPTIONAL, ALLOC, ["", "SALLOC_KILL_CMD", ""], Some(set::kill_command), "signal to send the command when the allocation ends";
    "kill-on-bad-exit" Some('K'), OPTIONAL, RUN, ["", "", "SLURM_KILL_BAD_EXIT"], Some(set_step::kill_on_bad_exit), "kill the step if any task terminates with a non-zero exit code";
    "kill-on-invalid-dep" None, REQUIRED, BATCH, NO_VARIABLE, Some(set::kill_on_invalid_dependency), "terminate the job if its dependency can never be met";
    "label" Some('l'), NONE, RUN, ["", "", "SLURM_LABELIO"], Some(set_step::label), "prepend task number to lines of stdout/err";
    "licenses" Some('L'), REQUIRED, ALL, NO_VARIABLE, Some(set::licenses), "required license, comma separated";
    "mail-type" None, REQUIRED, ALL, NO_VARIABLE, Some(set::mail_type), "notify on state change: BEGIN, END, FAIL or ALL";
    "mail-user" None, REQUIRED, ALL, NO_VARIABLE, Some(set::mail_user), "who to send email notification for job state changes";
    "mcs-label" None, REQUIRED, ALL, NO_VARIABLE, Some(set_plugins::mcs_label), "mcs label; shown";
    "mem" None, REQUIRED, ALL, named!("MEM_PER_NODE"), Some(set_size::memory), "minimum amount of real memory";
    "mem-bind" None, REQUIRED, ALL, named!("MEM_BIND"), Some(set_hints::mem_bind), "accepted; memory is not bound";
    "mem-per-cpu" None, REQUIRED, ALL, named!("MEM_PER_CPU"), Some(set_size::memory_per_cpu), "real memory required per allocated cpu";
    "mem-per-gpu" None, REQUIRED, ALL, named!("MEM_PER_GPU"), Some(set_size::memory_per_gpu), "real memory required per allocated GPU";
    "mincpus" None, REQUIRED, ALL, NO_VARIABLE, Some(set_size::min_cpus), "minimum number of logical processors per node";
    "mpi" None, REQUIRED, RUN, ["", "", "SLURM_MPI_TYPE"], Some(set_step::mpi), "type of MPI being used (none, pmi2, pmix)";
    "msg-timeout" None, REQUIRED, RUN, NO_VARIABLE, Some(set_step::launch_tuning), "accepted; messages have no timeout of their own";
    "multi-prog" None, NONE, RUN, NO_VARIABLE, Some(set_step::multi_prog), "the program name is a file that names programs by task";
    "network" None, REQUIRED, ALL, named!("NETWORK"), Some(set_hints::network), "accepted; switches are not set up";
    "nice" None, OPTIONAL, ALL, NO_VARIABLE, Some(set::nice), "decrease scheduling priority by value";
    "no-allocate" Some('Z'), NONE, RUN, NO_VARIABLE, REFUSED, "";
    "no-bell" None, NONE, ALLOC, ["", "SALLOC_NO_BELL", ""], Some(set::no_bell), "do NOT ring the terminal bell";
    "no-kill" Some('k'), OPTIONAL, ALL, named!("NO_KILL"), Some(set::no_kill), "do not kill job on node failure";
    "no-requeue" None, NONE, BATCH, ["SBATCH_NO_REQUEUE", "", ""], Some(set::no_requeue), "do not permit the job to be requeued";
    "no-shell" None, NONE, ALLOC, NO_VARIABLE, Some(set::no_shell), "exit after the allocation is granted";
    "nodefile" Some('F'), REQUIRED, ALL, NO_VARIABLE, Some(set_size::nodefile), "request a list of hosts from a file";
    "nodelist" Some('w'), REQUIRED, ALL, NO_VARIABLE, Some(set_size::nodelist), "request a specific list of hosts";
    "nodes" Some('N'), REQUIRED, ALL, ["", "", "SLURM_NNODES"], Some(set_size::nodes), "number of nodes on which to run (N = min[-max])";
    "ntasks" Some('n'), REQUIRED, ALL, ["", "", "SLURM_NTASKS"], Some(set_size::n_tasks), "number of tasks to run";
    "ntasks-per-core" None, REQUIRED, ALL, ["", "", "SLURM_NTASKS_PER_CORE"], Some(set_layout::tasks_per_core), "number of tasks to invoke on each core";
    "ntasks-per-gpu" None, REQUIRED, ALL, ["", "", "SLURM_NTASKS_PER_GPU"], Some(set_size::tasks_per_gpu), "number of tasks to invoke for each GPU";
    "ntasks-per-node" None, REQUIRED, ALL, ["", "", "SLURM_NTASKS_PER_NODE"], Some(set_size::tasks_per_node), "number of tasks to invoke on each node";
    "ntasks-per-socket" None, REQUIRED, ALL, ["", "", "SLURM_NTASKS_PER_SOCKET"], Some(set_layout::tasks_per_socket), "number of tasks to invoke on each socket";
    "ntasks-per-tres" None, REQUIRED, ALL, ["", "", "SLURM_NTASKS_PER_TRES"], Some(set_size::tasks_per_gpu), "number of tasks to invoke for each GPU";
    "oom-kill-step" None, OPTIONAL, ALL, ["SBATCH_OOM_KILL_STEP", "SALLOC_OOM_KILL_STEP", "SLURM_OOMKILLSTEP"], Some(set_hints::oom_kill_step), "0: only a task without memory ends, not its step (always so here)";
    "open-mode" None, REQUIRED, BATCH_RUN, ["SBATCH_OPEN_MODE", "", "SLURM_OPEN_MODE"], Some(set::open_mode), "append to or truncate output files";
    "output" Some('o'), REQUIRED, BATCH_RUN, ["SBATCH_OUTPUT", "", "SLURM_STDOUTMODE"], Some(set::output), "file for standard output";
    "overcommit" Some('O'), NONE, ALL, named!("OVERCOMMIT"), Some(set_size::overcommit), "overcommit resources";
    "overlap" None, NONE, RUN, ["", "", "SLURM_OVERLAP"], Some(set_step::overlap), "share resources with other steps";
    "oversubscribe" Some('s'), NONE, ALL, NO_VARIABLE, Some(set_size::oversubscribe), "over subscribe resources with other jobs";
    "parsable" None, NONE, BATCH, NO_VARIABLE, Some(set::parsable), "outputs only the jobid and cluster name (if present)";
    "partition" Some('p'), REQUIRED, ALL, named!("PARTITION"), Some(set::partition), "partition requested";
    "power" None, REQUIRED, ALL, named!("POWER"), Some(set_plugins::power), "power management options; shown";
    "prefer" None, REQUIRED, ALL, NO_VARIABLE, Some(set_size::prefer), "features that are desired, not required";
    "preserve-env" Some('E'), NONE, RUN, NO_VARIABLE, Some(set_step::preserve_env), "node and task counts in the environment override those of the step";
    "priority" None, REQUIRED, ALL, NO_VARIABLE, Some(set::priority), "set the priority of the job to value";
    "profile" None, REQUIRED, ALL, named!("PROFILE"), Some(set_plugins::profile), "kinds of data to gather (energy, lustre, network, task, all, none); told to the job";
    "prolog" None, REQUIRED, RUN, ["", "", "SLURM_PROLOG"], Some(set_step::prolog), "run \"program\" before the step";
    "propagate" None, OPTIONAL, BATCH_RUN, NO_VARIABLE, Some(set::propagate), "propagate all [or specific list of] rlimits";
    "pty" None, NONE, RUN, NO_VARIABLE, Some(set_step::pty), "run task zero in pseudo terminal";
    "qos" Some('q'), REQUIRED, ALL, named!("QOS"), Some(set::qos), "quality of service";
    "quiet" Some('Q'), NONE, ALL, NO_VARIABLE, Some(set::quiet), "quiet mode (suppress informational messages)";
    "quit-on-interrupt" None, NONE, RUN, NO_VARIABLE, Some(set_step::quit_on_interrupt), "quit on single Ctrl-C";
    "reboot" None, NONE, ALL, NO_VARIABLE, Some(set_plugins::reboot), "start the nodes anew first (admins only; refused where there is a RebootProgram)";
    "relative" Some('r'), REQUIRED, RUN, NO_VARIABLE, Some(set_step::relative), "run the step relative to node n of the allocation";
    "requeue" None, NONE, BATCH, ["SBATCH_REQUEUE", "", ""], Some(set::requeue), "permit the job to be requeued";
    "reservation" None, REQUIRED, ALL, named!("RESERVATION"), Some(set::reservation), "allocate resources from named reservation";
    "resources" None, REQUIRED, ALL, NO_VARIABLE, REFUSED, "";
    "resv-ports" None, OPTIONAL, RUN, ["", "", "SLURM_RESV_PORTS"], Some(set_plugins::resv_ports), "reserve communication ports (MpiParams)";
    "segment" None, REQUIRED, ALL, ["SBATCH_SEGMENT_SIZE", "SALLOC_SEGMENT_SIZE", "SRUN_SEGMENT_SIZE"], Some(set_network::segment), "place the job as segments of so many nodes (block topology)";
    "send-libs" None, OPTIONAL, RUN, ["", "", "SLURM_SEND_LIBS"], Some(set_broadcast::send_libs), "autodetect and broadcast executable's shared object dependencies";
    "share" None, NONE, ALL, NO_VARIABLE, Some(set_size::oversubscribe), "";
    "signal" None, REQUIRED, ALL, named!("SIGNAL"), Some(set::signal), "send signal when time limit within time seconds";
    "slurmd-debug" None, REQUIRED, RUN, NO_VARIABLE, Some(set_plugins::slurmd_debug), "have the nodes tell when tasks start and end";
    "sockets-per-node" None, REQUIRED, ALL, NO_VARIABLE, Some(set_layout::sockets_per_node), "number of sockets per node to allocate";
    "spread-job" None, NONE, ALL, named!("SPREAD_JOB"), Some(set_layout::spread_job), "spread job across as many nodes as possible";
    "spread-segments" None, NONE, ALL, ["SBATCH_SPREAD_SEGMENTS", "SALLOC_SPREAD_SEGMENTS", "SRUN_SPREAD_SEGMENTS"], Some(set_network::spread_segments), "no two segments in the same base block";
    "stepmgr" None, NONE, ALL, NO_VARIABLE, Some(set_hints::step_manager), "accepted; steps need no manager of their own";
    "switches" None, REQUIRED, ALL, named!("REQ_SWITCH"), Some(set_network::switches), "max switches{@max time to wait}";
    "task-epilog" None, REQUIRED, RUN, ["", "", "SLURM_TASK_EPILOG"], Some(set_step::task_epilog), "run \"program\" after each task";
    "task-prolog" None, REQUIRED, RUN, ["", "", "SLURM_TASK_PROLOG"], Some(set_step::task_prolog), "run \"program\" before each task";
    "tasks-per-node" None, REQUIRED, ALL, NO_VARIABLE, Some(set_size::tasks_per_node), "";
    "test-only" None, NONE, BATCH_RUN, NO_VARIABLE, Some(set::test_only), "validate the request and estimate its start, submit nothing";
    "thread-spec" None, REQUIRED, ALL, named!("THREAD_SPEC"), Some(set_layout::special_resources), "";
    "threads" Some('T'), REQUIRED, RUN, ["", "", "SLURM_THREADS"], Some(set_step::launch_tuning), "accepted; every node is spoken to at once";
    "threads-per-core" None, REQUIRED, ALL, named!("THREADS_PER_CORE"), Some(set_layout::threads_per_core), "number of threads per core to use";
    "time" Some('t'), REQUIRED, ALL, named!("TIMELIMIT"), Some(set::time), "time limit";
    "time-min" None, REQUIRED, ALL, NO_VARIABLE, Some(set::time_min), "minimum time limit (if distinct)";
    "tmp" None, REQUIRED, ALL, NO_VARIABLE, Some(set_size::tmp), "minimum amount of temporary disk";
    "topology" None, REQUIRED, ALL, ["SBATCH_TOPOLOGY", "SALLOC_TOPOLOGY", ""], Some(set_network::topology), "place the job by the network: tree, block or none";
    "treewidth" None, REQUIRED, RUN, ["", "", "SLURM_TREE_WIDTH"], Some(set_hints::tree_width), "accepted; every node is spoken to at once";
    "tres-bind" None, REQUIRED, ALL, ["SBATCH_TRES_BIND", "SALLOC_TRES_BIND", "SLURM_TRES_BIND"], REFUSED, "";
    "tres-per-task" None, REQUIRED, ALL, ["", "", "SLURM_TRES_PER_TASK"], Some(set_hints::tres_per_task), "resources of each task: cpu=N,gres/NAME=N,license/NAME=N";
    "uid" None, REQUIRED, ALL, NO_VARIABLE, Some(set::uid), "user of the job (root only)";
    "unbuffered" Some('u'), NONE, RUN, ["", "", "SLURM_UNBUFFEREDIO"], Some(set_step::unbuffered), "do not line-buffer stdout/err";
    "usage" None, NONE, ALL, NO_VARIABLE, Some(set::usage), "display brief usage message";
    "use-min-nodes" None, NONE, ALL, named!("USE_MIN_NODES"), Some(set_layout::use_min_nodes), "prefer the smaller count of a range of nodes";
    "verbose" Some('v'), NONE, ALL, named!("DEBUG"), Some(set::verbose), "verbose mode (multiple -v's increase verbosity)";
    "version" Some('V'), NONE, ALL, NO_VARIABLE, Some(set::version), "output version information and exit";
    "wait" Some('W'), NONE, BATCH, ["SBATCH_WAIT", "", ""], Some(set::wait), "wait for completion of submitted job";
    "wait" Some('W'), REQUIRED, RUN, ["", "", "SLURM_WAIT"], Some(set_step::wait), "seconds to wait after first task exits before killing the step";
    "wait-all-nodes" None, REQUIRED, BATCH_ALLOC, ["SBATCH_WAIT_ALL_NODES", "SALLOC_WAIT_ALL_NODES", ""], Some(set::wait_all_nodes), "a job starts when all its nodes are ready, always";
    "wait-bb" None, NONE, ALL, named!("WAIT_BB"), Some(set::wait_bb), "wait until the job's data is back from its burst buffer";
    "wait-for-children" None, NONE, RUN, NO_VARIABLE, REFUSED, "";
    "wckey" None, REQUIRED, ALL, named!("WCKEY"), Some(set::wckey), "wckey to run job under";
    "wrap" None, REQUIRED, BATCH, NO_VARIABLE, Some(set::wrap), "wrap command string in a sh script and submit";
    "x11" None, OPTIONAL, ALLOC_RUN, NO_VARIABLE, REFUSED, "";
};

impl Opt {
    pub fn is_for(&self, program: Program) -> bool {
        self.programs.contains(&program)
    }

    pub fn takes_value(&self) -> bool {
        self.value != Value::None
    }

    /// The variables that give it; a later one wins.
    pub fn variables(&self, program: Program) -> impl Iterator<Item = &'static str> + use<> {
        let own = self.variables[program as usize];
        let older = match (program, self.long) {
            (Program::Srun, "ntasks") => "SLURM_NPROCS",
            (Program::Srun, "nodes") => "SLURM_JOB_NUM_NODES",
            (Program::Srun, "chdir") => "SLURM_WORKING_DIR",
            (Program::Srun, "jobid") => "SLURM_JOBID",
            _ => "",
        };
        let newer = if (program, self.long) == (Program::Srun, "export") { "SRUN_EXPORT_ENV" } else { "" };
        let known = self.is_for(program);
        [older, own, newer].into_iter().filter(move |name| known && !name.is_empty())
    }

    /// The name under which it is remembered; an alias is remembered as what it stands for.
    pub fn canonical(&self) -> &'static str {
        match self.long {
            "tasks-per-node" => "ntasks-per-node",
            "share" => "oversubscribe",
            long => long,
        }
    }

    /// Named by Slurm, not carried out here.
    pub fn is_refused(&self) -> bool {
        self.set.is_none()
    }
}

pub fn of(program: Program) -> impl Iterator<Item = &'static Opt> {
    OPTIONS.iter().filter(move |option| option.is_for(program))
}

pub fn find(program: Program, long: &str) -> Option<&'static Opt> {
    of(program).find(|option| option.long == long)
}

/// As the argument reader wants them.
pub fn flags(program: Program) -> Vec<Flag> {
    of(program).map(|option| Flag { long: option.long, short: option.short, value: option.value }).collect()
}
