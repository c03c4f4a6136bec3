# exit codes
srun true
srun false
srun sh -c 'exit 7'
srun -n3 sh -c 'exit $SLURM_PROCID'
srun -n4 -N2 sh -c 'exit $((SLURM_PROCID % 3))'
srun sh -c 'kill -9 $$'
srun sh -c 'kill -TERM $$'
srun -n2 sh -c 'kill -SEGV $$'
srun -n3 sh -c '[ $SLURM_PROCID = 1 ] && kill -USR1 $$; exit 0'
sorted: srun nosuchprogram
srun -n2 nosuchprogram
sorted: srun /etc/passwd
srun /etc
sorted: srun ./nosuch/file
srun
srun --nosuchoption true
srun -n0 true
srun -n x true
srun -N 0 true
srun -N 9 true
srun -N 2-1 true
srun -n 100000 true
srun -c 9 true
srun -p nosuch true
srun -w nosuch true
srun -w n1 -x n1 true
srun -t nonsense true
srun --mem=1T true
srun -C nosuch true
srun --gres=gpu:1 true
srun -d afterok:99999 true
srun --jobid=99999 true
srun --mpi=nosuch true
srun --mpi=list
srun --cpu-bind=nosuch true
srun -m nosuch true
srun --multi-prog true
srun --immediate=x true
srun -I -N1 true
srun -K1 -n2 sh -c '[ $SLURM_PROCID = 0 ] && exit 3; sleep 20'
srun -K -n2 sh -c '[ $SLURM_PROCID = 0 ] && exit 3; sleep 20'
sorted: srun -W1 -n2 sh -c '[ $SLURM_PROCID = 0 ] && exit 0; sleep 20'
srun --quiet -n2 sh -c 'exit 5'
srun -t 0:01 -n1 sleep 100
# streams
srun -l -n3 -N1 sh -c 'sleep 0.$SLURM_PROCID; echo task $SLURM_PROCID'
srun -l -n12 -N1 -O true
sorted: srun -l -n12 -N1 -O echo x
srun -n2 -l sh -c 'sleep 0.$SLURM_PROCID; echo err >&2'
srun -n1 printf 'no newline'
srun -n2 -l -N1 sh -c 'sleep 0.$SLURM_PROCID; printf part; sleep 0.3; printf "ial\n"'
echo hello | srun cat
echo hello | srun -n2 -l -N1 sh -c 'sleep 0.$SLURM_PROCID; cat'
echo hello | srun -n2 -i 1 sh -c 'sleep 0.$SLURM_PROCID; echo $SLURM_PROCID: $(cat)'
echo hello | srun -n2 -i none sh -c 'sleep 0.$SLURM_PROCID; echo $SLURM_PROCID: $(cat)'
srun -n2 -o out.%t sh -c 'echo $SLURM_PROCID'; cat out.0 out.1
srun -n2 -o out.%t.%N sh -c 'echo $SLURM_PROCID'; ls
srun -n2 -N2 -o out.%n-%s sh -c 'echo $SLURM_PROCID'; ls
srun -n2 -o out.%2t -e err.%t sh -c 'echo a; echo b >&2'; ls; cat out.00 err.1
srun -n2 -o none -e one sh -c 'echo a; echo b >&2'; ls; cat one
srun -n2 -o 1 sh -c 'echo $SLURM_PROCID'
srun -o /nosuch/dir/file echo x
srun -o /nosuch/dir/%t echo x
srun -i /nosuch/file cat
srun --open-mode=append -o f echo a; srun --open-mode=append -o f echo b; cat f
srun -u sh -c 'printf a; sleep 0.2; printf b; echo'
srun sh -c 'echo out; exec >&-; exit 2'
srun -n1 sh -c 'yes | head -c 3000000' | wc -c
srun -n4 sh -c 'yes | head -c 300000' | wc -c

