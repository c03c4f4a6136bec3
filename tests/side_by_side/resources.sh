# Licences of license servers, kept with the accounts (`sacctmgr … resource`), and jobs that use the cluster's part of them.
sacctmgr show resource
sacctmgr -i add resource
sacctmgr -i add resource matlab
sacctmgr -i add resource matlab type=license
sacctmgr -i add resource matlab type=nonsense count=3
sacctmgr -i add resource matlab count=3 type=license colour=red
sacctmgr -i add resource name=matlab server=flex servertype=flexlm count=10 type=license cluster=bench percentallowed=50 description='the big one'
sacctmgr -i add resource name=matlab server=flex servertype=flexlm count=10 type=license cluster=bench percentallowed=50
sacctmgr -i add resource name=matlab count=7 type=license
sacctmgr -i add resource name=matlab cluster=nowhere percentallowed=20
sacctmgr -i add resource idl,ansys server=s2 count=4 type=license
sacctmgr -i add resource idl server=s2 cluster=bench percentallowed=30
sacctmgr -i add resource idl server=s2 cluster=bench percentallowed=30
sacctmgr -i add resource ansys server=s2 cluster=bench percentallowed=101
sacctmgr -i add resource bad server=s2 count=x type=license
sacctmgr -i add resource bad server=s2 count=3 type=license flags=nonsense
sacctmgr show resource
sacctmgr show resource withclusters
sacctmgr -P show resource withclusters
sacctmgr show resource matlab
sacctmgr -P show resource where name=matlab format=name,server,cluster,type,count,allocated,percentallowed,allowed,servertype,description,flags,id
sacctmgr -P show resource where name=matlab withclusters format=name,server,cluster,type,count,countallowed,allocated,allowed,servertype,description,flags,id
sacctmgr -P show resource where server=s2 withclusters
sacctmgr -P show resource where servertype=flexlm
sacctmgr -P show resource where percentallowed=30 withclusters
sacctmgr -P show resource where ids=1
sacctmgr -P show resource where description='the big one'
sacctmgr -P show resource where colour=red
sacctmgr -P show resource format=colour
sacctmgr -P show resource clusters=nowhere withclusters
scontrol show lic
scontrol -o show lic
scontrol show lic matlab@flex
scontrol show lic matlab
sbatch --parsable -o /dev/null -L matlab@flex:6 --wrap 'sleep 60' | sed s/.*/submitted/
sbatch --parsable -o /dev/null -L matlab --wrap 'sleep 60' | sed s/.*/submitted/
sbatch --parsable -o /dev/null -L matlab@slurmdb --wrap 'sleep 60' | sed s/.*/submitted/
fates '-L matlab@flex:5' '-L matlab@flex:1' '-L idl@s2:1' '-L idl@s2'
batch -L matlab@flex:3; until_state RUNNING; scontrol show lic; scontrol show job $J | grep -oE 'Licenses=[^ ]*|TRES=.*' | alike; squeue -h -o '%W'
batch -L matlab@flex:3; until_state RUNNING; sacctmgr -i modify resource matlab server=flex set count=4; sleep 1; scontrol show lic matlab@flex; scancel $J; sacctmgr -i modify resource matlab server=flex set count=10
sacctmgr -i modify resource matlab
sacctmgr -i modify resource matlab set colour=red
sacctmgr -i modify resource set description=x
sacctmgr -i modify resource nosuch set count=3
sacctmgr -i modify resource matlab set percentallowed=60
sacctmgr -i modify resource where name=matlab server=flex cluster=bench set percentallowed=80
sacctmgr -i modify resource where name=matlab server=flex cluster=bench set percentallowed=120
sacctmgr -i modify resource where name=matlab server=flex cluster=bench set count=12
sacctmgr -i modify resource where name=matlab server=flex set count=20 servertype=rlm
sacctmgr -i modify resource where name=matlab server=flex set cluster=bench
sacctmgr -i modify resource where name=matlab server=flex set type=nonsense
sacctmgr -i modify resource where name=matlab server=flex set description=short
sacctmgr -i modify resource where name=ansys set count=9
sacctmgr -i modify resource where server=s2 set count=8
sacctmgr -P show resource withclusters format=name,server,cluster,type,count,countallowed,allocated,allowed,servertype,description
scontrol show lic
sacctmgr -i delete resource
sacctmgr -i delete resource nosuch
sacctmgr -i delete resource where name=matlab server=flex cluster=bench
scontrol show lic
sacctmgr show resource withclusters
sacctmgr -i delete resource where name=idl server=s2
sacctmgr -i delete resource ansys,matlab
sacctmgr show resource
scontrol show lic
sacctmgr -i add cluster other
sacctmgr -i add resource shared server=far count=10 type=license cluster=bench,other percentallowed=60
sacctmgr -i add resource shared server=far count=10 type=license cluster=bench,other percentallowed=40
sacctmgr -P show resource withclusters
sacctmgr -P show resource withclusters cluster=other
sacctmgr -P show resource cluster=other
sacctmgr -i modify resource where name=shared cluster=other set percentallowed=70
sacctmgr -i modify resource where name=shared cluster=other,bench set percentallowed=50
sacctmgr -i delete resource shared cluster=other
sacctmgr -P show resource withclusters
sacctmgr -i delete resource shared
su -s /bin/sh nobody -c 'sacctmgr -i add resource mine count=3 type=license'
su -s /bin/sh nobody -c 'sacctmgr -i delete resource mine'
su -s /bin/sh nobody -c 'sacctmgr show resource'
