# sbatch
sbatch --wrap hostname | sed 's/[0-9]*$/N/'
sbatch --parsable --wrap hostname | sed 's/[0-9]*/N/'
echo hostname | sbatch
printf '#!/bin/sh\necho $0 $# $1 $SLURM_JOB_NAME\n' > s.sh; sbatch --wait -o o s.sh one two > /dev/null; sed 's/job[0-9]*/jobN/' o
printf '#!/bin/sh\necho in\n' | sbatch --wait -o o > /dev/null; cat o
printf '#!/bin/bash\n#SBATCH -J named -n2 --comment="a b"\n#SBATCH --time=5\necho x\n#SBATCH -J late\n' > s.sh; sbatch -H --parsable s.sh > j; J=$(cat j); squeue -h -j $J -o '%j %C %l %k'
printf '#!/bin/bash\n#SBATCH --nosuch\n' > s.sh; sbatch s.sh
printf '#!/bin/bash\n#SBATCH -n x\n' > s.sh; sbatch s.sh
printf 'echo\n' > s.sh; sbatch s.sh
printf '#!/bin/sh\r\necho\r\n' > s.sh; sbatch s.sh
sbatch nosuch.sh
sbatch --wrap true s.sh
sbatch --test-only --wrap true 2>&1 | sed -E 's/[0-9]+ to start/N to start/; s/at [0-9T:-]+/at T/'
sbatch --wait --wrap 'exit 3' > /dev/null
sbatch --wait --wrap 'kill -9 $$' > /dev/null
sbatch -W -a 1-3 -o /dev/null --wrap 'exit $SLURM_ARRAY_TASK_ID' > /dev/null
sbatch -o 'o-%j-%x-%u-%N-%n-%t-%%' -J nm --wait --wrap true > out; ls | sed 's/-[0-9]\{1,\}-nm/-J-nm/' | grep '^o-'
sbatch -a 3 -o 'o-%A_%a-%4a' --wait --wrap true > /dev/null; ls | sed -E 's/o-[0-9]+_/o-A_/' | grep '^o-'
sbatch -o o --open-mode=append --wait --wrap 'echo a' > /dev/null; sbatch -o o --open-mode=append --wait --wrap 'echo b' > /dev/null; cat o
sbatch -D /tmp -o /dev/null --wait --wrap '[ "$PWD" = /tmp ]' > /dev/null; echo $?
sbatch --export=A=1,B -o o --wait --wrap 'env | grep -E "^(A|B|HOME|PATH)=" | sort | sed s/=.*//' > /dev/null; cat o
A=2 B=3 sbatch --export=B,A=1 -o o --wait --wrap 'echo $A $B' > /dev/null; cat o
sbatch --export=NONE -o o --wait --wrap 'env | grep -c ^SLURM_' > /dev/null; [ $(cat o) -gt 10 ] && echo many
sbatch -n2 -N2 -o o --wait --wrap 'srun -l hostname | wc -l; echo $SLURM_NTASKS $SLURM_NNODES $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE' > /dev/null; cat o
sbatch -o o --wait --wrap 'env | grep -E ^SLURM_ | sed -E "s/=.*//" | sort' > /dev/null; cat o
sbatch -a 2-8:3%2 -o o --wait --wrap 'env | grep -E ^SLURM_ARRAY | grep -v JOB_ID | sort' > /dev/null; cat o
sbatch --deadline=now+1minute -t 5 --wrap true
sbatch --begin=nonsense --wrap true
sbatch --begin=now+1hour --parsable --wrap true > j; J=$(cat j); squeue -h -j $J -o '%T %r'
sbatch -d afterok:99999999 --parsable -H --wrap true > j; squeue -h -j $(cat j) -o '%E|%T|%r'
sbatch -d nonsense:3 --wrap true
sbatch -d afterok --wrap true
sbatch -p nosuch --wrap true
sbatch -A nosuch -H --parsable --wrap true > j; squeue -h -j $(cat j) -o %a
sbatch -n 65 --wrap true
sbatch -N 9 --wrap true
sbatch --mem=999G --wrap true
sbatch -c 9 --wrap true
sbatch -w n99 --wrap true
sbatch -C nosuch --wrap true
sbatch --gres=gpu:1 --wrap true
sbatch -L nosuch --wrap true
sbatch --reservation=nosuch --wrap true
sbatch -q nosuch -H --parsable --wrap true | sed 's/[0-9]*/N/'
sbatch -t 0 -H --parsable --wrap true > j; squeue -h -j $(cat j) -o %l
sbatch -t 1-2:3:4 -H --parsable --wrap true > j; squeue -h -j $(cat j) -o %l
sbatch -t nonsense --wrap true
sbatch --time-min=5 -t 3 --wrap true
sbatch -a 1-3,x --wrap true
sbatch -a '' --wrap true
sbatch -a 5-1 --wrap true
sbatch --mail-type=nosuch --wrap true
sbatch --signal=nosuch --wrap true
sbatch --nice=abc --wrap true
sbatch --hint=nosuch --wrap true
sbatch --exclusive=nosuch --wrap true
sbatch --uid=nosuch --wrap true
# squeue
batch -H -J held -n2; squeue -j $J | alike
batch -H -J held -n2; squeue -l -j $J | tail -n +2 | alike
batch -J runs; until_state RUNNING; squeue -j $J | alike
batch -J runs -a 1-4%2; sleep 1; squeue -h -j $J -r -S i -o '%K %T %r'
batch -H -a 1-5,7,10-20:2%4; squeue -h -j $J -o '%i %K' | alike
batch -H -a 1-3; squeue -h -r -j $J -o %i | alike
batch -H; squeue -h -j $J -o '%a|%A|%B|%c|%C|%D|%f|%G|%h|%H|%I|%J|%k|%l|%m|%n|%N|%o|%P|%q|%r|%R|%t|%T|%u|%U|%v|%x|%X|%Y|%z|%Z' | alike | sed "s#$PWD#DIR#"
batch -H; squeue -h -j $J -O 'JobID:8,Partition:6,Name:.8,UserName:8,State:10,TimeLimit:12,NumNodes:4,ReasonList:20,tres-alloc:30' | alike
batch -H; squeue -j $J -o '%.10i|%.5D|%-8u|%12T|' | alike
batch -H; squeue -j $J --format=%5i%3t%%x | alike
squeue -j 99999999
squeue -j x
squeue -t nosuch
squeue -u nosuchuser
squeue -o '%!'
squeue -O nosuch
squeue -S nosuch
squeue -p nosuch
squeue -w nosuch
squeue --nosuch
squeue -h -t PD,R -u root
squeue -h --me -o %i
squeue -A nosuch -h
squeue -i x
squeue extra
batch -J runs; until_state RUNNING; squeue -s -j $J -h -o '%j %P %u' | sort
batch -H --nice=50; squeue -h -j $J -o '%y'
batch -H -p debug --comment 'with spaces'; squeue -h -j $J -o '[%k] [%.6k] [%30k]'
J=1; batch -d singleton -J s1 -H; squeue -h -j $J -o '%E'
batch -H; A=$J; batch -H -d afterok:$A; squeue -h -j $J -o '%E %r' | sed "s/$A/A/"
batch -H; A=$J; batch -d afterany:$A; squeue -h -j $J -o '%E %r %T' | sed "s/$A/A/"
batch -H; squeue -j $J --json | kinds jobs
batch; until_state RUNNING; squeue --json | kinds jobs
# scancel
scancel 99999999
scancel x
scancel
scancel -t nosuch
scancel -u nosuchuser
scancel -n nosuchname
scancel -v 99999999
scancel -s nosuch 1
batch -H; scancel $J; squeue -h -t all -j $J -o %T
batch; until_state RUNNING; scancel $J; until_state CANCELLED; squeue -h -t all -j $J -o '%T %r'
batch; until_state RUNNING; scancel -v $J 2>&1 | alike
batch -a 1-4 -H; scancel ${J}_[2-3]; squeue -h -r -j $J -o '%K %T' | sort
batch -a 1-4 -H; scancel ${J}_9; squeue -h -r -j $J -o '%K %T' | sort
batch -H; scancel -t RUNNING $J; squeue -h -j $J -o %T
batch; until_state RUNNING; scancel -s KILL $J; sleep 1; squeue -h -t all -j $J -o %T
batch; until_state RUNNING; scancel $J.77 2>&1 | alike
batch; until_state RUNNING; scancel -b -s USR1 $J; until_state FAILED; squeue -h -t all -j $J -o '%T'
batch -H -J byname; scancel -n byname; squeue -h -t all -j $J -o %T
batch; scancel -Q $J 99999999; echo $?
# scontrol
scontrol nosuch
scontrol show
scontrol show nosuch
scontrol show job 99999999
scontrol show node nosuch
scontrol show partition nosuch
scontrol show step 99999999.0
scontrol show reservation nosuch
scontrol show res
scontrol show licenses
scontrol show partition | sed 's/\s*$//'
scontrol -o show partition debug | sed 's/\s*$//'
scontrol show hostnames n[1-3,5]
scontrol show hostlist n1,n2,n3,x5
scontrol show hostlistsorted n3,n1,n2
scontrol show hostnames 'n[1-'
scontrol ping | sed 's/at .* is/at H is/'
scontrol --version
scontrol update
scontrol update jobid=99999999 timelimit=5
scontrol update nosuch=1
scontrol update jobid=1 nosuch=1
scontrol update nodename=nosuch state=drain reason=x
scontrol update nodename=n1 state=drain
scontrol update nodename=n1 state=nosuch
scontrol update nodename=n8 state=drain reason='a b'; sinfo -h -n n8 -o '%T %E'; scontrol update nodename=n8 state=resume; sinfo -h -n n8 -o '%T %E'
scontrol update partitionname=debug state=nosuch
scontrol update partitionname=nosuch state=up
scontrol update partitionname=debug state=down; scontrol -o show part debug | grep -o 'State=[A-Z]*'; batch; squeue -h -j $J -o '%T %r'; scontrol update partitionname=debug state=up
scontrol hold 99999999
scontrol release 99999999
scontrol requeue 99999999
scontrol suspend 99999999
scontrol resume 99999999
scontrol hold
scontrol hold x
batch -H; scontrol release $J; until_state RUNNING; squeue -h -j $J -o '%T'
batch -H; scontrol update jobid=$J timelimit=7 nice=3 comment=c1 jobname=nn; squeue -h -j $J -o '%l %k %j'
batch -H; scontrol update jobid=$J timelimit=nonsense
batch -H; scontrol update jobid=$J numnodes=2-3 ; squeue -h -j $J -o '%D'
batch -H; scontrol update jobid=$J partition=nosuch
batch -H; scontrol update jobid=$J dependency=afterok:$J
batch -H; scontrol update jobid=$J features=nosuch
batch -H; scontrol update jobid=$J reqnodelist=nosuch
batch -H; scontrol update jobid=$J priority=500; squeue -h -j $J -o '%Q %r'
batch; until_state RUNNING; scontrol update jobid=$J numtasks=5
batch; until_state RUNNING; scontrol hold $J; squeue -h -j $J -o '%T'
batch; until_state RUNNING; scontrol requeue $J; until_state PENDING; squeue -h -j $J -o '%T'
batch; until_state RUNNING; scontrol requeuehold $J; until_state PENDING; squeue -h -j $J -o '%T %r'
batch; until_state RUNNING; scontrol suspend $J; squeue -h -j $J -o '%T'; scontrol suspend $J; scontrol resume $J; squeue -h -j $J -o %T; scontrol resume $J
batch -H; scontrol suspend $J
batch -H; scontrol show job $J | alike | sed -E "s#$PWD#DIR#g; s/Priority=[0-9]+/Priority=P/; s/AllocNode:Sid=\S+/AllocNode/; s/(SubmitTime|EligibleTime|AccrueTime|StartTime|EndTime|LastSchedEval)=\S+/\1=T/g"
batch -n2 -N2 --mem=10 -t 5; until_state RUNNING; scontrol show job $J | alike | sed -E "s#$PWD#DIR#g; s/Priority=[0-9]+/Priority=P/; s/AllocNode:Sid=\S+/AllocNode/; s/(SubmitTime|EligibleTime|AccrueTime|StartTime|EndTime|LastSchedEval)=\S+/\1=T/g; s/RunTime=\S+/RunTime=R/"
batch -n3 -N2; until_state RUNNING; scontrol -d show job $J | grep -E '^ +Nodes=|CPU_IDs'
batch -H -a 1-3%2; scontrol show job $J | grep -E 'ArrayJobId|ArrayTask' | alike
batch; until_state RUNNING; scontrol listpids $J nosuch | head -1
batch; scontrol write batch_script $J -
batch; scontrol write batch_script $J > /dev/null; ls | alike
scontrol write batch_script 99999999
scontrol notify 99999999 hello
scontrol top 99999999
scontrol wait_job 99999999
scontrol errnumstr 2009
scontrol completing
scontrol show aliases | head -2
scontrol -o show node n1 | grep -oE 'NodeName=\S+|CPUAlloc=\S+|CPUTot=\S+|RealMemory=\S+|State=\S+|Partitions=\S+'
scontrol show config | sed -n 's/ *=.*//p' | sort
echo 'show hostnames n[1-2]' | scontrol
printf 'nosuch\nquit\n' | scontrol
scontrol create reservation
scontrol create reservation starttime=now duration=5 nodes=n1 user=nosuchuser
scontrol create reservation reservationname=r1 starttime=now duration=5 nodes=n8 user=root; scontrol -o show res r1 | sed -E 's/(StartTime|EndTime)=\S+/\1=T/g'; scontrol delete reservationname=r1
scontrol delete reservationname=nosuch
scontrol create partitionname=p2 nodes=n1; scontrol -o show partition p2 | sed 's/\s*$//'; scontrol delete partitionname=p2
scontrol delete partitionname=nosuch
scontrol reconfigure
scontrol setdebug info
scontrol schedloglevel 1
# sinfo
sinfo
sinfo -N
sinfo -l | tail -n +2
sinfo -Nl | tail -n +2 | sed -E 's/ +/ /g'
sinfo -s
sinfo -R
sinfo -h -o '%a|%A|%B|%c|%C|%D|%f|%F|%g|%G|%h|%I|%l|%L|%m|%M|%N|%p|%P|%r|%R|%s|%S|%t|%T|%X|%Y|%z|%Z'
sinfo -h -O 'NodeList:12,Available:6,CPUs:5,StateLong:10,PartitionName:8,Memory:8,Time:12'
sinfo -n nosuch
sinfo -p nosuch
sinfo -t nosuch
sinfo -t idle,alloc -h
sinfo -o '%!'
sinfo -O nosuch
sinfo -S nosuch
sinfo --nosuch
sinfo -v 2>&1 | head -3
batch -n8 -w n1; until_state RUNNING; sinfo -h -o '%t %D %N' | sort
batch -n3 -w n1; until_state RUNNING; sinfo -h -o '%T %C' | sort
sinfo --json | kinds nodes
# sprio, sshare, sdiag, sreport, sstat, sattach, sbcast, strigger
sprio
sprio -w
sprio -j 99999999
sprio --nosuch
batch -H; sprio -j $J
sshare --nosuch
sdiag | sed -E 's/[0-9].*//' | head -12
sdiag --nosuch
sdiag -r
sstat
sstat 99999999
sstat -j x
sstat -e
sattach
sattach 99999999.0
sattach x
sbcast
sbcast a b
sbcast nosuch /tmp/x
strigger
strigger --get
strigger --set
strigger --set --node --down
strigger --set --node --down -p /bin/true; strigger --get | tail -n +2 | awk '{print $2, $3, $4, $5, $6}'; strigger --clear --user root --quiet; strigger --get | tail -n +2
strigger --clear --id=999
salloc --nosuch
salloc -n 65 true
salloc -N1 -n2 sh -c 'echo $SLURM_NTASKS; env | grep -c ^SLURM_' 2>&1 | sed -E 's/allocation [0-9]+/allocation N/'
salloc -Q true
salloc -Q false
salloc -Q nosuchprogram
salloc -Q -t 1 -J nm sh -c 'squeue -h -j $SLURM_JOB_ID -o "%j %l %C"'
salloc -Q -N2 srun -l sh -c 'echo $SLURM_NODEID' | sort
salloc --no-shell 2>&1 | sed 's/[0-9]\{1,\}/N/g'
salloc -p nosuch true
salloc -I -N8 --exclusive -Q true
salloc -H --immediate=1 true 2>&1 | sed 's/[0-9]\{2,\}/N/g'
# what the job's programs are told
sbatch --wait -o o -d singleton --wrap 'env | grep DEPENDENCY' > /dev/null; cat o
srun -d singleton env | grep DEPENDENCY
srun --mem-bind=local env | grep MEM_BIND | sort
srun --mem-bind=v,p,sort,map_mem:0,1 env | grep MEM_BIND | sort
sbatch --wait -o o --mem-bind=verbose,sort,rank --wrap 'env | grep MEM_BIND | sort; srun env | grep MEM_BIND | sort' > /dev/null; cat o
salloc -Q --mem-bind=local env | grep MEM_BIND | sort
srun -Q env | grep SRUN_DEBUG; srun -vv env 2> /dev/null | grep SRUN_DEBUG
batch -H --gpus=0; scontrol show job $J | grep TresPer; batch -H --gpus-per-task=0 -n2; scontrol show job $J | grep TresPer
sbatch --wait -o o --gpus=0 -N2 --wrap 'env | grep GPU' > /dev/null; cat o
# steps that others look at
salloc -Q -n2 sh -c 'srun -n2 sh -c "sleep 3; echo \$SLURM_PROCID" > /dev/null & until squeue -h -s -j $SLURM_JOB_ID -o %i | grep -q "\.0"; do sleep .1; done; sattach -l $SLURM_JOB_ID.0 | sort; wait'
salloc -Q -n2 -N2 sh -c 'srun sleep 3 & until squeue -h -s -j $SLURM_JOB_ID -o %i | grep -q "\.0"; do sleep .1; done; sattach --layout $SLURM_JOB_ID.0; sattach --pty --input-filter=0 $SLURM_JOB_ID.0; squeue -s -h -j $SLURM_JOB_ID -o "%j %N %u" | sort; wait'
salloc -Q -N1 sh -c 'echo sent > f; sbcast f $PWD/g; cat g; sbcast f $PWD/g; echo $?; sbcast -f f $PWD/g; echo $?; sbcast nosuch $PWD/h; echo $?' 2>&1 | sed "s#$PWD#DIR#g"
salloc -Q sh -c 'sstat -n $SLURM_JOB_ID.7; echo $?; sstat -n -P -o nosuch $SLURM_JOB_ID; echo $?'
# help goes to standard output and succeeds
for c in sbatch srun salloc squeue sinfo scancel scontrol sacct sprio sshare sdiag sstat sattach sbcast strigger sreport; do $c --help > o 2> e; echo $c $? $(test -s o && echo o) $(test -s e && echo e); done
for c in sbatch srun salloc squeue sinfo scancel scontrol sacct sprio sshare sdiag sstat sattach sbcast strigger sreport; do $c --usage > o 2> e; echo $c $? $(test -s o && echo o) $(test -s e && echo e); done
for c in sbatch srun salloc squeue sinfo scancel scontrol sacct sprio sshare sdiag sstat sattach sbcast strigger sreport sacctmgr; do $c -V; done
for c in sbatch srun salloc squeue sinfo scancel sacct sprio sshare sdiag sstat sattach sbcast strigger sreport sacctmgr; do $c --nosuch > o 2> e; echo $c $?; sed 's/^/  /' e; done