# multi-prog
printf '0 echo zero\n1-2 echo rest %%t %%o\n' > f; sorted=1 srun -n3 -l --multi-prog f | sort
printf '0 echo zero\n' > f; srun -n3 --multi-prog f
printf '0-1 sh -c "exit 3"\n* true\n' > f; srun -n3 --multi-prog f
printf 'nonsense\n' > f; srun -n1 --multi-prog f
srun -n1 --multi-prog nosuchfile
# inside an allocation
salloc -Q -N2 srun hostname -s > /dev/null; echo $?
sorted: salloc -Q -N2 -n4 srun sh -c 'echo $SLURMD_NODENAME $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID'
sorted: salloc -Q -N2 -n4 srun -m cyclic sh -c 'echo $SLURMD_NODENAME $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID'
sorted: salloc -Q -N2 -n6 srun -m plane=2 sh -c 'echo $SLURMD_NODENAME $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID'
salloc -Q -N2 srun -N3 true
salloc -Q -n2 srun -n9 true
salloc -Q -n2 srun -c3 true
salloc -Q -N2 srun -r1 -N1 sh -c 'echo $SLURMD_NODENAME'
salloc -Q -N2 srun -r2 -N1 true
salloc -Q -N2 -w n1,n2 srun -w n2 -N1 sh -c 'echo $SLURMD_NODENAME'
salloc -Q -N1 -w n1 srun -w n2 true
salloc -Q -N2 -w n1,n2 srun -x n1 -N1 sh -c 'echo $SLURMD_NODENAME'
salloc -Q -n1 sh -c 'srun sleep 2 & sleep 0.7; srun --exact -n1 echo after; wait'
salloc -Q -n1 sh -c 'srun --overlap sleep 2 & sleep 0.7; srun --overlap -n1 echo beside; wait'
salloc -Q -n1 sh -c 'srun sleep 3 & sleep 0.7; srun -I1 --exact -n1 echo never; echo $?; wait'
salloc -Q -n2 sh -c 'srun --exact -n1 sleep 1 & srun --exact -n1 echo both; wait'
salloc -Q -n1 srun --mem=500 true

