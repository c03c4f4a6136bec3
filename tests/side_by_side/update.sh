# Nodes: every key, good and bad.
scontrol update nodename=n1 state=drain
scontrol update nodename=n1 state=drain reason=broken; scontrol show node n1 | grep -E 'State=|Reason=' | sed 's/\[.*//'; scontrol update nodename=n1 state=resume; scontrol show node n1 | grep -c Reason
scontrol update nodename=n1 state=resume
scontrol update nodename=n1 state=undrain
scontrol update nodename=n1 state=down reason=x; sinfo -h -n n1 -o %T; scontrol update nodename=n1 state=idle; sinfo -h -n n1 -o %T
scontrol update nodename=n1 state=fail reason=x; sinfo -h -n n1 -o %T; scontrol update nodename=n1 state=resume
scontrol update nodename=n1 state=nosuch
scontrol update nodename=n1 state=
scontrol update nodename=n1 state=alloc
scontrol update nodename=nosuch state=resume
scontrol update nodename=n[1-2] state=drain reason='two words'; sinfo -h -R -o '%E|%N'; scontrol update nodename=n[1-2] state=resume
scontrol update nodename=n1 weight=7; scontrol show node n1 | grep -o 'Weight=[0-9]*'; scontrol update nodename=n1 weight=1
scontrol update nodename=n1 weight=x
scontrol update nodename=n1 weight=-1
scontrol update nodename=n1 weight=99999999999
scontrol update nodename=n1 comment='some words'; scontrol show node n1 | grep Comment; scontrol update nodename=n1 comment=; scontrol show node n1 | grep -c Comment
scontrol update nodename=n1 extra='more words'; scontrol show node n1 | grep Extra; scontrol update nodename=n1 extra=; scontrol show node n1 | grep -c Extra
scontrol update nodename=n1 availablefeatures=a,b; scontrol show node n1 | grep -i features; scontrol update nodename=n1 activefeatures=a; scontrol show node n1 | grep -i features; scontrol update nodename=n1 availablefeatures= activefeatures=; scontrol show node n1 | grep -i features
scontrol update nodename=n1 activefeatures=zzz; scontrol show node n1 | grep -i features; scontrol update nodename=n1 availablefeatures= activefeatures=
scontrol update nodename=n1 features=q; scontrol show node n1 | grep -i features; scontrol update nodename=n1 features=; scontrol show node n1 | grep -i features
scontrol update nodename=n1 gres=gpu:2
scontrol update nodename=n1 gres=
scontrol update nodename=n1 gres=nosuch:1
scontrol update nodename=n1 cpubind=core; scontrol show node n1 | grep -c CpuBind
scontrol update nodename=n1 cpubind=nosuch
scontrol update nodename=n1 nodeaddr=127.0.0.1
scontrol update nodename=n1 nodehostname=n1
scontrol update nodename=n1 reason=why; scontrol show node n1 | grep -c Reason=why; scontrol update nodename=n1 reason=; scontrol show node n1 | grep -c Reason
scontrol update nodename=n1 resumeafter=60; scontrol show node n1 | grep -c ResumeAfter
scontrol update nodename=n1 resumeafter=x
scontrol update nodename=n1 cpus=5
scontrol update nodename=n1 realmemory=5
scontrol update nodename=n1 foo=bar
scontrol update nodename=n1 state
scontrol update nodename=n1
scontrol update nodename= state=resume
scontrol update nodename=n1 state=power_down
scontrol update nodename=n1 state=power_up
scontrol update nodename=n1 state=cancel_reboot
scontrol update nodename=ALL weight=1
scontrol update NodeName=n1 Weight=2 State=drain Reason=both; scontrol show node n1 | grep -oE 'Weight=[0-9]+|State=[A-Z+]+|Reason=[a-z]+'; scontrol update node=n1 weight=1 state=resume
# Partitions.
scontrol create partitionname=p1 nodes=n1; scontrol show partition p1; scontrol delete partitionname=p1
scontrol create partition=p1 nodes=n[1-2]; for w in alloc=1 maxtime=10 defaulttime=5 maxtime=1-0 maxtime=unlimited defaulttime=none maxnodes=3 maxnodes=unlimited minnodes=2 minnodes=0 hidden=yes hidden=no rootonly=yes rootonly=no reqresv=yes reqresv=no disablerootjobs=yes disablerootjobs=no exclusiveuser=yes exclusiveuser=no lln=yes lln=no state=down state=drain state=inactive state=up; do echo "$w"; scontrol update partition=p1 $w; done; scontrol show partition p1; scontrol delete partition=p1
scontrol create partition=p1 nodes=n1; for w in priorityjobfactor=5 prioritytier=7 priority=3 gracetime=60 overtimelimit=5 overtimelimit=unlimited overtimelimit=none maxcpuspernode=2 maxcpuspernode=unlimited maxmempernode=100 maxmempercpu=50 defmempernode=10 defmempercpu=5 oversubscribe=force oversubscribe=force:2 oversubscribe=yes:3 oversubscribe=exclusive oversubscribe=no shared=no preemptmode=requeue preemptmode=off preemptmode=cancel preemptmode=suspend; do echo "$w"; scontrol update partition=p1 $w; scontrol show partition p1 | grep -oiE 'Priority[A-Za-z]*=[0-9]*|GraceTime=[0-9]*|OverTimeLimit=[A-Z0-9]*|MaxCPUsPerNode=[A-Z0-9]*|(Max|Def)MemPer[A-Za-z]*=[A-Z0-9]*|OverSubscribe=[A-Z:0-9]*|PreemptMode=[A-Z,]*' | tr '\n' ' '; echo; done; scontrol delete partition=p1
scontrol create partition=p1 nodes=n1; for w in allowgroups=root allowgroups=nosuchgroup allowgroups=all allowaccounts=a,b allowaccounts=all denyaccounts=c denyaccounts= allowqos=normal allowqos=all denyqos=q denyqos= allocnodes=n1 allocnodes=all alternate=debug alternate=nosuch alternate= nodes=n2 nodes=+n3 nodes=-n2 nodes=ALL nodes=nosuch nodes= qos=nosuch qos= tresbillingweights=cpu=2 tresbillingweights= tresbillingweights=nosuch=2 jobdefaults=defcpupergpu=2 jobdefaults=; do echo "$w"; scontrol update partition=p1 $w; scontrol show partition p1 | grep -oE '(Allow|Deny)[A-Za-z]*=[^ ]*|AllocNodes=[^ ]*|Alternate=[^ ]*| Nodes=[^ ]*| QoS=[^ ]*|TRESBilling[A-Za-z]*=[^ ]*|JobDefaults=[^ ]*' | tr '\n' ' '; echo; done; scontrol delete partition=p1
scontrol create partition=p1 nodes=n1; for w in maxtime=x defaulttime=x maxnodes=x minnodes=x default=maybe hidden=maybe rootonly=x reqresv=x disablerootjobs=x exclusiveuser=x lln=x state=x state= priorityjobfactor=x prioritytier=x priorityjobfactor=-1 prioritytier=99999 gracetime=x overtimelimit=x maxcpuspernode=x maxmempernode=x maxmempercpu=x defmempernode=x oversubscribe=x oversubscribe=force:x preemptmode=x cpubind=x foo=bar foo state; do echo "$w"; scontrol update partition=p1 $w; done; scontrol delete partition=p1
scontrol update partition=nosuch state=up
scontrol update partition= state=up
scontrol update partitionname=debug
scontrol create partition=p1 nodes=nosuch
scontrol create partition=p1 nodes=n1; scontrol create partition=p1 nodes=n1; scontrol delete partition=p1
scontrol delete partition=nosuch
scontrol create partition
# Jobs: what waits.
batch -H; for w in name=x comment='a b' admincomment=y extra=z account=a wckey=w qos=q nice=5 nice=-5 priority=7 partition=debug timelimit=10 timelimit=+5 timelimit=-3 timelimit=unlimited timemin=2 numnodes=2 numnodes=1-2 numcpus=3 numtasks=2 mincpusnode=2 minmemorynode=10 minmemorycpu=5 mintmpdisknode=1 contiguous=yes contiguous=no features=nosuch features= requeue=0 requeue=1 oversubscribe=yes oversubscribe=no workdir=/tmp stdout=/tmp/o stderr=/tmp/e licenses= dependency= deadline=now+1day mailtype=END mailuser=me reqnodelist=n1 reqnodelist= excnodelist=n2 excnodelist= reservationname= reservationname=nosuch delayboot=5 switches=1@5 siteFactor=3 clusterfeatures=x burstbuffer= gres=gpu:1 gres= userid=root foo=bar; do echo "$w"; scontrol update jobid=$J "$w"; scontrol show job $J | grep -oE '(JobName|Comment|AdminComment|Account|WCKey|QOS|Nice|TimeLimit|TimeMin|NumNodes|NumCPUs|NumTasks|MinCPUsNode|MinMemory[A-Z][a-zA-Z]*|MinTmpDiskNode|Contiguous|Features|Requeue|OverSubscribe|WorkDir|StdErr|StdOut|Licenses|MailType|MailUser|ReqNodeList|ExcNodeList|Reservation|DelayBoot|Switches|TresPerNode)=[^ ]*' | sort | tr '\n' ' ' > after; cmp -s before after || diff <(tr ' ' '\n' < before 2>/dev/null) <(tr ' ' '\n' < after) | grep '^[<>]'; cp after before; done 2>&1
batch -H; for w in nice=x priority=x timelimit=x timemin=x numnodes=x numnodes=0 numcpus=x numtasks=x mincpusnode=x minmemorynode=x mintmpdisknode=x contiguous=x requeue=x oversubscribe=x deadline=x mailtype=x reqnodelist=nosuch excnodelist=nosuch delayboot=x switches=x sitefactor=x partition=nosuch starttime=x eligibletime=now+1hour endtime=now+1hour dependency=afterok:99999 dependency=x licenses=nosuch userid=nosuch coreSpec=1 threadspec=1 arraytaskthrottle=2 power=level reboot=1 cpuspertask=2 ntaskspersocket=1 tresperjob=gres:gpu:1 name nodelist=n1 state=x jobstate=x geometry=x; do echo "$w"; scontrol update jobid=$J "$w"; done 2>&1
batch; until_state RUNNING; for w in name=x comment=y nice=9 partition=debug timelimit=7 timelimit=+1 numnodes=3 numcpus=4 reqnodelist=n2 features=a workdir=/ requeue=0 endtime=now+1hour stdout=/x minmemorynode=1 priority=3 admincomment=z mailuser=m licenses=x account=q oversubscribe=yes contiguous=yes numtasks=3 starttime=now+1hour excnodelist=n1 dependency=afterok:1; do echo "$w"; scontrol update jobid=$J $w; done 2>&1; scancel $J
scontrol update jobid=99999 name=x
scontrol update jobid=x name=x
scontrol update jobid= name=x
scontrol update job=1
scontrol update name=x
scontrol update jobname=nosuch comment=x
batch -H -J byname; scontrol update jobname=byname comment=x; scontrol show job $J | grep Comment
batch -H -a 1-3; scontrol update jobid=${J}_2 comment=two; scontrol show job ${J}_2 | grep Comment; scontrol update jobid=$J arraytaskthrottle=2; scontrol show job $J | grep -o 'ArrayTaskThrottle=[0-9]*'; scontrol update jobid=$J arraytaskthrottle=x
batch -H -a 1-3; scontrol update jobid=${J}_9 comment=two; scontrol update jobid=${J}_[1-2] comment=q; scontrol show job $J | grep -c Comment=q
batch; scancel $J; until [ -z "$(squeue -h -j $J)" ]; do sleep .1; done; scontrol update jobid=$J name=x; scontrol update jobid=$J comment=late; scontrol update jobid=$J timelimit=5
# Steps.
batch; until scontrol show step $J.0 2> /dev/null | grep -q RUNNING; do sleep .1; [ $((N++)) -gt 20 ] && break; done; scontrol update stepid=$J.0 timelimit=5; scontrol update stepid=$J timelimit=5; scontrol update stepid=$J.7 timelimit=5; scontrol update stepid=$J.0 timelimit=x; scontrol update stepid=$J.0 foo=bar; scontrol update stepid=x timelimit=5; scontrol update stepid=$J.0; scancel $J
sbatch -Q -o /dev/null --parsable --wrap 'srun sleep 30' > j; J=$(cat j); until scontrol show step $J.0 2> /dev/null | grep -q RUNNING; do sleep .1; done; scontrol update stepid=$J.0 timelimit=5; scontrol show step $J.0 | grep -o 'TimeLimit=.*'; scontrol update stepid=$J.0 name=x; scontrol update stepid=$J.0 timelimit=; scontrol update stepid=$J.0 timelimit=unlimited; scontrol show step $J.0 | grep -o 'TimeLimit=.*'; scancel $J
# Others.
scontrol update
scontrol update foo=bar
scontrol update frontend=f state=up
scontrol update slurmctlddebug=info
scontrol update powercap=1
