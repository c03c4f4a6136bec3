//! The texts of `sinfo --help` and `--usage`, and the states it names.

pub const STATES: &str = "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,\
cloud,completing,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown";

pub const USAGE: &str = "\
Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O format] [--json]
";

pub const HELP: &str = "\
Usage: sinfo [OPTIONS]
Which nodes:
  -p, --partition=NAMES     nodes of these partitions
  -n, --nodes=NODES         these nodes
  -t, --states=STATES       nodes in these states; a & b means both
  -d, --dead                nodes that do not answer
  -r, --responding          nodes that answer
  -a, --all                 also hidden partitions
      --hide                not those (the default)
How they are shown:
  -N, --Node                one line for each node and partition
  -l, --long                more columns
  -s, --summarize           one line for each partition
  -R, --list-reasons        why nodes are down or drained
  -T, --reservation         reservations
  -e, --exact               together only what is exactly alike
  -o, --format=FORMAT       %[.][width]letter with any text between
  -O, --Format=FORMAT       name[:[.][width][suffix]],...
  -S, --sort=FIELDS         letters of -o, each with - to turn it round
  -h, --noheader            no heading
      --noconvert           memory in megabytes, not in larger units
      --json[=PARSER], --yaml[=PARSER]
                            all that is known, as JSON or YAML
  -i, --iterate=SECONDS     again and again
Others:
  -M, --clusters=NAME       the cluster to ask; only the configured one is known
      --future              no difference: every node that is known is shown
      --federation, --local a cluster here is always alone: no difference
  -v, --verbose             say which cluster is asked
  -V, --version             the version

Help options:
      --help                this text
      --helpformat          the letters of --format
      --helpFormat          the names of --Format
      --helpstate           the states of --states
      --usage               a short one
";
