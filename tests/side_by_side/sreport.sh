# sreport: headings, columns, words and refusals, about times of which neither system knows anything. With --accounts. Figures: sreport.py.

# Headings
sreport cluster utilization start=2020-01-01 end=2020-01-02
sreport cluster accountutilizationbyuser start=2020-01-01 end=2020-01-02
sreport cluster userutilizationbyaccount start=2020-01-01 end=2020-01-02
sreport cluster userutilizationbywckey start=2020-01-01 end=2020-01-02
sreport cluster wckeyutilizationbyuser start=2020-01-01 end=2020-01-02
sreport job sizesbyaccount start=2020-01-01 end=2020-01-02
sreport job sizesbyaccountandwckey start=2020-01-01 end=2020-01-02
sreport job sizesbywckey start=2020-01-01 end=2020-01-02
sreport reservation utilization start=2020-01-01 end=2020-01-02
sreport user topusage start=2020-01-01 end=2020-01-02
# In other units and of other resources
sreport -t seconds cluster utilization start=2020-01-01 end=2020-01-02
sreport -t minutes cluster utilization start=2020-01-01 end=2020-01-02
sreport -t hours cluster utilization start=2020-01-01 end=2020-01-02
sreport -t percent cluster utilization start=2020-01-01 end=2020-01-02
sreport -t secper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t minper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t hourper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t fortnights cluster utilization start=2020-01-01 end=2020-01-02
sreport -T cpu,mem cluster utilization start=2020-01-01 end=2020-01-02
sreport -T cpu,mem user topusage start=2020-01-01 end=2020-01-02
sreport -T colour cluster utilization start=2020-01-01 end=2020-01-02
# With bars, without headings, without a title
sreport -p cluster utilization start=2020-01-01 end=2020-01-02
sreport -P cluster utilization start=2020-01-01 end=2020-01-02
sreport -n cluster utilization start=2020-01-01 end=2020-01-02
sreport -n -P user topusage start=2020-01-01 end=2020-01-02
sreport -Q cluster utilization start=2020-01-01 end=2020-01-02
# Verbs may be cut short, and capitals mean nothing
sreport clu util start=2020-01-01 end=2020-01-02
sreport CLUSTER Utilization start=2020-01-01 end=2020-01-02
sreport user top start=2020-01-01 end=2020-01-02
sreport job sizes start=2020-01-01 end=2020-01-02
sreport res util start=2020-01-01 end=2020-01-02
sreport cluster acc start=2020-01-01 end=2020-01-02
sreport cluster user start=2020-01-01 end=2020-01-02
# Columns
sreport cluster utilization format=cluster,allocated start=2020-01-01 end=2020-01-02
sreport cluster utilization format=cluster%20,allocated%30 start=2020-01-01 end=2020-01-02
sreport -P cluster utilization format=cluster,tresname,allocated,down,planneddown,idle,reserved,reported,overcommitted start=2020-01-01 end=2020-01-02
sreport -P user topusage format=accounts,cluster,login,proper,tresname,used start=2020-01-01 end=2020-01-02
sreport -P user topusage format=lo,pro,acc,us start=2020-01-01 end=2020-01-02
sreport -P reservation utilization format=name,start,end,allocated,idle,totaltime start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount format=account,cluster start=2020-01-01 end=2020-01-02
sreport cluster utilization format=colour start=2020-01-01 end=2020-01-02
sreport user topusage format=colour start=2020-01-01 end=2020-01-02
# Conditions
sreport -P user topusage topcount=3 start=2020-01-01 end=2020-01-02
sreport -P user topusage group start=2020-01-01 end=2020-01-02
sreport -P user topusage accounts=a1 users=root start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount flatview start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount printjobcount start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount grouping=2,4 start=2020-01-01 end=2020-01-02
sreport -P job sizesbyaccount grouping=2,4 printjobcount start=2020-01-01 end=2020-01-02
sreport -P cluster accountutilizationbyuser tree start=2020-01-01 end=2020-01-02
sreport -P cluster utilization cluster=bench start=2020-01-01 end=2020-01-02
sreport -P reservation utilization names=r start=2020-01-01 end=2020-01-02
sreport cluster utilization colour=red start=2020-01-01 end=2020-01-02
sreport user topusage colour=red start=2020-01-01 end=2020-01-02
sreport job sizesbyaccount colour=red start=2020-01-01 end=2020-01-02
sreport reservation utilization colour=red start=2020-01-01 end=2020-01-02
sreport cluster utilization start=2020-01-01 end=nonsense
sreport cluster utilization start=nonsense
# Wrong words
sreport
sreport nothing
sreport cluster
sreport cluster nothing
sreport job
sreport job nothing
sreport user
sreport user nothing
sreport reservation
sreport reservation nothing
sreport --nosuch
sreport -t
sreport help | head -5
sreport --version | grep -c slurm
sreport version | grep -c slurm
# One after the other
printf 'cluster utilization start=2020-01-01 end=2020-01-02\nquit\n' | sreport
printf 'parsable\ncluster utilization start=2020-01-01 end=2020-01-02\nexit\n' | sreport
printf 'nonsense\nexit\n' | sreport
