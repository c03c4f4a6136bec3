# dask-mpi: a scheduler, a client and workers that are the tasks of one step.
# packages: dask-mpi mpi4py mpich
set -e
export LD_LIBRARY_PATH=$(python -c "import sys; print(sys.prefix)")/lib
cat > work.py <<'PY'
import dask_mpi
from distributed import Client

dask_mpi.initialize(nthreads=1, dashboard=False)
client = Client()
client.wait_for_workers(2)
print("sum", sum(client.gather(client.map(lambda x: x * x, range(10)))), flush=True)
PY
sbatch -W -N2 -n4 -t 5 -o dask.log --wrap "srun --mpi=pmi2 python work.py" || { cat dask.log; exit 1; }
cat dask.log
grep -q "sum 285" dask.log
