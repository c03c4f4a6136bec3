# slurm-usage: who uses what now, nodes, and a day's jobs collected from sacct and weighed up.
# packages: slurm-usage
set -e
export COLUMNS=150
sbatch -W --wrap true; sbatch -W --wrap 'exit 3' || true
running=$(sbatch --parsable -n2 --wrap 'sleep 300')
until [ "$(squeue -h -j "$running" -o %t)" = R ]; do sleep 0.2; done
slurm-usage current | tee current.txt
grep -q "R=2" current.txt
slurm-usage nodes | tee nodes.txt
grep -qE "n1 +│ +8" nodes.txt
slurm-usage collect --days 1 | tee collect.txt
grep -q "Collection complete" collect.txt
slurm-usage analyze --days 1 | tee analyze.txt
grep -qE "COMPLETED +[1-9]" analyze.txt
grep -qE "FAILED +[1-9]" analyze.txt
scancel "$running"
