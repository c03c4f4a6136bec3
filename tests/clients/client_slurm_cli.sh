# slurm-cli: jobs, nodes, partitions and QOS through its own tables, made of the commands' JSON; hold, release, drain and resume.
# packages: slurm-cli
set -e
export HOME=$PWD
run() { slurm-cli -f -y --json "$@"; }
held=$(sbatch --parsable -H -J seen --wrap 'sleep 300')
run show jobs | python -c "import json, sys; jobs = {j['job_id']: j for j in json.load(sys.stdin)}; j = jobs['$held']; assert (j['name'], j['job_state']) == ('seen', 'PENDING'), j"
run show nodes | python -c "import json, sys; nodes = json.load(sys.stdin); assert set(nodes) == {'n1', 'n2'} and nodes['n1']['cpus'] == 8, nodes"
run show partitions | python -c "import json, sys; assert json.load(sys.stdin)['main']['TotalNodes'] == '2'"
run show qos | grep -q '"Normal QOS default"'
run release "$held"
until [ "$(squeue -h -j "$held" -o %t)" = R ]; do sleep 0.2; done
run drain n2 -r "looked at" || run drain n2 --reason "looked at"
[ "$(sinfo -h -n n2 -o %t)" = drain ]
run undrain n2
[ "$(sinfo -h -n n2 -o %t)" = idle ]
run ping | grep -qi up
scancel "$held"
