# Jobs with every kind of end, for sacct.py; sourced on both systems, so that ids are the same. Ends when all of them have ended.
wait_state() { for _ in $(seq 600); do [ "$(squeue -h -t all -j "$1" -o %T 2>/dev/null | sort -u)" = "$2" ] && return; sleep 0.1; done; echo "job $1 is not $2: $(squeue -h -t all -j $1 -o %T)"; }
gone() { for _ in $(seq 900); do [ -z "$(squeue -h -j "$1" 2>/dev/null)" ] && return; sleep 0.1; done; echo "job $1 does not end"; }
sub() { sbatch --parsable -o /dev/null --mem=100 "$@"; }
ok=$(sub -J ok --comment "a b" --wrap 'srun -n2 true; srun -n1 -J named sleep 1')                   # 1
bad=$(sub -J bad --wrap 'srun false; exit 3')                                                       # 2
array=$(sub -J arr -a 0-3%2 --wrap 'exit $((SLURM_ARRAY_TASK_ID==2))')                              # 3-6
gone $array
held=$(sub -J held -H -a 0-7%4 --wrap true)                                                         # 7
heldone=$(sub -J heldone -H --wrap true)                                                            # 8
cancelled=$(sub -J cancelled --wrap 'srun sleep 100'); wait_state $cancelled RUNNING; sleep 1; scancel $cancelled; gone $cancelled
stepgone=$(sub -J stepgone --wrap 'srun sleep 100; srun true'); wait_state $stepgone RUNNING; sleep 1; scancel $stepgone.0; gone $stepgone
requeued=$(sub -J requeued --requeue --wrap '[ -n "$SLURM_RESTART_COUNT" ] || sleep 100'); wait_state $requeued RUNNING; sleep 1; scontrol requeue $requeued
limit=$(sub -J limit -t 1 -N2 --ntasks-per-node=2 --wrap 'srun sleep 200')
suspended=$(sub -J suspended --wrap 'sleep 4'); wait_state $suspended RUNNING; scontrol suspend $suspended; sleep 2; scontrol resume $suspended
het=$(sub -J het -n1 : -n2 <<< $'#!/bin/bash\nsleep 1')
srun --mem=100 -J direct -n2 true; srun --mem=100 -J sfail false 2>/dev/null; srun --mem=100 -J ssig bash -c 'kill -9 $$' 2>/dev/null
salloc -Q --mem=100 -J alloc -n2 bash -c 'srun true; exit 4'
pending=$(sub -J canpend -H --wrap true); scancel $pending
signalled=$(sub -J signalled --wrap 'kill -9 $$')
notfound=$(sub -J notfound --wrap 'srun nosuchprogram; true')
depended=$(sub -J depended -d afternotok:$signalled --wrap true)
never=$(sub -J never -d afterok:$bad --kill-on-invalid-dep=yes --wrap true)
features=$(sbatch --parsable -o /dev/null -J features -n3 -c2 --mem-per-cpu=10 --wrap "srun -n3 --exact true")
multi=$(sub -J multi -N3 -n5 --wrap 'srun -N3 -n5 true; srun -N1 -n1 false; srun -N2 -n2 sh -c "exit \$SLURM_PROCID"')
for job in $ok $bad $het $signalled $depended $features $multi $notfound $never $suspended; do gone $job; done
gone $requeued; gone $limit; sleep 3
