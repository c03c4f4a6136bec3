# mpi4py with MPICH (both from PyPI), started by srun with its own PMI-2.
# packages: mpi4py mpich
set -e
library=$(python -c "import sys; print(sys.prefix)")/lib/libmpi.so.12
[ -e "$library" ] || { echo "no MPICH here"; exit 77; }
cat > sum.py <<'S'
from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(world.rank, world.size, total, MPI.Get_library_version().split()[0], flush=True)
S
export LD_LIBRARY_PATH=$(dirname "$library")
srun -n4 -N2 --mpi=pmi2 python sum.py | sort > out
cat out
[ "$(cut -d' ' -f1-3 out | paste -sd,)" = "0 4 10,1 4 10,2 4 10,3 4 10" ]
