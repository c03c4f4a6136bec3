# What single resources are worth, in priorities and on bills. With PRIORITY_WEIGHT_TRES=CPU=1000,Mem=2000,Node=100,Billing=300.
sacctmgr -i add account a1
sacctmgr -i add user root account=a1
scontrol show config | grep -E '^Priority(WeightTRES|Flags|DecayHalfLife|CalcPeriod|UsageResetPeriod|FavorSmall|MaxAge|Type)'
scontrol show partition short | grep TRES
scontrol show node n1 | grep CfgTRES
scontrol show node n5 | grep CfgTRES
sprio -w
sprio -w -n
sprio -w -l
batch -p short -N2 --exclusive; until_state RUNNING; scontrol show job $J | grep -oE ' TRES=.*'; batch -p short -n3 --mem=300; sleep 2; sprio -h -o '%r %T %t'; sprio -h -n -o '%r %t'; sprio -l | awk '{print $NF}'; scontrol show job $J | grep -oE ' TRES=.*'; scancel -u root; sleep 2; sacct -X -n -P -j $J -o reqtres,alloctres
batch -p short -n3 --mem=300; until_state RUNNING; squeue -h -j $J -O tres-alloc:60; scancel $J; sleep 2; sacct -X -n -P -j $J -o reqtres,alloctres
batch -n3 --mem=300; until_state RUNNING; squeue -h -j $J -O tres-alloc:60; scancel $J; sleep 2; sacct -X -n -P -j $J -o reqtres,alloctres
