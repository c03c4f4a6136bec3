# Every sort key of squeue, sinfo and sprio, both ways, and every column of theirs on a motley queue. With --accounts.
sacctmgr -i add account a1,a2 > /dev/null; sacctmgr -i add user root account=a1,a2 > /dev/null; sacctmgr -i add user daemon account=a1 > /dev/null; sacctmgr -i add user nobody account=a2 > /dev/null; sacctmgr -i add qos q1 priority=10 > /dev/null; sacctmgr -i add qos q2 priority=4 > /dev/null; sacctmgr -i modify account a1,a2 set qos=normal,q1,q2 > /dev/null
scontrol create partitionname=late nodes=n[3-8] maxtime=2:00:00 prioritytier=3 maxnodes=4; scontrol create partitionname=closed nodes=n[1-2] state=down defaulttime=10 maxtime=30 rootonly=yes oversubscribe=exclusive; scontrol create partitionname=inert nodes=n5 state=inactive; scontrol create partitionname=early nodes=n1,n8 maxtime=1:00:00 state=drain priorityjobfactor=7 minnodes=2
scontrol update nodename=n[3-6] availablefeatures=fast,slow; scontrol update nodename=n3 activefeatures=fast; scontrol create reservation reservationname=r1 starttime=now duration=30 nodes=n3,n8 users=root,daemon flags=ignore_jobs
for n in 1 2 3 4 5 6 7 8; do scontrol update nodename=n$n weight=$(((n * 5) % 8 + 1)); done
weighed
weighed
weighed
# squeue
stays: motley
stays: squeue -S i -o '%i %j %T %r %P %N'
stays: orders squeue %j:%K $(letters | grep -v '[MV]')
stays: orders squeue %j:%K $(letters - | grep -v '[MV]')
stays: orders 'squeue -r' %j:%K $(letters | grep -v '[MV]')
stays: orders squeue %j:%K P,t,-p t,-l -t,i u,-l a,j D,C -C,D U,g,-i P,-Q,j #P,i 'P i' l,t 'u,-j' +i -u+i i,u
stays: orders 'squeue -P' %P:%j:%K i P,i p -p P,-p
stays: orders 'squeue --start' %j:%K S -S i
stays: squeue -h -o '%j:%K'; squeue -h -l -o %j
stays: orders 'squeue -s' %j:%P $(letters)
stays: for l in $(letters); do squeue -S i -o "[%.9$l][%9$l][%$l][%3$l]x" | sed "s/^/$l /"; done | grep -v '^[MSeVLZ] '
stays: for l in S e V; do squeue -S i -o "[%.3$l]" | sed "s/^/$l /"; done
stays: squeue -S i -O jobid:6,jobarrayid:12,arrayjobid:4,arraytaskid:14,name:9,state:11,statecompact:3,reason:24,reasonlist:26
stays: squeue -S i -O jobid:6,numnodes:6,numcpus:6,numtasks:6,mincpus:9,minmemory:11,mintmpdisk:13,maxcpus:9,maxnodes:10,cpus-per-task:14,timelimit:11,mintime:9
stays: squeue -S i -O jobid:6,hetjobid:11,hetjobidset:15,hetjoboffset:15,dependency:26,reservation:12,feature:9,prefer:7,licenses:9,contiguous:11,oversubscribe:15,reqnodes:10,nodelist:10,schednodes:11
stays: squeue -S i -O jobid:6,username:9,userid:7,groupname:9,groupid:7,account:9,qos:7,wckey:6,comment:8,nice:6,partition:12,batchflag:11,batchhost:10,requeue:8,restartcnt:14,exit_code:10,derivedec:11
stays: squeue -S i -O jobid:6,sockets:17,cores:17,threads:17,sct:8,ntpernode:16,ntpercore:16,ntpersocket:18,ntperboard:17,sperboard:18,boardspernode:16,corespec:10,delayboot:11,network:8,profile:8,reboot:7
stays: squeue -S i -O jobid:6,tres-alloc:60,tres-per-job:13,tres-per-node:14,tres-per-socket:16,tres-per-task:14,cpus-per-tres:14,mem-per-tres:13,tres-bind:10,tres-freq:10
stays: squeue -S i -O jobid:6,stdin:12,stdout:12,stderr:12,command:.14,workdir:.1,origin:7,originraw:11,siblingsactive:16,siblingsviable:16,mcslabel:9,burstbuffer:13,burstbufferstate:19,clusterfeature:17,container:10,admin_comment:14,system_comment:15,wait4switch:12,reqswitch:11,cluster:8
stays: squeue -S i -O 'jobid:.3,name:.2|,state:.20suffix,partition:,username: x,account:4:5,qos:5,jobid'
stays: squeue -h -S i -t all -o '%j %T %r' ; squeue -h -S i -t PD -o %j; squeue -h -S i -t S -o '%j %t'; squeue -h -S i -p short -o '%j %P'; squeue -h -S i -A a2 -o '%j'; squeue -h -S i -q q1,q2 -o '%j'; squeue -h -S i -w n4,n7 -o '%j'; squeue -h -S i -R r1 -o %j; squeue -h -S i -n het,kept -o %i:%j
stays: for j in $(squeue -h -S i -o %A); do scontrol -d show job $j | sed -E "s#DIR/work-orders-[0-9]*#WORK#; s/Priority=[0-9]+/Priority=P/; s/AllocNode:Sid=\S+/AllocNode/; s/(RunTime|SecsPreSuspend)=\S+/\1=R/"; done
for j in $(squeue -h -S i -o %A); do scontrol -o show job $j | wc -l; done
batch -A a1; until_state RUNNING; srun --jobid=$J -n1 -J inner sleep 20 & sleep 2; squeue -s -h -o '%j %A %l %P %U %u'; squeue -s -h -O stepname:8,numtasks:6,numcpus:9,stepstate:10,timelimit:10,partition:8,username:6,userid:4; scancel $J; wait 2> /dev/null
# What was requeued, suspended or is to end
batch -J again -A a1 -t 50; until_state RUNNING; scontrol requeuehold $J; until_state PENDING; squeue -h -j $J -o '%T %r %R %M %N %B %D %C'; scontrol show job $J | grep -oE '(Restarts|Requeue|JobState|Reason|BatchHost|NumNodes|NumCPUs|NodeList)=\S*'
batch -J still -A a1 -t 50; until_state RUNNING; scontrol suspend $J; squeue -h -j $J -o '%T %t %r %R %N %B %D %C %Q'; scontrol show job $J | grep -oE '(JobState|Reason|Priority|NodeList|SuspendTime)=\S*' | sed 's/SuspendTime=20.*/SuspendTime=T/'
# sinfo: where two lines tie, a Slurm's threads decide which comes first
stays: motley; scontrol resume $(squeue -h -n stopped -o %A)
stays: scontrol update nodename=n2 state=drain reason=second; sleep 1.1; scontrol update nodename=n6 state=down reason=first; sinfo -R | sed 's/ *$//'; sinfo -Rl | tail -n +2 | sed 's/ *$//'
stays: orders sinfo '%P/%t/%N' $(letters '' ,#P,N | grep -v '^[enoO]')
stays: orders sinfo '%P/%t/%N' $(letters - ,#P,N | grep -v '^-[enoO]')
stays: orders sinfo '%P/%t/%N' '#P,N' '-#P,N' '#P,-t,N' '-t,#P,N' 'P,N' '-N,P' 'a,P,N' '-l,P,-N' 'D,N,#P' '-D,-N,-#P'
stays: orders 'sinfo -N' '%N/%P' $(letters '' ,#P,N | grep -v '^[enoO]') 'N,-P' '-w,P' 'P,-N' '#N,#P'
stays: orders sinfo '%E/%H/%N' E,N -E,N H,N -H,N u,N -u,N U,N -U,N
stays: orders sinfo '%f/%b/%N' f,N -f,N b,N -b,N
stays: orders sinfo '%w/%N/%P' w,P -w,P w,-P
stays: orders sinfo '%R/%a/%l/%s/%r/%h/%g/%p/%I/%M/%S' $(letters '' ,#P | grep '[alsrhgpIMSLB]') $(letters - ,#P | grep '[alsrhgpIMSLB]')
sorted: stays: for l in $(letters); do sinfo -o "[%.9$l][%9$l][%$l][%3$l]x" 2> /dev/null | sed -E "s/^/$l /; s/20..-..-..T..:..:../TIME/g; s/20..-..-../DAY/g"; done | grep -v '^[Oenovis] '
stays: sinfo -O partition,partitionname:9,available:6,time:.11,defaulttime:12,size:11,root:5,oversubscribe:10,groups:7,prioritytier:10,priorityjobfactor:16,maxcpuspernode:18,preemptmode:13,allocnodes:11,cluster:8,nodes:6,statecompact:7,statelong:10,statecomplete:20,nodelist:20
stays: sinfo -N -O nodelist:9,cpus:5,cpusstate:14,memory:8,allocmem:9,disk:9,weight:7,sockets:8,cores:6,threads:8,socketcorethread:8,features:15,features_act:16,gres:7,gresused:10,reason:9,user:9,userlong:9,comment:8,extra:6,partition:.9
stays: sinfo -N -l -S N,#P | tail -n +2 | sed 's/ *$//'; sinfo -l | tail -n +2 | sed 's/ *$//'; sinfo -s; sinfo -d; sinfo -r; sinfo -e; sinfo -t idle,mix; sinfo -t drain; sinfo -p late,short; sinfo -n n1,n3 -N; sinfo -a
scontrol update nodename=n2,n6 state=resume; sinfo -h -t idle -o %N
