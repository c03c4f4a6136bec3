# disBatch: a list of tasks, spread over the nodes of an allocation through ssh or srun.
# packages: disBatch setuptools
set -e
for i in $(seq 20); do echo "echo task $i on \$SLURMD_NODENAME > out.$i"; done > Tasks
sbatch --wait -N2 --ntasks-per-node=2 -o run.out --wrap "disBatch Tasks" || { cat run.out; exit 1; }
ls out.* | wc -l | grep -qx 20
grep -h . *_status.txt | wc -l | grep -qx 20
