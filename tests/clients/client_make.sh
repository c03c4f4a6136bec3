# make and xargs whose commands are steps: SHELL=srun in an allocation, and many srun at once outside of one.
set -e
command -v make > /dev/null || exit 77
printf 'all: a b c d\na b c d:\n\t@sleep 0.2; echo $@ $$SLURM_STEP_ID > $@\n' > Makefile
salloc -Q -n4 --mem=400 make -s -j4 SHELL='srun' .SHELLFLAGS='-n1 --exact --mem=100 bash -c'
[ "$(cat a b c d | cut -d' ' -f1 | paste -sd,)" = a,b,c,d ]
[ "$(cat a b c d | cut -d' ' -f2 | sort -u | wc -l)" = 4 ]
seq 12 | xargs -P6 -I{} srun -Q -n1 --mem=100 sh -c 'echo {} > x{}'
[ "$(cat x* | sort -n | paste -sd,)" = 1,2,3,4,5,6,7,8,9,10,11,12 ]
