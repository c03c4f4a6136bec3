# Who is admitted, and what they wait for, under each word of AccountingStorageEnforce: run it with ENFORCE=associations, limits, qos, safe,
# wckeys, limits,nosteps and limits,nojobs.
sacctmgr -i add account a1,a2 parent=root; sacctmgr -i add user root account=a1 ; sacctmgr -i add qos q1,q2; sacctmgr -i modify user root set defaultaccount=a1 qos=normal,q1; sacctmgr -i modify account a1 set grptresmins=cpu=10; sacctmgr -i modify user root account=a1 set maxjobs=1 maxtres=cpu=4; sleep 1; scontrol show config | grep -E '^AccountingStorageEnforce'
fates '' ''
fates '-A a2' '-A nowhere'
fates '-q q2' '-q nosuch' '-q q1'
fates '-n5' '-n1 -t 5' '-n1 -t 20'
fates '--wckey=k1'
sbatch --uid=nobody -o /dev/null --parsable --wrap 'sleep 1' 2>&1 | sed 's/^[0-9;a-z]*$/submitted/'; sleep 2; squeue -h -o '%T %r %a %q'; scancel -u nobody
sacctmgr -i add user root account=a1 wckey=k1; sleep 1; fates '--wckey=k1' '--wckey=*k1'
batch -n1; until_state RUNNING; srun --jobid=$J -n1 true; scancel $J; sleep 2; sacct -n -P -j $J -o jobid,state,account | sed -E "s/^[0-9]+/J/"; sacct -n -X -P -j $J -o account | wc -l
