# GNU parallel: many steps in one allocation.
set -e
[ "$(salloc -Q -n2 parallel -j2 srun --exact -n1 -c1 sh -c "'echo \$SLURM_JOB_ID {}'" ::: 1 2 3 4 5 6 | sort -u | wc -l)" = 6 ]
[ "$(sacct -X -n -P -o state | tail -1)" = COMPLETED ]
