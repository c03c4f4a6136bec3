# What a coordinator may and may not do, verb by verb; and what nobody but administrators may. With --accounts.
# bin (2) coordinates a1; daemon (1) has jobs there; sys (3) is in b1; games (5) is an operator.
sacctmgr -i add account a1 | head -1
sacctmgr -i add account a2 parent=a1 | head -1
sacctmgr -i add account b1 | head -1
sacctmgr -i add user daemon account=a1,a2 | head -1
sacctmgr -i add user bin account=a1 | head -1
sacctmgr -i add user sys,games account=b1 | head -1
sacctmgr -i add qos q1 | head -1
sacctmgr -i add coordinator account=a1 names=bin | head -3
sacctmgr -i modify user games set adminlevel=operator | head -1
sleep 1; sacctmgr -nP list account withcoordinator format=account,coordinators
sacctmgr -nP list user withcoordinator format=user,coordinators,admin

# Jobs of the account, below it, and elsewhere
batch --uid=daemon --gid=daemon -D / --begin=now+1hour -A a1; as 2 scontrol hold $J; squeue -h -j $J -o '%T %r'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol release $J; echo $?; until_state RUNNING
batch --uid=daemon --gid=daemon -D / -H -A a2; as 2 scontrol release $J; echo $?; until_state RUNNING
batch --uid=sys --gid=sys -D / -H -A b1; as 2 scontrol release $J 2>&1 | alike; squeue -h -j $J -o '%T %r'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol uhold $J; squeue -h -j $J -o '%T %r'
batch --uid=daemon --gid=daemon -D / -H -t 10 -A a1; as 2 scontrol update jobid=$J timelimit=20 2>&1 | alike; squeue -h -j $J -o '%l'
batch --uid=daemon --gid=daemon -D / -H -t 10 -A a1; as 2 scontrol update jobid=$J timelimit=5 2>&1 | alike; squeue -h -j $J -o '%l'
batch --uid=daemon --gid=daemon -D / -t 10 -A a1; until_state RUNNING; as 2 scontrol update jobid=$J timelimit=20 2>&1 | alike; squeue -h -j $J -o '%l'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J nice=-100 2>&1 | alike; scontrol show job $J | grep -o 'Nice=[-0-9]*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J comment=hello 2>&1 | alike; scontrol show job $J | grep -o 'Comment=.*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J admincomment=hello 2>&1 | alike; scontrol show job $J | grep -o 'AdminComment=.*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J name=hello 2>&1 | alike; scontrol show job $J | grep -o 'JobName=.*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J account=a2 2>&1 | alike; scontrol show job $J | grep -o 'Account=[a-z0-9]*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J account=b1 2>&1 | alike; scontrol show job $J | grep -o 'Account=[a-z0-9]*'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scontrol update jobid=$J partition=short 2>&1 | alike; scontrol show job $J | grep -o 'Partition=.[a-z]*'
batch --uid=sys --gid=sys -D / -H -A b1; as 2 scontrol update jobid=$J comment=hello 2>&1 | alike; scontrol show job $J | grep -c 'Comment=hello'
batch --uid=daemon --gid=daemon -D / -H -A a1; as 2 scancel $J; echo $?; until_state CANCELLED
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 2 scancel $J; echo $?; until_state CANCELLED
batch --uid=sys --gid=sys -D / -H -A b1; as 2 scancel $J 2>&1 | alike; squeue -h -j $J -o '%T'
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 2 scancel -b -s CONT $J 2>&1 | alike; squeue -h -j $J -o '%T'
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 2 scontrol suspend $J 2>&1 | alike; squeue -h -j $J -o '%T'
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; scontrol suspend $J; as 2 scontrol resume $J 2>&1 | alike; squeue -h -j $J -o '%T'
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 2 scontrol requeuehold $J 2>&1 | alike; until_state PENDING; squeue -h -j $J -o '%T %r'
batch --uid=sys --gid=sys -D / -A b1; until_state RUNNING; as 2 scontrol requeue $J 2>&1 | alike; squeue -h -j $J -o '%T'
as 2 sbatch -o /dev/null -D / -A a2 --wrap true 2>&1 | alike
as 2 sbatch -o /dev/null -D / -A b1 --wrap true 2>&1 | alike
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 2 srun --jobid=$J -n1 --overlap true 2>&1 | alike

