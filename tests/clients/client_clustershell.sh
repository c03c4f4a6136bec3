# ClusterShell: groups of nodes from Slurm, as its own example configuration asks for them.
# packages: ClusterShell
set -e
example=$(python - <<'S'
import ClusterShell, os, sysconfig
for top in (sysconfig.get_path("data"), "/"):
    for folder in ("etc/clustershell/groups.conf.d", "share/clustershell/groups.conf.d"):
        path = os.path.join(top, folder, "slurm.conf.example")
        if os.path.exists(path):
            print(path)
S
)
[ -n "$example" ] || { echo "no example configuration"; exit 77; }
mkdir -p conf/groups.conf.d
cp "$(echo "$example" | head -1)" conf/groups.conf.d/slurm.conf
printf '[Main]\ndefault: slurmpart\nconfdir: %s/conf/groups.conf.d\n' "$PWD" > conf/groups.conf
export CLUSTERSHELL_CFGDIR=$PWD/conf
[ "$(nodeset -f @main)" = 'n[1-2]' ]
[ "$(nodeset -f @slurmstate:idle,@slurmstate:mixed,@slurmstate:allocated)" = 'n[1-2]' ]
job=$(sbatch --parsable -w n1 -o /dev/null --wrap 'sleep 30')
trap 'scancel $job' EXIT
for i in $(seq 100); do [ "$(squeue -h -j "$job" -o %t)" = R ] && break; sleep 0.1; done
[ "$(nodeset -f "@slurmjob:$job")" = n1 ]
[ "$(nodeset -f "@slurmuser:$(id -un)" | grep -c n1)" = 1 ]
