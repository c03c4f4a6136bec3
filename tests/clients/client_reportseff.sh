# reportseff: efficiency from sacct.
# packages: reportseff
set -e
job=$(sbatch --parsable --wait -c1 -t 5 --mem=200 -o /dev/null --wrap 'timeout 2 sh -c "while :; do :; done"; true')
reportseff --no-color "$job" | tee out
grep -Eq "^ *$job +COMPLETED" out
reportseff --no-color --format=+jobname,partition "$job" | grep -q main
