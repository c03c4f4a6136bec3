# Every column, condition and entity of sacctmgr's manual: which there are, how wide, whom they choose. Where nothing is chosen without
# `-i`, a 22.05 asks for ever.
sacctmgr -i add account a1,a2 parent=root
sacctmgr -i add account a11,a12 parent=a1 fairshare=2 description='one one' organization=lab
sacctmgr -i add user root account=a11,a12,a2
sacctmgr -i add user nobody account=a11 fairshare=3
sacctmgr -i add user daemon account=a2,a12 fairshare=3 adminlevel=operator
sacctmgr -i add user daemon account=a2 partition=debug
sacctmgr -n -P show user daemon
sacctmgr -i add qos q1,q2 priority=10
sacctmgr -i modify account a1 set maxjobs=10 maxtres=cpu=20
# Columns.
for c in account cluster defaultqos fairshare share grpjobs grpjobsaccrue grpsubmit grpsubmitjobs grptres grptresmins grptresrunmins grpwall id lft maxjobs maxjobsaccrue maxsubmit maxsubmitjobs maxtres maxtresperjob maxtresmins maxtresminsperjob maxtrespernode maxtresrunmins maxwall maxwalldurationperjob qos qosraw parentid parentname partition priority rgt user withrawqoslevel grpcpus grpnodes grpmem grpcpumins grpcpurunmins maxcpus maxnodes maxcpumins; do sacctmgr show assoc format=$c | head -2; done 2>&1
for c in description flags gracetime grpjobs grpjobsaccrue grpsubmit grpsubmitjobs grptres grptresmins grptresrunmins grpwall id limitfactor maxjobsaccruepa maxjobsaccrueperaccount maxjobsaccruepu maxjobsaccrueperuser maxjobspa maxjobsperaccount maxjobspu maxjobsperuser maxsubmitjobspa maxsubmitjobsperaccount maxsubmitjobspu maxsubmitjobsperuser maxtres maxtresperjob maxtresmins maxtresminsperjob maxtrespa maxtresperaccount maxtrespernode maxtrespu maxtresperuser maxtresrunminspa maxtresrunminspu maxtresrunminsperaccount maxtresrunminsperuser maxwall maxwalldurationperjob minpriothreshold mintres mintresperjob name preempt preemptexempttime preemptmode priority usagefactor usagethreshold; do sacctmgr show qos format=$c | head -2; done 2>&1
for c in classification cluster controlhost controlport features federation fedstate fedstateraw flags id nodecount nodenames pluginidselect rpc tres share qos defaultqos grpjobs maxjobs; do sacctmgr show cluster format=$c | head -2; done 2>&1
for c in cluster clusternodes duration end event eventraw nodename reason start state stateraw tres user cpucount; do sacctmgr show event format=$c | head -2; done 2>&1
for c in associations cluster end flags id name nodenames start tres unusedwall; do sacctmgr show reservation format=$c | head -2; done 2>&1
for c in allocated cluster count description name server servertype type flags lastconsumed manager; do sacctmgr show resource format=$c | head -2; done 2>&1
for c in action actor info timestamp where; do sacctmgr show transaction format=$c | head -2; done 2>&1
for c in adminlevel coordinators defaultaccount defaultwckey user account partition id; do sacctmgr show user format=$c | head -2; done 2>&1
for c in cluster id user wckey default; do sacctmgr show wckey format=$c | head -2; done 2>&1
for c in account description organization coordinators; do sacctmgr show account format=$c | head -2; done 2>&1
for c in cluster id name partition state timeend timestart; do sacctmgr show runawayjobs format=$c | head -2; done 2>&1
for c in cluster features federation fedstate fedstateraw index; do sacctmgr show federation format=$c | head -2; done 2>&1
for c in id name type; do sacctmgr show tres format=$c | head -2; done 2>&1
for c in account cluster problem user; do sacctmgr show problem format=$c | head -2; done 2>&1
# Conditions.
for w in clusters=bench accounts=a1 users=root users= partition=debug defaultqos=normal fairshare=1 grpjobs=1 qos=normal id=1 parent=root onlydefaults tree withsubaccounts wolimits wopinfo woplimits withusage names=a1 description=x; do echo "$w"; sacctmgr -i -n -P show assoc where $w | sort; done 2>&1
for w in cluster=bench description=a1 name=a1 organization=lab parent=root withcoord withdeleted qos=normal rawusage=0 maxjobs=1 flags=x adminlevel=operator; do echo "$w"; sacctmgr -i -n -P show account where $w | sort; done 2>&1
for w in adminlevel=None name=root newname=x rawusage=0 withcoord description=x organization=lab defaultwckey=w; do echo "$w"; sacctmgr -i -n -P show user where $w | sort; done 2>&1
for w in classification=x federation=x name=bench rpc=1 wolimits withfed flags=External pluginidselect=1 grpjobs=1; do echo "$w"; sacctmgr -i -n -P show cluster where $w format=cluster | sort; done 2>&1
for w in descriptions=q1 id=1 names=q1 preemptmode=cluster withdeleted; do echo "$w"; sacctmgr -i -n -P show qos where $w format=name | sort; done 2>&1
for w in id=1 name=x type=cpu cpu; do echo "$w"; sacctmgr -i -n -P show tres where $w format=type,name | sort; done 2>&1
for w in clusters=bench id=1 names=w user=root; do echo "$w"; sacctmgr -i -n -P show wckey where $w | sort; done 2>&1
for w in cluster=bench accounts=a1 users=root partition=x tree; do echo "$w"; sacctmgr -i -n -P show problem where $w | sort; done 2>&1
for w in cluster=bench; do echo "$w"; sacctmgr -i -n -P show runawayjobs where $w | sort; done 2>&1
for w in clusters=bench names=x nodes=n1 flags=x; do echo "$w"; sacctmgr -i -n -P show reservation where $w | sort; done 2>&1
for w in clusters=bench name=x tree; do echo "$w"; sacctmgr -i -n -P show federation where $w | sort; done 2>&1
for w in all_clusters all_time clusters=bench condflags=open condflags=x event=cluster event=node event=x maxcpus=1 mincpus=1 nodes=n1 reason=x states=down states=x user=root colour=x; do echo $w; sacctmgr -n -P show event where $w format=cluster,nodename,event,state,reason,user; done 2>&1
# Who was not asked for is not changed.
sacctmgr -i modify user where organization=lab set maxjobs=3; sacctmgr -n -P show assoc format=account,user,maxjobs | sort
sacctmgr -i modify qos where id=99 set priority=3; sacctmgr -i modify qos where description=q2 set priority=4; sacctmgr -n -P show qos format=name,priority
sacctmgr -i modify user where partition=debug set adminlevel=administrator; sacctmgr -n -P show user format=user,adminlevel
sacctmgr -i delete user where description=x; sacctmgr -n -P show user format=user
# A file of one's own, twice: nothing is changed the second time.
sacctmgr dump bench file=$PWD/dump > /dev/null 2>&1; sacctmgr -i load file=$PWD/dump > /dev/null 2>&1; sacctmgr -n -P show assoc where user=daemon format=account,user,partition,share | sort
# What coordinators may.
sacctmgr -i add account k1 parent=root; sacctmgr -i add account k2 parent=root; sacctmgr -i add user games account=k1; sacctmgr -i add user lp account=k1; sacctmgr -i add coordinator account=k1 names=games | tail -3; sacctmgr -n -P show account k1 withcoord; sacctmgr -n -P show user games withcoord
}; as 5 sacctmgr -i add account k11 parent=k1; sacctmgr -n -P show assoc where account=k11 format=account,parentname
}; as 5 sacctmgr -i add account k21 parent=k2; sacctmgr -n -P show assoc where account=k21 format=account,parentname
}; as 5 sacctmgr -i add user news account=k1; sacctmgr -n -P show assoc where account=k1 user=news format=account,user
}; as 5 sacctmgr -i add user news account=k2; sacctmgr -n -P show assoc where account=k2 user=news format=account,user
}; as 5 sacctmgr -i modify user where name=lp account=k1 set maxjobs=3 fairshare=5; sacctmgr -n -P show assoc where account=k1 user=lp format=account,user,share,maxjobs
}; as 5 sacctmgr -i modify account where name=k1 set grpjobs=3; sacctmgr -n -P show assoc where account=k1 user= format=account,grpjobs
}; as 5 sacctmgr -i modify account where name=k11 set grpjobs=3 description=mine; sacctmgr -n -P show account k11
}; as 5 sacctmgr -i modify user where name=lp set adminlevel=operator; sacctmgr -n -P show user lp format=user,adminlevel
}; as 5 sacctmgr -i modify user where name=lp account=k1 set qos+=q2; as 5 sacctmgr -i modify user where name=games account=k1 set maxjobs=9
}; as 5 sacctmgr -i add coordinator account=k1 names=lp | tail -2; sacctmgr -n -P show account k1 withcoord
}; as 5 sacctmgr -i add qos kq; as 5 sacctmgr -i modify qos q1 set priority=99; as 5 sacctmgr -i add cluster kc; as 5 sacctmgr -i delete qos q2
}; as 5 sacctmgr -i delete user news account=k1; as 5 sacctmgr -i delete account k11; as 5 sacctmgr -i delete account k2; sacctmgr -n -P show assoc where account=k1,k11,k2 format=account,user | sort
}; as 7 sacctmgr -i modify user where name=lp account=k1 set maxjobs=30; as 7 sacctmgr -i add account mine; as 7 sacctmgr -i delete account k1
