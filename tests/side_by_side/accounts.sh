# Words of sacctmgr: adding, showing, changing, refusing.
sacctmgr -n -P list account format=account,descr,org
sacctmgr -n -P list user format=user,defaultaccount,adminlevel
sacctmgr -n -P list qos format=name,priority,gracetime,preempt,flags,usagefactor
sacctmgr -n -P list assoc format=cluster,account,user,share,qos
sacctmgr -i add account a1,a2 parent=root
sacctmgr -i add account a11,a12 parent=a1 fairshare=2 description='one one' organization=lab
sacctmgr -i add account a11
sacctmgr -i add account x parent=nowhere
sacctmgr -i add user root account=a11,a12,a2
sacctmgr -i modify user root set defaultaccount=a11
sacctmgr -i add user nobody account=a11 fairshare=3
sacctmgr -i add user daemon account=a2 fairshare=3 adminlevel=operator
sacctmgr -i add user daemon account=a2
sacctmgr -i add user bin account=nowhere
sacctmgr -i add user nosuchuser account=a1
sacctmgr -i add qos q1,q2 priority=10
sacctmgr -i add qos q1
sacctmgr -i add qos q3 flags=Nonsense
sacctmgr -i add qos q3 colour=red
sacctmgr -i modify user root set qos=normal,q1,q2
sacctmgr -i modify account root set qos=+q1
sacctmgr -i modify user nobody set qos+=q2
sacctmgr -i modify user nobody set qos=nosuch
sacctmgr -i modify user nosuch set fairshare=2
sacctmgr -i modify account a11 set parent=nowhere
sacctmgr -i modify account where name=a12 set parent=a2
sacctmgr -i modify account where name=a12 set parent=a1
sacctmgr modify account
sacctmgr -i modify account a1 set
sacctmgr -i modify qos q1 set maxjobspu=3 grptres=cpu=10,mem=4G maxwall=1-0 flags=DenyOnLimit,NoDecay
sacctmgr -i modify qos q1 set maxjobspu=-1 grptres=cpu=-1,mem=-1 maxwall=-1 flags=-1
sacctmgr -i modify qos q2 set usagefactor=2.5 gracetime=60 preempt=q1 preemptmode=requeue
sacctmgr -n -P show qos q2 format=name,usagefactor,gracetime,preempt,preemptmode
sacctmgr -i modify qos q2 set usagefactor=1 gracetime=0 preempt= preemptmode=cluster
sacctmgr list account
sacctmgr list user
sacctmgr list user withassoc
sacctmgr list account withassoc
sacctmgr list account withcoord
sacctmgr list qos
sacctmgr list assoc tree format=account,user,share,qos
sacctmgr -s list user root
sacctmgr list assoc where user=root format=account%20,user%-10,defaultqos
sacctmgr list assoc format=nonsense
sacctmgr list assoc where colour=red
sacctmgr list nonsense
sacctmgr nonsense
sacctmgr list cluster format=cluster,share,qos
sacctmgr list tres format=type,name,id
sacctmgr -P list assoc where account=a11
sacctmgr -p list assoc where account=a11 format=account,user,maxjobs,grptres
sacctmgr -i add coordinator accounts=a1 names=nobody
sacctmgr list account a1 withcoord format=account,coord
sacctmgr list user nobody withcoord format=user,coord
sacctmgr -i delete coordinator accounts=a1 names=nobody
sacctmgr -i delete coordinator accounts=a1 names=nobody
sacctmgr -i add wckey name=wk1 user=root
sacctmgr list wckey format=wckey,cluster,user
sacctmgr -i delete wckey name=wk1
sacctmgr -i delete qos nosuch
sacctmgr -i delete user nosuch
sacctmgr -i delete account nosuch
sacctmgr -i delete user
sacctmgr -i modify user where name=daemon set adminlevel=none
sacctmgr -i modify user where name=daemon set adminlevel=king
sacctmgr -i add cluster other
sacctmgr -n -P list cluster format=cluster
sacctmgr -i delete cluster other
sacctmgr dump bench file=$PWD/dump > /dev/null && grep -v '^#' dump
sacctmgr dump bench file=$PWD/dump && sed -i s/Fairshare=2/Fairshare=4/ dump && sacctmgr -i load file=$PWD/dump
sacctmgr -n -P list assoc format=account,user,share
sacctmgr -i modify account where name=a11,a12 set fairshare=2
sacctmgr -i load file=$PWD/nosuch
# Admissions: whose place, whose QOS.
fates '' '-A a2' '-A nowhere' '-A a1' '-q q2' '-q nosuch' '-A a12 -q q1'
scontrol show job $(sbatch --parsable -o /dev/null --wrap 'sleep 5') | grep -oE 'Account=\S+|QOS=\S+'
fates '-p short' '-p short -q q1' '-p debug,short'
# Every limit of a QOS.
limit 'qos q1' maxjobspu=1 '-q q1' '-q q1'
limit 'qos q1' maxjobspa=1 '-q q1' '-q q1'
limit 'qos q1' maxsubmitjobspu=1 '-q q1' '-q q1'
limit 'qos q1' maxsubmitjobspa=1 '-q q1' '-q q1'
limit 'qos q1' grpjobs=1 '-q q1' '-q q1'
limit 'qos q1' grpsubmit=1 '-q q1' '-q q1'
limit 'qos q1' grpwall=10 '-q q1 -t 5' '-q q1 -t 11'
limit 'qos q1' maxwall=10 '-q q1 -t 11' '-q q1 -t 10' '-q q1'
limit 'qos q1' maxtrespu=cpu=2 '-q q1 -n2' '-q q1 -n1' '-q q1 -n3'
limit 'qos q1' maxtrespu=node=1 '-q q1 -N1' '-q q1 -N2'
limit 'qos q1' maxtrespu=node=1 '-q q1 -N1 -n1' '-q q1 -N1 -n1' '-q q1 -N1 -n8'
limit 'qos q1' maxtrespu=mem=200M '-q q1 --mem=200' '-q q1 --mem=201'
limit 'qos q1' maxtrespa=cpu=2 '-q q1 -n2' '-q q1 -n1' '-q q1 -n3'
limit 'qos q1' maxtrespa=mem=200M '-q q1 --mem=200' '-q q1 --mem=201'
limit 'qos q1' maxtresperjob=cpu=2 '-q q1 -n3' '-q q1 -n2'
limit 'qos q1' maxtresperjob=node=1 '-q q1 -N2' '-q q1 -N1'
limit 'qos q1' maxtresperjob=mem=200M '-q q1 --mem=201' '-q q1 --mem=200'
limit 'qos q1' maxtrespernode=cpu=2 '-q q1 -n3 -N1' '-q q1 -n2 -N1'
limit 'qos q1' grptres=cpu=2 '-q q1 -n2' '-q q1 -n1' '-q q1 -n3'
limit 'qos q1' grptres=node=1 '-q q1 -N1' '-q q1 -N2'
limit 'qos q1' grptres=node=1 '-q q1 -N1 -n1' '-q q1 -N1 -n1' '-q q1 -N1 -n8'
limit 'qos q1' grptres=mem=200M '-q q1 --mem=200' '-q q1 --mem=100' '-q q1 --mem=300'
limit 'qos q1' grptresmins=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' grptresrunmins=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' maxtresminsperjob=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5'
limit 'qos q1' maxtresrunminspu=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' maxtresrunminspa=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' mintres=cpu=2 '-q q1 -n1' '-q q1 -n2'
limit 'qos q1' mintres=node=2 '-q q1 -N1' '-q q1 -N2'
limit 'qos q1' mintres=mem=200M '-q q1 --mem=100'
limit 'qos q1' maxtrespu=billing=2 '-q q1 -n3' '-q q1 -n1'
limit 'qos q1' grptres=billing=2 '-q q1 -n3' '-q q1 -n1'
# The same where what can never start is denied.
sacctmgr -i modify qos q1 set flags=DenyOnLimit
limit 'qos q1' grpwall=10 '-q q1 -t 5' '-q q1 -t 11'
limit 'qos q1' maxwall=10 '-q q1 -t 11' '-q q1 -t 10' '-q q1'
limit 'qos q1' maxtrespu=cpu=2 '-q q1 -n2' '-q q1 -n1' '-q q1 -n3'
limit 'qos q1' maxtresperjob=cpu=2 '-q q1 -n3' '-q q1 -n2'
limit 'qos q1' maxtresperjob=node=1 '-q q1 -N2' '-q q1 -N1'
limit 'qos q1' maxtresperjob=mem=200M '-q q1 --mem=201' '-q q1 --mem=200'
limit 'qos q1' grptres=cpu=2 '-q q1 -n2' '-q q1 -n1' '-q q1 -n3'
limit 'qos q1' grptres=node=1 '-q q1 -N1' '-q q1 -N2'
limit 'qos q1' grptres=node=1 '-q q1 -N1 -n1' '-q q1 -N1 -n1' '-q q1 -N1 -n8'
limit 'qos q1' grptres=mem=200M '-q q1 --mem=200' '-q q1 --mem=100' '-q q1 --mem=300'
limit 'qos q1' grptresmins=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' maxtresminsperjob=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5'
limit 'qos q1' maxtresrunminspu=cpu=10 '-q q1 -n1 -t 11' '-q q1 -n1 -t 5' '-q q1 -n2 -t 5'
limit 'qos q1' mintres=cpu=2 '-q q1 -n1' '-q q1 -n2'
limit 'qos q1' mintres=node=2 '-q q1 -N1' '-q q1 -N2'
limit 'qos q1' mintres=mem=200M '-q q1 --mem=100'
limit 'qos q1' grptres=billing=2 '-q q1 -n3' '-q q1 -n1'
sacctmgr -i modify qos q1 set flags=-1
# Every limit of an association, of the account and of the one above it.
limit 'user where name=root account=a11' maxjobs=1 '' ''
limit 'user where name=root account=a11' maxsubmit=1 '' ''
limit 'user where name=root account=a11' grpjobs=1 '' ''
limit 'user where name=root account=a11' grpsubmit=1 '' ''
limit 'user where name=root account=a11' grpwall=10 '-t 5' '-t 11'
limit 'user where name=root account=a11' maxwall=10 '-t 11' '-t 10' ''
limit 'user where name=root account=a11' maxtres=cpu=2 '-n3' '-n2'
limit 'user where name=root account=a11' maxtres=node=1 '-N2' '-N1'
limit 'user where name=root account=a11' maxtres=mem=200M '--mem=201' '--mem=200'
limit 'user where name=root account=a11' maxtrespernode=cpu=2 '-N1 -n3' '-N1 -n2'
limit 'user where name=root account=a11' grptres=cpu=2 '-n2' '-n1' '-n3'
limit 'user where name=root account=a11' grptres=node=1 '-N1' '-N2'
limit 'user where name=root account=a11' grptres=node=1 '-N1 -n1' '-N1 -n1' '-N1 -n8'
limit 'user where name=root account=a11' grptres=mem=200M '--mem=200' '--mem=100' '--mem=300'
limit 'user where name=root account=a11' grptresmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'user where name=root account=a11' grptresrunmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'user where name=root account=a11' maxtresmins=cpu=10 '-n1 -t 11' '-n1 -t 5'
limit 'account where name=a11' maxjobs=1 '' ''
limit 'account where name=a11' maxsubmit=1 '' ''
limit 'account where name=a11' grpjobs=1 '' ''
limit 'account where name=a11' grpsubmit=1 '' ''
limit 'account where name=a11' grpwall=10 '-t 5' '-t 11'
limit 'account where name=a11' maxwall=10 '-t 11' '-t 10' ''
limit 'account where name=a11' maxtres=cpu=2 '-n3' '-n2'
limit 'account where name=a11' maxtres=node=1 '-N2' '-N1'
limit 'account where name=a11' maxtres=mem=200M '--mem=201' '--mem=200'
limit 'account where name=a11' maxtrespernode=cpu=2 '-N1 -n3' '-N1 -n2'
limit 'account where name=a11' grptres=cpu=2 '-n2' '-n1' '-n3'
limit 'account where name=a11' grptres=node=1 '-N1' '-N2'
limit 'account where name=a11' grptres=node=1 '-N1 -n1' '-N1 -n1' '-N1 -n8'
limit 'account where name=a11' grptres=mem=200M '--mem=200' '--mem=100' '--mem=300'
limit 'account where name=a11' grptresmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'account where name=a11' grptresrunmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'account where name=a11' maxtresmins=cpu=10 '-n1 -t 11' '-n1 -t 5'
limit 'account where name=a1' maxjobs=1 '' ''
limit 'account where name=a1' maxsubmit=1 '' ''
limit 'account where name=a1' grpjobs=1 '' ''
limit 'account where name=a1' grpsubmit=1 '' ''
limit 'account where name=a1' grpwall=10 '-t 5' '-t 11'
limit 'account where name=a1' maxwall=10 '-t 11' '-t 10' ''
limit 'account where name=a1' maxtres=cpu=2 '-n3' '-n2'
limit 'account where name=a1' maxtres=node=1 '-N2' '-N1'
limit 'account where name=a1' maxtres=mem=200M '--mem=201' '--mem=200'
limit 'account where name=a1' maxtrespernode=cpu=2 '-N1 -n3' '-N1 -n2'
limit 'account where name=a1' grptres=cpu=2 '-n2' '-n1' '-n3'
limit 'account where name=a1' grptres=node=1 '-N1' '-N2'
limit 'account where name=a1' grptres=node=1 '-N1 -n1' '-N1 -n1' '-N1 -n8'
limit 'account where name=a1' grptres=mem=200M '--mem=200' '--mem=100' '--mem=300'
limit 'account where name=a1' grptresmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'account where name=a1' grptresrunmins=cpu=10 '-n1 -t 11' '-n1 -t 5' '-n2 -t 5'
limit 'account where name=a1' maxtresmins=cpu=10 '-n1 -t 11' '-n1 -t 5'
# Which of two limits is told, and the partition's QOS.
sacctmgr -i modify qos pq set maxjobspu=1 > /dev/null; fates '-p short -q q1' '-p short -q q1'; sacctmgr -i modify qos pq set maxjobspu=-1 > /dev/null
sacctmgr -i modify user where name=root account=a11 set grptres=cpu=1 > /dev/null; limit 'qos q1' grptres=cpu=3 '-q q1 -n2' '-q q1 -n2'; sacctmgr -i modify user where name=root account=a11 set grptres=cpu=-1 > /dev/null
sacctmgr -i modify user where name=root account=a11 set grpjobs=1 > /dev/null; limit 'account where name=a1' grptres=cpu=1 '-n1' '-n2'; sacctmgr -i modify user where name=root account=a11 set grpjobs=-1 > /dev/null
# Accrual.
sacctmgr -i modify qos q1 set grpjobsaccrue=1 maxjobsaccruepu=2 maxjobsaccruepa=3; sacctmgr -i modify user where name=root account=a11 set grpjobsaccrue=2 maxjobsaccrue=1; sacctmgr -n -P list qos q1 format=grpjobsaccrue,maxjobsaccruepu,maxjobsaccruepa; sacctmgr -n -P list assoc where user=root account=a11 format=grpjobsaccrue,maxjobsaccrue
sacctmgr -i modify qos q1 set grpjobsaccrue=-1 maxjobsaccruepu=-1 maxjobsaccruepa=-1 > /dev/null; sacctmgr -i modify user where name=root account=a11 set grpjobsaccrue=-1 maxjobsaccrue=-1 > /dev/null
# Shares and use: the tree before anything was used, and its columns.
sacctmgr -i modify account where name=a1,a2,a11,a12 set rawusage=0 > /dev/null; sacctmgr -i modify cluster bench set fairshare=1
sshare -h -P -o account,user,rawshares,normshares
sshare -a -P -o account,user,rawshares,normshares
sshare -a -l -P | head -1
sshare -m -P | head -3
sshare -A a11 -a -h -P -o account,user,rawshares
sshare -u root -h -P -o account,user,rawshares
sshare -A nosuch
sshare -u nosuch
sshare -o nonsense
sshare --nonsense
sshare -e
sprio -h
sprio -w
sprio -l
scontrol show assoc_mgr flags=qos qos=q2
scontrol show assoc_mgr flags=assoc account=a12 users=root | grep -v UsageRaw
scontrol show assoc_mgr flags=users users=root
scontrol show assoc_mgr flags=nonsense
# What is said of jobs afterwards.
batch -n1 --comment=own; scancel $J; sleep 2; sacctmgr -i modify job where jobid=$J set comment=seen derivedexitcode=512 | alike; sacct -X -n -P -j $J -o comment,derivedexitcode
batch -n1; scancel $J; sleep 2; sacctmgr -i modify job jobid=$J set admincomment='by us' newwckey=x | alike; sacct -X -n -P -j $J -o admincomment,wckey
sacctmgr -i modify job where jobid=999999 set comment=x
sacctmgr -i modify job where jobid=1
sacctmgr -i modify job where colour=red set comment=x
sacctmgr -i modify job where jobid=1 set comment
sacctmgr -i modify job where jobid=none set comment=x
# Reports: headings, words, refusals.
sreport -P cluster utilization start=now-1hours end=now | head -5
sreport cluster nonsense
sreport nonsense
sreport -t percent cluster utilization start=2020-01-01 end=2020-01-02
sreport -P cluster accountutilizationbyuser start=2020-01-01 end=2020-01-02
sreport -P cluster userutilizationbyaccount start=2020-01-01 end=2020-01-02
sreport -P cluster userutilizationbywckey start=2020-01-01 end=2020-01-02
sreport -P cluster wckeyutilizationbyuser start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount start=2020-01-01 end=2020-01-02
sreport -P job sizesbywckey start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccountandwckey start=2020-01-01 end=2020-01-02
sreport -P reservation utilization start=2020-01-01 end=2020-01-02
sreport -P user topusage start=2020-01-01 end=2020-01-02
sreport user topusage start=2020-01-01 end=2020-01-02
sreport job sizesbyaccount printjobcount grouping=2,4 start=2020-01-01 end=2020-01-02
sreport -t hourper -T cpu,mem cluster utilization start=2020-01-01 end=2020-01-02
sreport -T nonsense cluster utilization start=2020-01-01 end=2020-01-02
sreport cluster utilization start=nonsense
sreport -t fortnights cluster utilization
