# Open MPI's mpirun inside an allocation.
set -e
command -v mpirun > /dev/null || { echo "no mpirun here"; exit 77; }
[ "$(sbatch --wait -n2 -o out --wrap 'mpirun --allow-run-as-root hostname' > /dev/null; wc -l < out)" = 2 ]