# Users and accounts
as 2 sacctmgr -i add user u1 account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=u1 format=account,user
as 2 sacctmgr -i add user u2 account=a2 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=u2 format=account,user
as 2 sacctmgr -i add user u3 account=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=u3 format=account,user
as 2 sacctmgr -i modify user daemon set maxjobs=7 where account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon format=account,maxjobs
as 2 sacctmgr -i modify user daemon set maxjobs=8 where account=a2 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon format=account,maxjobs
as 2 sacctmgr -i modify user sys set maxjobs=7 where account=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=sys format=account,maxjobs
as 2 sacctmgr -i modify user daemon set fairshare=9 where account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon format=account,share
as 2 sacctmgr -i modify user bin set maxjobs=99 where account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=bin format=account,maxjobs
as 2 sacctmgr -i modify user daemon set adminlevel=operator > /dev/null 2>&1; echo $?; sacctmgr -nP list user daemon format=user,admin
as 2 sacctmgr -i modify user bin set adminlevel=administrator > /dev/null 2>&1; echo $?; sacctmgr -nP list user bin format=user,admin
as 2 sacctmgr -i modify user daemon set defaultaccount=a2 > /dev/null 2>&1; echo $?; sacctmgr -nP list user daemon format=user,defaultaccount
as 2 sacctmgr -i modify user daemon set qos+=q1 where account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon account=a1 format=qos
as 2 sacctmgr -i delete user u1 account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=u1 format=account,user
as 2 sacctmgr -i delete user sys account=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=sys format=account,user
as 2 sacctmgr -i add account c1 parent=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list account c1 format=account
as 2 sacctmgr -i add account c2 parent=root > /dev/null 2>&1; echo $?; sacctmgr -nP list account c2 format=account
as 2 sacctmgr -i add account c3 parent=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list account c3 format=account
as 2 sacctmgr -i modify account a1 set grpjobs=50 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc account=a1 user= format=account,grpjobs
as 2 sacctmgr -i modify account a2 set grpjobs=51 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc account=a2 user= format=account,grpjobs
as 2 sacctmgr -i modify account b1 set grpjobs=52 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc account=b1 user= format=account,grpjobs
as 2 sacctmgr -i modify account a1 set parent=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc account=a1 user= format=account,parentname
as 2 sacctmgr -i modify account a1 set description=mine > /dev/null 2>&1; echo $?; sacctmgr -nP list account a1 format=account,descr
as 2 sacctmgr -i delete account a2 > /dev/null 2>&1; echo $?; sacctmgr -nP list account a2 format=account
as 2 sacctmgr -i add coordinator account=a2 names=daemon > /dev/null 2>&1; echo $?; sacctmgr -nP list account a2 withcoordinator format=account,coordinators
as 2 sacctmgr -i add coordinator account=b1 names=bin > /dev/null 2>&1; echo $?; sacctmgr -nP list account b1 withcoordinator format=account,coordinators
as 2 sacctmgr -i delete coordinator account=a2 names=daemon > /dev/null 2>&1; echo $?; sacctmgr -nP list account a2 withcoordinator format=account,coordinators
as 2 sacctmgr -i add qos q2 > /dev/null 2>&1; echo $?; sacctmgr -nP list qos q2 format=name
as 2 sacctmgr -i modify qos normal set maxjobspu=3 > /dev/null 2>&1; echo $?; sacctmgr -nP list qos normal format=name,maxjobspu
as 2 sacctmgr -i delete qos q1 > /dev/null 2>&1; echo $?; sacctmgr -nP list qos q1 format=name
as 2 sacctmgr -i add cluster c9 > /dev/null 2>&1; echo $?; sacctmgr -nP list cluster c9 format=cluster
as 2 sacctmgr -i add wckey name=w user=daemon > /dev/null 2>&1; echo $?

# A user of no rank, about itself
as 1 sacctmgr -i modify user daemon set maxjobs=1000 where account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon account=a1 format=maxjobs
as 1 sacctmgr -i modify user daemon set fairshare=1000 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon account=a1 format=share
as 1 sacctmgr -i modify user daemon set qos+=q1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon account=a1 format=qos
as 1 sacctmgr -i modify user daemon set adminlevel=administrator > /dev/null 2>&1; echo $?; sacctmgr -nP list user daemon format=admin
as 1 sacctmgr -i modify user daemon set defaultaccount=a2 > /dev/null 2>&1; echo $?; sacctmgr -nP list user daemon format=defaultaccount
as 1 sacctmgr -i add user daemon account=b1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=daemon format=account
as 1 sacctmgr -i add coordinator account=a1 names=daemon > /dev/null 2>&1; echo $?; sacctmgr -nP list account a1 withcoordinator format=coordinators
as 1 sacctmgr -i delete user bin account=a1 > /dev/null 2>&1; echo $?; sacctmgr -nP list assoc user=bin format=account

# An operator
as 5 sacctmgr -i modify user games set adminlevel=administrator > /dev/null 2>&1; echo $?; sacctmgr -nP list user games format=admin
as 5 sacctmgr -i modify user daemon set adminlevel=operator > /dev/null 2>&1; echo $?; sacctmgr -nP list user daemon format=admin
as 5 sacctmgr -i add account d1 > /dev/null 2>&1; echo $?; sacctmgr -nP list account d1 format=account
as 5 sacctmgr -i add user games account=a1 adminlevel=administrator > /dev/null 2>&1; echo $?; sacctmgr -nP list user games format=admin
as 5 sacctmgr -i add user u5 account=a1 adminlevel=administrator > /dev/null 2>&1; echo $?; sacctmgr -nP list user u5 format=admin
as 5 sacctmgr -i add qos q5 > /dev/null 2>&1; echo $?; sacctmgr -nP list qos q5 format=name
as 5 sacctmgr -i delete account d1 > /dev/null 2>&1; echo $?; sacctmgr -nP list account d1 format=account

# Triggers on jobs of others
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 1 strigger --set -j $J --fini -p /bin/true; echo $?; as 3 strigger --set -j $J --fini -p /bin/true; echo $?; strigger --get -n | awk '{print $2,$4,$6}' | sort
batch --uid=daemon --gid=daemon -D / -A a1; until_state RUNNING; as 3 strigger --set -j $J --time -p /bin/true; echo $?; as 1 strigger --clear -j $J 2>&1 | alike; as 3 strigger --clear -j $J 2>&1 | alike; as 1 strigger --get -j $J -n | wc -l
as 3 strigger --set --node --down -p /bin/true; echo $?; as 1 strigger --get -n | awk '{print $2,$4,$6}' | sort
