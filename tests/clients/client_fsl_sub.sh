# FSL's fsl_sub with its plugin for Slurm: a configuration made of what sinfo tells, jobs, arrays, holds, and its report of them.
# packages: fsl-sub fsl-sub-plugin-slurm setuptools<81
set -e
fsl_sub_config slurm > fsl_sub.yml
export FSLSUB_CONF=$PWD/fsl_sub.yml
grep -q '^  main:' fsl_sub.yml
grep -q 'max_slots: 8' fsl_sub.yml
first=$(fsl_sub -q main -N first -l logs -R 1 sh -c 'sleep 1; echo one')
# Each line of the file is a task.
for i in 1 2 3; do echo "sh -c 'echo line $i; sleep 0.1'"; done > tasks
array=$(fsl_sub -q main -N many -l logs -j "$first" -t tasks)
last=$(fsl_sub -N last -l logs -j "$array" --jobram 1 -T 5 -s 2 sh -c 'echo $SLURM_CPUS_PER_TASK')
for i in $(seq 200); do [ -z "$(squeue -h -j "$last" -o %i 2> /dev/null)" ] && break; sleep 0.1; done
grep -qx one logs/first.o"$first"
for i in 1 2 3; do grep -qx "line $i" logs/many.o"$array"?"$i"; done
[ "$(cat logs/last.o"$last")" = 2 ]
fsl_sub_report "$array" > report
grep -c -i 'finished\|Exit status: 0' report | grep -q '[1-9]' || { cat report; exit 1; }
