# NorduGrid ARC's back end for Slurm (Debian's nordugrid-arc-arex; taken apart, not installed): what it tells of cluster, queue, jobs and nodes.
set -e
arc=/usr/share/arc
if [ ! -e $arc/SLURM.pm ]; then
  apt-get download nordugrid-arc-arex > download.log 2>&1 && dpkg -x nordugrid-arc-arex_*.deb . || { echo "no ARC here"; exit 77; }
  arc=$PWD/usr/share/arc
fi
# A job as its submit script writes them.
cat > job.sh <<'S'
#!/bin/bash -l
#SBATCH --no-requeue
#SBATCH --export=NONE
#SBATCH -e job.comment
#SBATCH -o job.comment
#SBATCH -p main
#SBATCH --nice=50
#SBATCH -J 'grid job'
#SBATCH --get-user-env=10L
#SBATCH -n 2
#SBATCH --ntasks-per-node 1
#SBATCH  
#SBATCH -t 5:0
#SBATCH --mem-per-cpu=100
sleep 300
S
job=$(sbatch job.sh | sed 's/^Submitted batch job //')
until [ "$(squeue -a -h -o '%i:%T' -t all -j "$job")" = "$job:RUNNING" ]; do sleep 0.1; done
cat > ask.pl <<'S'
use strict;
require SLURM;
my $here = { slurm_bin_path => $ENV{BIN}, loglevel => 5 };
my %cluster = SLURM::cluster_info($here);
my %queue = SLURM::queue_info($here, 'main');
my %jobs = SLURM::jobs_info($here, 'main', [$ENV{JOB}]);
my %users = SLURM::users_info($here, 'main', ['alice']);
my %nodes = SLURM::nodes_info($here);
my $job = $jobs{$ENV{JOB}};
print join(' ', @cluster{qw(lrms_type totalcpus usedcpus runningjobs)}, @queue{qw(totalcpus running queued)}), "\n";
print join(' ', @$job{qw(status cpus reqwalltime mem)}, @{$job->{nodes}}, @{$job->{comment}}), "\n";
print join(' ', $users{alice}{freecpus}, map { "$_ $nodes{$_}{lcpus} $nodes{$_}{isavailable}" } sort keys %nodes), "\n";
S
BIN=$(dirname "$(command -v sinfo)") JOB=$job perl -I"$arc" ask.pl > told
diff told - <<S
SLURM 16 2 1 16 1 0
R 2 5 8192 n1 n2 grid job
14 n1 8 1 n2 8 1
S
scancel "$job"
until [ -z "$(squeue -h -j "$job" 2> /dev/null)" ]; do sleep 0.1; done
sacct -j "$job.batch" -o NCPUS,Start,End,UserCPU,SystemCPU -P -n | grep -qE '^1\|'
