#!/bin/bash
# MPI programs on a `spur up` cluster: MPICH through `srun --mpi=pmi2` (PMI-2 and PMI-1), Open MPI through `srun --mpi=pmix`, and the mpirun of both inside an allocation.
# Needs: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev. Usage: run.sh path/to/spur
set -u
spur=$(readlink -f "${1:-spur}"); here=$(dirname "$(readlink -f "$0")"); dir=$(mktemp -d /tmp/spur-mpi-XXXXXX)
"$spur" up --nodes 2 --cpus 4 --dir "$dir/c" >/dev/null || exit 1
trap '"$spur" down --dir "$dir/c" >/dev/null; rm -rf "$dir"' EXIT
eval "$("$spur" env --dir "$dir/c")"; cd "$dir" || exit 1
failed=0
check() { # title, expected, command
  local got; got=$(timeout 60 bash -c "$3" 2>err)
  if [ "$got" = "$2" ]; then echo "ok      $1"; else echo "FAILED  $1: got '$got'"; sed 's/^/        /' err | head -8; failed=1; fi
}
if command -v mpicc.mpich >/dev/null; then
  mpicc.mpich -o hello.mpich "$here/hello.c" || exit 1
  check "MPICH, srun --mpi=pmi2, one node" "size 3 sum 3" "srun --mpi=pmi2 -N1 -n3 ./hello.mpich"
  check "MPICH, srun --mpi=pmi2, two nodes" "size 4 sum 6" "srun --mpi=pmi2 -N2 -n4 ./hello.mpich"
  check "MPICH, srun --mpi=pmi2, cyclic" "size 5 sum 10" "srun --mpi=pmi2 -N2 -n5 -m cyclic ./hello.mpich"
  check "MPICH, in a batch job" "size 4 sum 6" "sbatch -Q -W -o out.%j -N2 -n4 --wrap 'srun --mpi=pmi2 ./hello.mpich' >/dev/null; cat out.*"
  check "MPICH, MPI_Abort ends the step" "size 4 sum 6 failed" "echo \$(srun --mpi=pmi2 -N2 -n4 ./hello.mpich x || echo failed)"
  check "MPICH's mpirun in an allocation" "size 4 sum 6" "salloc -Q -N2 -n4 mpiexec.hydra -n 4 ./hello.mpich"
else echo "skipped MPICH: no mpicc.mpich"; fi
if command -v mpicc.openmpi >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  mpicc.openmpi -o hello.ompi "$here/hello.c" || exit 1
  check "Open MPI's mpirun, one node" "size 2 sum 1" "salloc -Q -N1 -n2 mpirun.openmpi ./hello.ompi"
  check "Open MPI's mpirun, two nodes" "size 4 sum 6" "salloc -Q -N2 -n4 mpirun.openmpi ./hello.ompi"
  check "Open MPI's mpirun in a batch job" "size 4 sum 6" "sbatch -Q -W -o ompi.%j -N2 -n4 --wrap 'mpirun.openmpi ./hello.ompi' >/dev/null; cat ompi.*"
  if srun --mpi=list | grep -q pmix; then
    check "Open MPI, srun --mpi=pmix, one node" "size 3 sum 3" "srun --mpi=pmix -N1 -n3 ./hello.ompi"
    check "Open MPI, srun --mpi=pmix, two nodes" "size 4 sum 6" "srun --mpi=pmix -N2 -n4 ./hello.ompi"
    check "Open MPI, srun --mpi=pmix, cyclic" "size 5 sum 10" "srun --mpi=pmix -N2 -n5 -m cyclic ./hello.ompi"
    check "Open MPI, --mpi=pmix in a batch job" "size 4 sum 6" "sbatch -Q -W -o pmix.%j -N2 -n4 --wrap 'srun --mpi=pmix ./hello.ompi' >/dev/null; cat pmix.*"
    check "Open MPI, --mpi=pmix, MPI_Abort ends the step" "failed" "srun --mpi=pmix -N2 -n4 ./hello.ompi x >/dev/null || echo failed"
    check "Open MPI, --mpi=pmix, two steps at once" "size 2 sum 1 size 2 sum 1" "echo \$(salloc -Q -N2 -n4 bash -c 'srun --mpi=pmix -N2 -n2 --exact ./hello.ompi & srun --mpi=pmix -N2 -n2 --exact ./hello.ompi & wait')"
  else echo "skipped PMIx: no libpmix"; fi
else echo "skipped Open MPI: no mpicc.openmpi"; fi
exit $failed
