//! The texts of `squeue --help` and `--usage`, and the states it knows.

pub const STATES: &str = "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,\
DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,\
SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED";

pub const USAGE: &str = "\
Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partitions] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
\t      [-ahjlrsv]
";

pub const HELP: &str = "\
Usage: squeue [OPTIONS]
Which jobs:
  -j, --jobs=IDS            these jobs, arrays or array tasks (12,13_4)
  -u, --user=NAMES          jobs of these users (names or numbers)
      --me                  jobs of the caller
      --notme               jobs of all others
  -p, --partitions=NAMES    jobs in these partitions
  -t, --states=STATES       jobs in these states (PD, RUNNING, ..., all);
                            without it: jobs that have not ended
  -n, --name=NAMES          jobs with these names
  -A, --account=NAMES       jobs of these accounts
  -q, --qos=NAMES           jobs with these qualities of service
  -w, --nodelist=NODES      jobs on these nodes
  -L, --licenses=NAMES      jobs that use these licenses
  -R, --reservation=NAME    jobs in this reservation
      --running-over=TIME   running jobs that have run longer than this
      --running-under=TIME  running jobs that have not run so long
  -a, --all                 also jobs in hidden partitions
      --hide                not those (the default)
  -s, --steps[=IDS]         steps instead of jobs (12.0)
      --start               pending jobs with their expected start
How they are shown:
  -l, --long                more columns
  -o, --format=FORMAT       %[.][width]letter with any text between
  -O, --Format=FORMAT       name[:[.][width][suffix]],...
  -S, --sort=FIELDS         letters of -o, each with - to turn it round
  -r, --array               one line for each task of an array
      --array-unique        the same
  -P, --priority            one line for each partition of a pending job
  -h, --noheader            no heading
      --expand-patterns     names of files with their patterns filled in
      --noconvert           memory in megabytes, not in larger units
      --json[=PARSER], --yaml[=PARSER]
                            all that is known, as JSON or YAML
  -i, --iterate=SECONDS     again and again
Others:
  -M, --clusters=NAME       the cluster to ask; only the configured one is known
      --only-job-state      no difference: no answer is cheaper than another
      --federation, --local, --sibling
                            a cluster here is always alone: no difference
  -v, --verbose             say which cluster is asked
  -V, --version             the version

Help options:
      --help                this text
      --helpformat          the letters of --format
      --helpFormat          the names of --Format
      --helpstate           the states of --states
      --usage               a short one
";
