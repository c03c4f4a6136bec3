# Questions for sacct.py, one a line.
sacct -n -o jobid%20,jobname,partition,alloccpus,state%30,exitcode
sacct -X -n -o jobid%20,jobname,state%30,exitcode,ntasks,nnodes
sacct
sacct -X
sacct -b
sacct -l -P | head -1
sacct -P -o jobid,jobidraw,jobname,state,exitcode,derivedexitcode
sacct -P -o jobid,ncpus,nnodes,ntasks,reqcpus,reqnodes,alloccpus,allocnodes,alloctres,reqtres,reqmem
sacct -P -o jobid,user,uid,group,gid,account,cluster,partition,qos
sacct -P -o jobid,submit,eligible,start,end,elapsed -j 1,2
sacct -P -o jobid,timelimit,timelimitraw,priority -X -j 1,2,3
sacct -P -o jobid,comment,workdir,reason,layout -j 1,2,3,7,8
sacct -P -o jobid,nodelist,consumedenergy,reservation,reservationid,wckey,container,mcslabel -j 1,2
sacct -P -o jobid,submitline -X
sacct -j 1
sacct -j 1.0
sacct -j 1.batch
sacct -j 1.batch,2
sacct -j 3
sacct -j 3_2
sacct -j 3_2.batch
sacct -j 3_1,3_2 -X
sacct -j 7
sacct -j 7_3
sacct -j 99999
sacct -j abc
sacct -j 1.abc
sacct -j 1 -j 2 -X
sacct -D -P -o jobid,jobname,state,exitcode -n --name requeued
sacct -P -o jobid,jobname,state,exitcode -n --name requeued
sacct -D -X -P -o jobid,jobname,state -n
sacct -P -n -o jobid,jobname,state%40 --name cancelled,stepgone,canpend,limit
sacct -P -n -o jobid,jobname,state,exitcode,derivedexitcode --name direct,sfail,ssig,alloc,signalled,notfound,multi
sacct -P -n -o jobid,jobname,state,exitcode --name het
sacct -P -n -o jobid,jobname,state,exitcode,suspended -X --name ok
sacct -P -n -o jobid,state -s CA -X
sacct -P -n -o jobid,state -s F -X
sacct -P -n -o jobid,state -s F,TO -S 2020-01-01 -E now -X
sacct -P -n -o jobid,state -s TO -X
sacct -P -n -o jobid,state -s CD -X -S 2020-01-01 -E now
sacct -P -n -o jobid,state -s PD -X -S now-1hour -E now
sacct -P -n -o jobid,state -s R -X -S now-1hour -E now
sacct -P -n -o jobid,state -s RQ -X -S now-1hour -E now
sacct -P -n -o jobid,state -s S -X -S now-1hour -E now
sacct -P -n -o jobid,state -s NF,OOM,BF,DL,PR -X -S now-1hour -E now
sacct -s XX
sacct -s R -j 1
sacct -s CD -j 1
sacct -S badtime
sacct -S now -E 2020-01-01
sacct -S 2020-01-01 -E 2020-01-02 -X
sacct -S now+1hour -X
sacct -S now-1hour -X -n -P -o jobid
sacct -E now-1hour -X
sacct --name ok -X
sacct -u nosuchuser
sacct -u root -X -n -o jobid,user,uid
sacct -u daemon
sacct -A nope -X
sacct -r debug -X -j 1
sacct -r nope -X
sacct -N nxx -X
sacct -q nope -X
sacct -x foo
sacct -i 2 -X -n -P -o jobid
sacct -i 2-3 -X -n -P -o jobid
sacct -I 2 -X -n -P -o jobid
sacct -k 1 -X -n -P -o jobid
sacct -k 1 -K 2 -X -n -P -o jobid
sacct -W key1 -X
sacct -c -j 1
sacct -f /dev/null
sacct -g 0 -X -j 1
sacct -g root -X -j 1
sacct -L -X -j 1
sacct -M bench -X -j 1
sacct --units=K -j 15 -P -o jobid,reqmem,reqtres
sacct --units=G -j 15 -P -o jobid,reqmem,reqtres
sacct --units=Q -j 15
sacct --noconvert -j 15 -P -o jobid,reqmem,reqtres
sacct -B -j 1
sacct -B
sacct -j 1,2 -n -o jobid%20,state%5,exitcode
sacct -j 1 -o jobid%-20,state%-5,foo
sacct -j 1 -p
sacct -j 1 -P --delimiter='^|^' -o jobid,state
sacct --foo
sacct extra args
sacct --duplicates -X -j 1
sacct -F COMPLETED -X
SACCT_FORMAT=jobid,user%4 sacct -X -j 1
SLURM_TIME_FORMAT=relative sacct -X -j 1 -o jobid,state
sacct --helpformat
sacct -e
sacct --usage
sacct -j 1 -o JobID,State -b
sacct -j 1 -l -X -P | head -1
sacct -j 1 --brief -P
sacct -j 1 -o
sacct -j 1 --format=
sacct --name het --whole-hetjob=yes -X -P -o jobid
sacct -j 1 --whole-hetjob=maybe
su nobody -s /bin/sh -c "PATH=$PATH SLURM_CONF=$SLURM_CONF SPUR_CONF=$SPUR_CONF sacct -X -n -P -o jobid"
su nobody -s /bin/sh -c "PATH=$PATH SLURM_CONF=$SLURM_CONF SPUR_CONF=$SPUR_CONF sacct -a -X -n -P -o jobid,user -j 1"
su nobody -s /bin/sh -c "PATH=$PATH SLURM_CONF=$SLURM_CONF SPUR_CONF=$SPUR_CONF sacct -B -j 1"
sacct -j 1 --json | python3 -c 'import json,sys; d=json.load(sys.stdin); j=d["jobs"][0]; print(sorted(d), sorted(j), sorted(j["steps"][0]))'
sacct -o all -j 1 | head -2
sacct -P -o jobid,layout,submitline
sacct -P -o jobid,consumedenergy,consumedenergyraw,dbindex,qosraw,associd -j 1,2
