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
  -Q, --quiet      no messages about what failed; the exit code tells
  -h, --help       this text
  -V, --version    the version
      --hide, --local, --federation, --sibling
                   as without them: a cluster here is always alone

    Valid <COMMAND> values are:
  show <ENTITY> [<ID>]         job, step, node, partition, config, hostnames, hostlist, hostlistsorted,
                               reservation, licenses, daemons, aliases, topology, federation, burstbuffer
  hold JOBS                    keeps pending jobs from starting; ids, or name=NAME
  uhold JOBS                   the same, as a hold the owner may release
  release JOBS                 lets held jobs start
  requeue JOBS                 runs batch jobs anew
  requeuehold JOBS             the same, but held
  suspend JOBS, resume JOBS    stops running jobs for a while
  update KEY=VALUE...          changes a job (JobId=), nodes (NodeName=), a partition (PartitionName=)
                               or a reservation (ReservationName=)
  create reservation|partition KEY=VALUE...
                               makes one while the cluster runs
  delete ReservationName=|PartitionName=NAME
                               takes it away
  completing                   jobs whose nodes are being cleared
  wait_job ID                  returns when the job's nodes are ready
  errnumstr NUMBER             what Slurm says for an error number
  write batch_script ID [FILE] a job's script, into slurm-ID.sh, FILE or - for stdout
  reconfigure                  has the controller read its configuration again
  abort                        the controller ends at once, with a core file
  shutdown [slurmctld]         ends the daemons, or only the controller
  pidinfo PID                  the job of a process
  ping                         says whether the controller answers
  version                      says which Slurm this behaves as, and which Spur it is
  help, quit
  all, details, hide, oneliner, quiet, verbose
                               as the options, for the commands that follow

Commands and keywords may be abbreviated; their case does not matter.
";
