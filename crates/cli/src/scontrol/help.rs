//! What `scontrol help` prints.

pub const HELP: &str = "\
scontrol [<OPTION>] [<COMMAND>]      without a command: commands are read from stdin

    Valid <OPTION> values are:
  -a, --all        also hidden partitions
  -d, --details    more about each thing shown
  -o, --oneliner   each thing on one line
      --json[=PARSER], --yaml[=PARSER]
                   JSON or YAML instead of text, for ping and show job, node,
                   partition, reservation, licenses and burstbuffer
  -F, --future     no difference: every node that is known is shown
  -M, --clusters=NAME
                   the cluster to ask; only the configured one is known
  -Q, --quiet      no messages about what failed; the exit code tells
  -v, --verbose    more messages
  -h, --help       this text
      --usage      the same
  -V, --version    the version
      --hide, --local, --federation, --sibling
                   as without them: a cluster here is always alone

    Valid <COMMAND> values are:
  show <ENTITY> [<ID>]         job, step, node, partition, config, hostnames, hostlist, hostlistsorted,
                               reservation, licenses, daemons, aliases, topology, topoconf, federation,
                               burstbuffer, bbstat, dwstat, assoc_mgr, slurmd
  hold JOBS                    keeps pending jobs from starting; ids, or name=NAME
  uhold JOBS, holdu JOBS       the same, as a hold the owner may release
  release JOBS                 lets held jobs start
  requeue JOBS                 runs batch jobs anew
  requeuehold JOBS             the same, but held
  top JOBS                     puts pending jobs before others of their owner
  notify ID TEXT               says something to a job's users
  suspend JOBS, resume JOBS    stops running jobs for a while
  update KEY=VALUE...          changes a job (JobId=), nodes (NodeName=), a partition (PartitionName=)
                               or a reservation (ReservationName=)
  create reservation|partition|NodeName= KEY=VALUE...
                               makes one while the cluster runs
  delete ReservationName=|PartitionName=|NodeName=NAME
                               takes it away
  reboot [ASAP] [nextstate=STATE] [reason=TEXT] NODES, reboot_nodes NODES
                               starts machines anew when their jobs have left
  cancel_reboot NODES          takes that back
  completing                   jobs whose nodes are being cleared
  wait_job ID                  returns when the job's nodes are ready
  errnumstr NUMBER             what Slurm says for an error number
  write batch_script ID [FILE] a job's script, into slurm-ID.sh, FILE or - for stdout
  reconfigure                  has the controller read its configuration again
  abort                        the controller ends at once, with a core file
  shutdown [slurmctld]         ends the daemons, or only the controller
  takeover [NUMBER]            has another controller lead
  setdebug LEVEL               how much the controller logs
  setdebugflags {+|-}FLAG...   what it logs more, or less, of
  schedloglevel                refused: the scheduler has no log of its own
  fairsharedampeningfactor N, fsdampeningfactor N
                               how much use counts in priorities
  token [username=NAME] [lifespan=SECONDS]
                               what stands for a user in SLURM_JWT
  listpids [ID[.STEP] [NODE]]  processes of jobs
  listjobs [NODE], liststeps [NODE]
                               what runs on a node
  pidinfo PID                  the job of a process
  ping                         says whether the controller answers
  version                      says which Slurm this behaves as, and which Spur it is
  help, quit, exit
  all, details, hide, oneliner, quiet, verbose
                               as the options, for the commands that follow

Commands and keywords may be abbreviated; their case does not matter.
";
