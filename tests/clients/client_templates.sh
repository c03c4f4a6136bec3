# cromwell's, nextflow's and others' templates: submit, is alive, kill, as their manuals give them.
set -e
job=$(sbatch -J cromwell_x -D "$PWD" -o out -e err -t 10 -p main -c 1 --mem-per-cpu=100 --wrap "/bin/bash -c 'sleep 2; echo hi'" | grep -oE '[0-9]+')
squeue -j "$job" > /dev/null
# nextflow
squeue --noheader -o '%i %t' -t all -u "$(id -un)" | grep -qE "^$job (R|PD|CG|CD)"
scancel "$job"
for i in $(seq 100); do [ "$(sacct -n -X -P -j "$job" -o State | cut -d' ' -f1)" = CANCELLED ] && break; sleep 0.1; done
[ "$(sacct -n -X -P -j "$job" -o State)" = "CANCELLED by $(id -u)" ]
