//! The texts of `sacct --help`, `--usage` and `--helpformat`.
use model::Reason;
use model::job_state::JobState;

use super::fields::FIELDS;
use crate::choices::in_columns;

pub const DEFAULT: &str = "jobid,jobname,partition,account,alloccpus,state,exitcode";
pub const BRIEF: &str = "jobid,state,exitcode";
pub const LONG: &str = "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,\
maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,\
alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,\
maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,\
reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,\
tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,\
tresusageoutave,tresusageouttot";

pub const USAGE: &str = "Usage: sacct [options]\n\tUse --help for help\n";

pub const HELP: &str = "\
sacct [<OPTION>]
    Valid <OPTION> values are:
Which jobs:
  -j, --jobs:                 these jobs, arrays, array tasks or steps (12,13_4,14.batch,15+1)
  -u, --user=NAMES            of these users (names or numbers); default: the caller's, for root all
  -a, --allusers              of all users
      --uid=NAMES             the same
  -g, --group=NAMES           of these groups; also --gid
  -A, --accounts:             of these accounts
  -x, --associations=NUMBERS  of these associations
  -r, --partition=NAMES       in these partitions
  -q, --qos=NAMES             with these qualities of service
  -W, --wckeys=NAMES          with these wckeys
      --name=NAMES            with these names
  -N, --nodelist=NODES        that ran on one of these nodes
  -C, --constraints=NAMES     that asked for all of these features
  -R, --reason=WORDS          with these reasons
  -F, --flags=NAMES           started by SchedMain or SchedBackfill
  -i, --nnodes=MIN[-MAX]      on so many nodes
  -I, --ncpus=MIN[-MAX]       on so many CPUs
  -k, --timelimit-min=TIME    with this time limit, or at least this one
  -K, --timelimit-max=TIME    with -k: and at most this one
  -s, --state:                that were in one of these states (CD, FAILED, ...) in the time looked at
  -S, --starttime:            the time looked at begins; default: today 00:00; with -j: ever; with -s: now
  -E, --endtime=TIME          the time looked at ends; default: now
  -D, --duplicates            all runs of requeued jobs, not only the last
      --whole-hetjob[=yes|no] all parts of a heterogeneous job, or only those named
  -M, --clusters=NAMES, -L, --allclusters, --local, --federation
                              there is one cluster
What of them:
  -X, --allocations           only jobs, no steps
  -o, --format=FIELDS         these fields, each with %WIDTH or %-WIDTH if wanted; also --fields
  -e, --helpformat            the list of fields; also --help-fields
      --helpstate             the list of states
      --helpreason            the list of reasons
  -l, --long                  many fields
  -b, --brief                 JobID, State and ExitCode
  -B, --batch-script          the scripts instead (with -j)
      --env-vars              the environments instead (with -j)
  -T, --truncate              times are cut to those of -S and -E
How:
  -n, --noheader              no heading
  -p, --parsable              fields with | after each
  -P, --parsable2             fields with | between them
      --delimiter=TEXT        instead of |
      --units=[KMGTP]         sizes in this unit
      --noconvert             sizes as they are stored
      --array                 each task of a waiting array by itself
      --expand-patterns       no difference: names of files have their patterns filled in
      --json[=PARSER], --yaml[=PARSER]
                              JSON or YAML
      --use-local-uid         users by their number here
  -v, --verbose   -V, --version   -h, --help   --usage

valid start/end time formats are...
  HH:MM[:SS] [AM|PM]
  MMDD[YY] or MM/DD[/YY] or MM.DD[.YY]
  MM/DD[/YY]-HH:MM[:SS]
  YYYY-MM-DD[THH:MM[:SS]]
  now[{+|-}count[seconds|minutes|hours|days|weeks]]
";

/// Four to a line.
pub fn fields() -> String {
    in_columns(FIELDS.iter().filter(|field| field.is_listed).map(|field| field.name), 4, 19)
}

/// What `--state` takes of those that a job can end in, or be in for long.
pub fn states() -> String {
    let lasting = JobState::all().filter(|state| *state < JobState::Completing);
    in_columns(lasting.map(JobState::name), 4, 19)
}

/// What `--reason` can find.
pub fn reasons() -> String {
    in_columns(std::iter::once("None").chain(Reason::ALL.iter().map(|reason| reason.word())), 2, 39)
}
