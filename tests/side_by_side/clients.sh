# What clients and administrators' tools ask, beside a Slurm with accounts. With --accounts.
sacctmgr -i add account a1 > /dev/null; sacctmgr -i add user root account=a1 > /dev/null; sacctmgr -i add qos odd > /dev/null
sacct --fields=jobid,state -P -j 99
sacct --field=jobid,state -P -j 99
sacct --fields=nonsense -j 99
sacct --help-fields | wc -w | grep -c .
sattach --debugger-test
sattach --debugger-test 99.0
J=$(sbatch --parsable -A a1 -H --wrap true); scancel $J; until sacct -X -n -j $J -o state | grep -q CANC; do :; done; sacct -X -n -P -j $J -o state,start,elapsed
J=$(sbatch --parsable -A a1 -H --wrap true); scontrol update job $J qos=odd; scontrol update job $J qos=none; scontrol show job $J | grep -o 'QOS=.*'
J=$(sbatch --parsable -A a1 -H -a 3-6 --wrap true); scancel ${J}_[1-4]; echo $?; scancel ${J}_17; echo $?; scancel ${J}_[10-20]; echo $?; squeue -h -j $J -o %t
J=$(sbatch --parsable -A a1 -H -a 3-6 --wrap true); scancel -v ${J}_[5-20] 2>&1 | sed "s/$J/J/g"
J=$(sbatch --parsable -A a1 -a 0-3%1 -o /dev/null --wrap 'sleep 60'); until squeue -h -j $J -t R -o %i | grep -q _; do :; done; scontrol update job $J nice=50; squeue -h -j $J -t PD -o %Q | grep -cx 1; sprio -h -j $J | wc -l
sbatch -A a1 -H --wrap true > /dev/null; sbatch -A a1 --begin=now+1hour --wrap true > /dev/null; sprio
sreport -T cpu cluster utilization start=2020-01-01 end=2020-01-02
sreport -T cpu user topusage start=2020-01-01 end=2020-01-02
sreport -T cpu cluster accountutilizationbyuser start=2020-01-01 end=2020-01-02
sreport -T cpu job sizesbyaccount start=2020-01-01 end=2020-01-02
sreport -T mem job sizesbyaccount start=2020-01-01 end=2020-01-02
sreport -T cpu job sizesbyaccount printjobcount start=2020-01-01 end=2020-01-02
sacctmgr -nP show cluster format=tres
scontrol create partitionname=hid nodes=n1 hidden=yes; sinfo -h -o %R | sort; scontrol show partition -o | cut -d' ' -f1; scontrol --hide show partition -o | cut -d' ' -f1; sbatch -A a1 -p hid -H --wrap true > /dev/null; squeue -h -o %P; squeue --hide -h -o %P; scancel -u root; scontrol delete partitionname=hid
for i in -h -H -g -G -e -B -c; do strigger --set $i -p /bin/true 2> /dev/null; echo $?; done; strigger --get; for i in $(strigger --get -N | awk '{print $1}'); do strigger --clear --id=$i; done
