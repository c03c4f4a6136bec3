# What scripts and libraries hand to the commands: forms of values, empty values, values that are none, and what jobs are told.
# ends by a signal
sbatch -Q -W --wrap 'kill -9 $$'; echo $?; squeue -h -t all -S -i -o "%t %r %R" | head -1
sbatch -Q -W --wrap 'exit 143'; echo $?; squeue -h -t all -S -i -o "%t %r %R" | head -1
sbatch -Q -W --wrap 'srun bash -c "kill -9 \$\$"'; scontrol -o show job $(squeue -h -t all -S -i -o %i | head -1) | tr ' ' '\n' | grep -E "JobState|ExitCode|Reason"
srun -Q bash -c 'kill -9 $$'; scontrol -o show job $(squeue -h -t all -S -i -o %i | head -1) | tr ' ' '\n' | grep -E "ExitCode|Reason"
salloc -Q bash -c 'kill -9 $$'; scontrol -o show job $(squeue -h -t all -S -i -o %i | head -1) | tr ' ' '\n' | grep -E "JobState|ExitCode|Reason"
salloc -Q bash -c 'exit 3'; echo $?; squeue -h -t all -S -i -o "%t %r" | head -1
# tasks of a node
srun -Q -N1 -n2 --ntasks-per-node=2 bash -c 'echo x$SLURM_NTASKS_PER_NODE'
srun -Q -N2 --ntasks-per-node=1 bash -c 'echo x$SLURM_NTASKS_PER_NODE'
srun -Q -n2 bash -c 'echo x$SLURM_NTASKS_PER_NODE'
SLURM_NTASKS_PER_NODE=2 srun -Q -N1 bash -c 'echo x$SLURM_NTASKS_PER_NODE $SLURM_NTASKS'
sorted: srun -Q -N2 -n4 --ntasks-per-node=2 -l bash -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $SLURM_STEPID $SLURM_NTASKS $SLURM_NPROCS $SLURM_NTASKS_PER_NODE $SLURM_TASKS_PER_NODE $SLURM_JOB_NUM_NODES'
sbatch -Q -W -N2 -o o1 --ntasks-per-node=1 --wrap 'echo b$SLURM_NTASKS_PER_NODE; srun bash -c "echo s\$SLURM_NTASKS_PER_NODE"; srun -n1 -N1 bash -c "echo t\$SLURM_NTASKS_PER_NODE"'; cat o1
sbatch -Q -W -N2 -o o2 --wrap 'echo b$SLURM_NTASKS_PER_NODE; srun -N2 --ntasks-per-node=1 bash -c "echo s\$SLURM_NTASKS_PER_NODE"; srun -N2 bash -c "echo t\$SLURM_NTASKS_PER_NODE"'; cat o2
salloc -Q -N2 bash -c 'echo b$SLURM_NTASKS_PER_NODE; srun --ntasks-per-node=1 bash -c "echo s\$SLURM_NTASKS_PER_NODE"'
# how nice whoever asks is
nice -n 5 sbatch -Q -W -o o3 --wrap 'echo $SLURM_PRIO_PROCESS; srun bash -c "echo \$((SLURM_PRIO_PROCESS - $(nice)))"'; cat o3
nice -n 5 srun -Q bash -c 'echo $SLURM_PRIO_PROCESS'; nice -n 5 salloc -Q bash -c 'srun bash -c "echo \$SLURM_PRIO_PROCESS"'
# --export
for e in ALL NONE NIL ALL,K=V K=V K "K=" "K=x,K=y"; do K=was sbatch -Q -W -o e.out --export="$e" --wrap 'echo "K=$K"'; echo "$e $?"; cat e.out; done 2>&1
for e in "K='a b'" "K='a,b'" 'K="a b"' "ALL,K='a,b',L=2"; do K=was sbatch -Q -W -o e.out --export="$e" --wrap 'echo "K=$K L=$L"'; echo "$e $?"; cat e.out; done 2>&1
for e in "K='a,b'" 'K="a b"'; do K=was srun -Q --export="$e" /bin/bash -c 'echo "K=$K L=$L"'; echo "$e $?"; done 2>&1
# empty values: scripts have variables in them
for o in constraint exclude licenses reservation comment wckey dependency account qos; do sbatch -Q --$o= --wrap true; echo "$o $?"; done 2>&1
for o in time mem mem-per-cpu ntasks nodes cpus-per-task signal array mail-type hint distribution exclusive open-mode; do sbatch -Q --$o= --wrap true; echo "$o $?"; done 2>&1
sbatch --partition= --wrap true; echo $?
srun -p "" true; echo $?
SBATCH_PARTITION= sbatch --wrap true; echo $?
salloc -Q bash -c 'srun -p "" echo in'
# forms of values
for t in 2 0:300 00:02:00 1-00:00:00 1-0 1-0:0 90:00 INFINITE UNLIMITED 0 -1 1:2:3:4 x "" 1.5 1-25; do sbatch -Q -H -t "$t" --wrap true; echo "$t $?"; done 2>&1; squeue -h -S i -o "%l"
for m in 100 100M 102400K 1G 0 1.5G 10m x "" 5GB -1; do sbatch -Q -H --mem="$m" --wrap true; echo "$m $?"; done 2>&1; squeue -h -S i -o "%m"
for a in 0-7%4 1,3,5 0-10:3 5 1-3,7 1-3, 3-1 -1 1-2-3 a 1-3%0 ""; do sbatch -Q -H -a "$a" --wrap true; echo "$a $?"; done 2>&1; squeue -h -S i -o "%K"
for d in afterok:1 afterany:1:2 after:1 after:1+5 afternotok:1 singleton afterok:1,afterany:2 afterok:1?afterany:2 aftercorr:1 nonsense afterok:x afterok: after afterburstbuffer:1; do sbatch -Q -H -d "$d" --wrap true; echo "$d $?"; done 2>&1
for s in B:USR1@60 USR1 10@5 @5 USR1@x SIGUSR1@10 B:@5 R:USR1@5 RB:USR1@5 FOO; do sbatch -Q -H --signal="$s" --wrap true; echo "$s $?"; done 2>&1
for g in none gpu gpu:1 gpu:x:1 nope:3; do sbatch -Q -H --gres="$g" --wrap true; echo "$g $?"; done 2>&1
for h in compute_bound memory_bound nomultithread multithread x help; do sbatch -Q -H --hint="$h" --wrap true; echo "$h $?"; done 2>&1
for x in "-N 1-" "-N 2-1" "-N x" "-N 1,2" "-N 1k" "-n 0" "-n -1" "-n x" "-c 0" "-c x" "--ntasks-per-node=x" "--ntasks-per-node=0" "--mem-per-cpu=x" "--begin=x" "--deadline=x" "--exclusive=x" "--mail-type=x" "-p" "-J" "-D /nonexistent" "-w nosuch" "-x nosuch" "-F nofile" "--uid=nosuch" "--gid=nosuch" "--tmp=x" "--mincpus=x" "--switches=x" "--requeue=x" "-k x" "--wait=3"; do sbatch -Q -H $x --wrap true < /dev/null; echo "$x $?"; done 2>&1
for x in "-n 0" "-n x" "-N 0" "-c 0" "--mpi=nope" "--wait=x" "--kill-on-bad-exit=x" "--jobid=999999" "--jobid=x" "-p nope" "-w nosuch" "--export" "--nosuch" "-t x" "--exact=x" "--label=x"; do srun $x true; echo "$x $?"; done 2>&1
srun; echo $?; srun /etc/passwd 2> /dev/null; echo $?; srun -D /nonexistent true; echo $?
srun -Q -n2 -o 'o.%t.%n' hostname; ls o.*; srun -Q -n1 -o none -e e.err bash -c 'echo x; echo y >&2'; cat e.err
# what there is, and is not
for x in "-t FOO" "-u nosuch" "-p nopart" "-O nofield" "-o %X" "-j x" "-j 1,x" "-A nope" "-n nope" "-w nope" "-q nope" "-i x" "--nosuch" "-s x" "-L nope" "-R nope"; do squeue -h $x; echo "$x $?"; done 2>&1
squeue -o "%5i|%.5i|%-5i|%0i|%i%j|%|%z|%20"; echo $?; squeue -O "jobid:5,jobid:.5,jobid:0,jobid:x,jobid:" ; echo $?; squeue -O ""; echo $?; squeue -o ""; echo $?
for x in "show job x" "show job 999999" "show node nosuch" "show partition nosuch" "show nosuch" "show hostnames n[1-3,5]" "show hostlist n1,n2,n3" "show res nosuch" "hold 999999" "release 999999" "update jobid=999999 priority=1" "update nosuch=1" "nosuch" "wait_job 999999" "show licenses nosuch" "completing" "write batch_script 999999" "notify 999999 hi" "delete partitionname=nosuch"; do scontrol $x < /dev/null 2>&1 | head -6; echo "$x ${PIPESTATUS[0]}"; done 2>&1
for f in %P %R %N %c %m %t %T %a %D %l %G %p %C %F %f %E %z %X %Y %Z %L %h %g %s %S %v %w %d %r %H %u %U %b %B %A %I %M %V %x %q; do echo "$f:" "$(sinfo -h -o "$f" 2>&1)"; done 2>&1
for x in "-p nope" "-n nope" "-t nope" "-O nofield" "-o %Q" "-S x" "--nosuch" "-i x" "extra" "-r" "-d" "-R" "-s" "-sh" "-N" "-a" "-T" "--noconvert" "-e" "-h"; do sinfo $x 2>&1; echo "$x $?"; done 2>&1
for x in "" "x" "1_x" "1_[1-3" "-s FOO 1" "-u nosuch" "-t FOO" "-n nope" "-p nope" "-q nope" "-A nope" "-w nope" "--nosuch" "999999.0" "999999_3" "-b 999999" "-f 999999" "-Q 999999" "-v 999999" "--me" "-R nope" "--state=RUNNING"; do scancel $x < /dev/null 2>&1; echo "$x $?"; done 2>&1
sorted: sbatch -Q -W -a 3-5:2 -o arr.%a.out --wrap 'env | grep -E "^SLURM_ARRAY|^SLURM_RESTART" | grep -v JOB_ID | sort'; cat arr.*.out
sbatch -Q -W --mem-per-cpu=50 -n2 --ntasks-per-node=1 -N2 -o env2.out --wrap 'env | grep -E "^SLURM_(MEM|NTASKS|NPROCS|TASKS|CPUS|JOB_CPUS|NNODES)" | sort; srun -l env | grep -E " *SLURM_(MEM|NTASKS|NPROCS|TASKS|CPUS|JOB_CPUS|NNODES|STEP_N|DIST)" | sort'; cat env2.out
# names of files
sbatch -Q -H -J nm -o 'a-%5j-%J-%b-%N-%n-%t-%s-%%' -e 'e-%x-%q' -i 'i-%x' --wrap true; scontrol show job $(squeue -h -o %i) | grep Std; squeue -h -O stdout:150 | sed 's/ *$//'
sbatch -Q -H -J nm -o '%%x-%%%x\%x' -i /abs-%x --wrap true; scontrol show job $(squeue -h -o %i) | grep Std
sbatch -Q -W -J nm -o d-%j-%N --wrap true; scontrol show job $(squeue -h -t all -S -i -o %A | head -1) | grep Std | sed 's/d-[0-9]*/d-J/'
sbatch -Q -H -a 4-5 -o 'x%A_%a' --wrap true; scontrol show job $(squeue -h -o %A) | grep Std | sed 's/x[0-9]*_/xJ_/'
sbatch -Q -H -a 4-5 -o %a.out --wrap true; scontrol show job $(squeue -h -o %A)_5 | grep Std