# environment
srun -n2 -N2 sh -c '[ $SLURM_PROCID = 0 ] && env | grep ^SLURM | grep -v -E "(PORT|PID|HOST|IPADDR|UMASK|PRIO|CONF|START|END|TASK_PID|LAUNCH|CLUSTER|JOB_ID|JOBID|STEP_ID|STEPID|SUBMIT_DIR|TOPOLOGY|WORKING|VERSION|SCRIPT)" | sort'
salloc -Q -n3 -N2 -c2 srun sh -c '[ $SLURM_PROCID = 0 ] && env | grep -E "^SLURM_(NTASKS|NPROCS|NNODES|CPUS|TASKS|STEP_N|STEP_T|JOB_N|JOB_CPUS|DIST|MEM|NODELIST|JOB_NODELIST|GTIDS|LOCALID|NODEID)" | sort'
salloc -Q -n4 -N2 --ntasks-per-node=2 srun -n2 sh -c '[ $SLURM_PROCID = 0 ] && env | grep -E "^SLURM_(NTASKS|NPROCS|NNODES|TASKS|STEP_N|STEP_T|JOB_N|JOB_CPUS|DIST|GTIDS)" | sort'
sorted: srun --export=NONE sh -c 'env | grep -c ^FOO'
FOO=1 srun --export=FOO sh -c 'env | grep ^FOO; env | grep -c ^HOME'
FOO=1 srun --export=ALL,BAR=2 sh -c 'echo $FOO $BAR'
FOO=1 srun --export=NIL sh -c 'echo x$FOO'
SLURM_NTASKS=3 srun -l echo x | sort
SLURM_LABELIO=1 srun echo x
SLURM_EXIT_ERROR=9 srun -p nosuch true
SLURM_EXIT_IMMEDIATE=8 srun -I -N9 true
SLURM_DEBUG=1 srun -Q true
srun -D /tmp pwd
srun -D /nosuch pwd
srun -J name sh -c 'echo $SLURM_JOB_NAME'
srun --task-prolog=/nosuch true
srun --epilog=none --prolog=none true
# signals
srun sleep 30 & sleep 1; kill -INT $!; sleep 0.3; kill -INT $!; wait $!; echo $?
srun sleep 30 & sleep 1; kill -TERM $!; wait $!; echo $?
srun --quit-on-interrupt sleep 30 & sleep 1; kill -INT $!; wait $!; echo $?
srun --disable-status sleep 30 & sleep 1; kill -INT $!; wait $!; echo $?
srun -n2 sh -c 'trap "echo got; exit 4" USR1; for i in 1 2 3 4 5 6 7 8; do sleep 0.5; done' & sleep 1.5; kill -USR1 $!; wait $!; echo $?
sorted: srun -J victim sleep 30 & sleep 1; scancel -n victim; wait $!; echo $?
srun -J victim sh -c 'trap "" TERM; sleep 3; exit 6' & sleep 1; scancel -n victim -s TERM; wait $!; echo $?
salloc -Q -n1 sh -c 'srun sleep 30 & sleep 1; scancel $SLURM_JOB_ID.0; wait $!; echo $?'
salloc -Q -n1 sh -c 'srun sleep 30 & sleep 1; scancel -s USR1 $SLURM_JOB_ID.0; wait $!; echo $?'
# sattach, sbcast, sstat
sattach nonsense
sattach 99999.0
sbcast /etc/passwd /tmp/x
sbcast
sstat -j 99999
sstat
salloc -Q -N2 sh -c 'sbcast nosuchfile /tmp/spur-beside-x'
salloc -Q -N2 sh -c 'sbcast -f /etc/hostname '$PWD'/copied && cat '$PWD'/copied | wc -l; sbcast /etc/hostname '$PWD'/copied'
# names of programs
srun sh -c 'echo $0'
printf '#!/bin/sh\necho $0\n' > x; chmod +x x; srun ./x; srun x
mkdir d; printf '#!/bin/sh\necho $0\n' > d/x; chmod +x d/x; srun d/x; srun ../${PWD##*/}/d/x
sorted: printf 'echo no interpreter\n' > x; chmod +x x; srun ./x
printf '#!/nosuch/interpreter\n' > x; chmod +x x; srun ./x
# a program brought to the nodes
printf '#!/bin/bash\necho ${0##*/} "$@"\n' > p; chmod 755 p; srun -n1 --bcast=mine ./p a; ls
printf '#!/bin/bash\necho ${0##*/} "$@"\n' > p; chmod 755 p; srun -n1 --bcast ./p a | sed s/_[0-9]*/_J/; ls | sed s/_[0-9]*/_J/
printf '#!/bin/bash\necho ${0##*/} "$@"\n' > p; chmod 755 p; mkdir d; srun -n1 --bcast=d/ ./p a | sed s/_[0-9]*/_J/; ls d | sed s/_[0-9]*/_J/
srun -n1 --bcast=/nosuch/x true
srun -n1 --bcast nosuch
srun -n1 --bcast=x/ true
srun -n1 --bcast=$PWD/x --send-libs=maybe true
srun -n1 --bcast=$PWD/x --send-libs --bcast-exclude=lib true
srun -n1 --bcast=$PWD/x --send-libs --bcast-exclude=NONE bash -c 'echo $LD_LIBRARY_PATH; ls $PWD/x_libs'; ls
srun -n1 --bcast=$PWD/x --send-libs bash -c 'echo $LD_LIBRARY_PATH'; ls
srun -n1 --send-libs true
srun -n1 --bcast-exclude=/lib true
srun -n1 --bcast=$PWD/x --compress true
srun -n1 --bcast=$PWD/x --compress=zip true
salloc -Q -N1 sbcast --send-libs --exclude=NONE /bin/true $PWD/y; ls; ls y_libs
salloc -Q -N1 sbcast --send-libs=x /bin/true $PWD/y
salloc -Q -N1 sbcast --exclude=lib /bin/true $PWD/y
salloc -Q -N1 sbcast /bin/true /nosuch/y
srun -n1 --bcast=$PWD/x --multi-prog /dev/null
srun --mpi=pmix -n2 bash -c 'env | grep -c ^PMIX_RANK='
