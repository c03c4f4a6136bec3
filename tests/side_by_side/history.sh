# What sacct says of jobs with every kind of end, which have the same ids on both. With --accounts.
sacctmgr -i add account a1,a2 > /dev/null; sacctmgr -i add user root account=a1,a2 > /dev/null; sacctmgr -i add user nobody account=a2 > /dev/null; sacctmgr -i add qos q1 > /dev/null; sacctmgr -i modify account a1,a2 set qos=normal,q1 > /dev/null
stays: job -J ok -A a1 --comment 'a b' --wrap 'srun -n2 true; srun -n1 -J named sleep 1'; over $J; job -J bad -A a1 --wrap 'srun false; exit 3'; over $J; echo $J
stays: job -J arr -A a1 -a 0-3%1 --wrap 'exit $((SLURM_ARRAY_TASK_ID==2))'; over $J; echo $J
stays: job -J cancelled -A a2 --wrap 'srun sleep 100'; until_state RUNNING; until_step; sleep 1; scancel $J; over $J; job -J stepgone -A a1 --wrap 'srun sleep 100; srun true'; until_state RUNNING; until_step; sleep 1; scancel $J.0; over $J; echo $J
stays: job -J suspended -A a1 --wrap 'sleep 3'; until_state RUNNING; scontrol suspend $J; sleep 1; scontrol resume $J; over $J; J=$(sbatch --parsable -o /dev/null -A a1 -J het -n1 --mem=100 : -A a1 -n2 --mem=50 <<< $'#!/bin/bash\nsleep 1'); over $J $((J + 1)); echo $J
stays: srun --mem=100 -A a1 -J direct -n2 true; srun --mem=100 -A a1 -J sfail false 2> /dev/null; srun --mem=100 -A a1 -J ssig bash -c 'kill -9 $$' 2> /dev/null; salloc -Q --mem=100 -A a1 -J alloc -n2 bash -c 'srun true; exit 4'
stays: job -J canpend -A a1 -H --wrap true; scancel $J; job -J signalled -A a1 --wrap 'kill -9 $$'; over $J; S=$J; job -J depended -A a1 -d afternotok:$S --wrap true; over $J; job -J features -A a2 -q q1 -n3 -c2 --mem-per-cpu=10 --mem=0 --wrap true; over $J; echo $J
stays: job -J multi -A a1 -N3 -n5 --wrap 'srun -N3 -n5 true; srun -N1 -n1 false; srun -N2 -n2 sh -c "exit \$SLURM_PROCID"'; over $J; job -J other -A a2 --uid=nobody --gid=nogroup -D / -p short -t 5 --wrap true; over $J; echo $J
stays: job -J held -A a1 -H -a 0-7%4 --wrap true; job -J heldone -A a1 -H -t 10 --wckey=k --wrap true; sleep 2.5
# Lines
stays: sacct | spans
stays: sacct -X | spans
stays: sacct -b
stays: sacct -n -o jobid%20,jobname,partition,alloccpus,state%30,exitcode
stays: sacct -X -n -o jobid%20,jobname,state%30,exitcode,ntasks,nnodes
stays: sacct -l -P | head -1
stays: sacct -P -o jobid,jobidraw,jobname,state,exitcode,derivedexitcode
stays: sacct -P -o jobid,ncpus,nnodes,ntasks,reqcpus,reqnodes,alloccpus,allocnodes,alloctres,reqtres,reqmem
stays: sacct -P -o jobid,user,uid,group,gid,account,cluster,partition,qos,wckey
stays: sacct -P -o jobid,submit,eligible,start,end,elapsed -j 1,2 | spans
stays: sacct -P -o jobid,timelimit,timelimitraw -X
stays: sacct -P -o jobid,comment,reason,layout,reservation,mcslabel,container -j 1,2,3
stays: sacct -P -o jobid,submitline -X -j 1,2,7
stays: sacct -P -o jobid,nodelist -j 1,2
stays: sacct -o jobid%-20,jobname%4,state%5,exitcode%10,user%3 -j 1
stays: sacct -p -j 1 -o jobid,state,exitcode
stays: sacct -P --delimiter='^|^' -j 1 -o jobid,state
stays: sacct -n -P -j 1 -o jobid,foo
stays: SACCT_FORMAT=jobid,user%4 sacct -X -j 1
# Which
stays: sacct -j 1.0 -P -o jobid,jobname,state
stays: sacct -j 1.batch -P -o jobid,jobname,state
stays: sacct -j 1.batch,2 -P -o jobid,jobname,state
stays: sacct -j 3 -P -o jobid,state
stays: sacct -j 3_2 -P -o jobid,state
stays: sacct -j 3_2.batch -P -o jobid,state
stays: sacct -j 3_1,3_3 -X -P -o jobid,state
stays: sacct -j 99999
stays: sacct -j abc
stays: sacct -j 1.abc
stays: sacct -P -n -o jobid,jobname,state,exitcode --name het
stays: sacct -P -n -o jobid,jobname,state,exitcode,derivedexitcode --name sfail,ssig,alloc,signalled,multi
stays: sacct --name ok,bad -X -P -o jobid,jobname
stays: sacct -A a2 -X -P -o jobid,jobname,account
stays: sacct -A nope -X
stays: sacct -u nobody -X -P -o jobid,jobname,user,group,partition
stays: sacct -u root -X -n -P -o jobid,user
stays: sacct -u nosuchuser
stays: sacct -r short -X -P -o jobid,partition
stays: sacct -q q1 -X -P -o jobid,qos
stays: sacct -N nxx -X
stays: sacct -W k -X -P -o jobid,wckey
stays: sacct -i 3 -X -n -P -o jobid,nnodes
stays: sacct -i 2-3 -X -n -P -o jobid,nnodes
stays: sacct -I 5-8 -X -n -P -o jobid,ncpus
stays: sacct -k 5 -X -n -P -o jobid,timelimit
stays: sacct -k 1 -K 20 -X -n -P -o jobid,timelimit
stays: sacct -g root -X -j 1 -P -o jobid,group
stays: sacct -M bench -X -j 1 -P -o jobid
# States and times
stays: sacct -P -n -o jobid,state -s CA -X -S now-1hour -E now
stays: sacct -P -n -o jobid,state -s F -X -S now-1hour -E now
stays: sacct -P -n -o jobid,state -s F,TO -S 2020-01-01 -E now -X
stays: sacct -P -n -o jobid,state -s CD -X -S 2020-01-01 -E now
stays: sacct -P -n -o jobid,state -s PD -X -S now -E now
stays: sacct -P -n -o jobid,state -s S -X -S now-1hour -E now
stays: sacct -P -n -o jobid,state -s NF,OOM,BF,DL,PR -X -S now-1hour -E now
stays: sacct -s XX
stays: sacct -s CD -j 1 -X -P -o jobid,state
stays: sacct -S badtime
stays: sacct -S now -E 2020-01-01
stays: sacct -S 2020-01-01 -E 2020-01-02 -X
stays: sacct -S now-1hour -X -n -P -o jobid
stays: sacct -E now-1hour -X
# Units and all the rest
stays: sacct --units=K -j 1 -P -o jobid,reqmem,reqtres
stays: sacct --units=G -j 1 -P -o jobid,reqmem,reqtres
stays: sacct --units=Q -j 1
stays: sacct --noconvert -j 1 -P -o jobid,reqmem,reqtres
stays: sacct --helpformat
stays: sacct -e
stays: sacct --foo
stays: sacct extra args
stays: sacct -F COMPLETED -X
stays: sacct -j 1 -o
stays: sacct --name het --whole-hetjob=yes -X -P -o jobid
stays: sacct -j 1 --whole-hetjob=maybe
stays: sacct -B -j 1 | head -3
stays: as 65534 sacct -X -n -P -o jobid,user
stays: as 65534 sacct -a -X -n -P -o jobid,user -j 1
stays: sacct -j 1 --json | python3 -c 'import json,sys; d=json.load(sys.stdin); j=d["jobs"][0]; print(sorted(d), sorted(j), sorted(j["steps"][0]))'
sacct -o all -P -j 1 -X | head -1
