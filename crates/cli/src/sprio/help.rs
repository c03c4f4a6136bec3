//! What `sprio --help` and `--usage` print.
pub const USAGE: &str = "Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]
   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]
";

pub const HELP: &str = "Usage: sprio [OPTIONS]
Shows what the priorities of waiting jobs are made of.
  -h, --noheader           leave the headings out
  -j, --jobs=ID,...        only these jobs
  -l, --long               every factor, and the user
  -M, --clusters=NAME      the cluster to ask
  -n, --norm               factors from 0 to 1 instead of weighed ones
  -o, --format=FORMAT      fields as %[.][width]letter
  -p, --partition=NAME,... only these partitions
  -S, --sort=FIELDS        letters to sort by; a minus turns one round
  -u, --user=NAME,...      only jobs of these users
  -v, --verbose            say first what is asked for
  -V, --version            the version
  -w, --weights            the weights of the factors

Help options:
  --help                   show this help message
  --helpformat             the letters of --format
  --usage                  display a brief summary of sprio options
";
