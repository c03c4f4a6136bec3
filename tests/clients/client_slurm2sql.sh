# slurm2sql: reads all of sacct's fields into a database, and makes its own seff and sacct of it.
# packages: slurm2sql
set -e
first=$(sbatch --parsable -W -o /dev/null -n2 --mem=200 --wrap 'srun -n2 python3 -c "sum(range(3000000))"')
sbatch -Q -W -o /dev/null --wrap 'exit 3' || true
array=$(sbatch --parsable -W -o /dev/null -a 1-2 --wrap true)
slurm2sql history.db -- -S now-1hour -a
ask() { python - "$1" <<'P'
import sqlite3, sys
print(*sqlite3.connect("history.db").execute(sys.argv[1]).fetchall()[0])
P
}
[ "$(ask "select State, NCPUS from allocations where JobID=$first")" = "COMPLETED 2" ]
[ "$(ask "select count(*) from slurm where JobIDonly=$array and ArrayTaskID in (1, 2) and JobStep is null")" = 2 ]
[ "$(ask "select count(*) from allocations where State='FAILED'")" -ge 1 ]
slurm2sql-seff -S now-1hour -a | grep -q "$first"
