# Accounts as they are made, shown, changed and taken away; who is due what, and what that makes of priorities. With --accounts.
sacctmgr -i add account a1,a2 fairshare=3
sacctmgr -i add account a11,a12 parent=a1 fairshare=2 description='one one' organization=lab
sacctmgr -i add user root account=a11,a12,a2
sacctmgr -i add user nobody account=a11 fairshare=3
sacctmgr -i add user daemon account=a2 fairshare=5 adminlevel=operator
sacctmgr -i add qos q1,q2 priority=10
sacctmgr -i modify qos q2 set priority=4 maxjobspu=3 grptres=cpu=10,mem=4G maxwall=1-0 flags=DenyOnLimit
sacctmgr -i modify user root set defaultaccount=a11
sacctmgr -i modify user root set qos=normal,q1,q2
sacctmgr -i modify account a1 set maxjobs=10 maxtres=cpu=20
sacctmgr -i modify account where name=a12 set fairshare=7 priority=5
sacctmgr -i add coordinator accounts=a1 names=nobody
# Shown
sacctmgr list account
sacctmgr list account withcoord format=account,coord
sacctmgr list user
sacctmgr list user withassoc where name=root format=user,account,share,qos,defaultaccount
sacctmgr -P list user withassoc where name=nobody
sacctmgr list qos
sacctmgr -P list qos
sacctmgr -p list qos q2 format=name,priority,maxjobspu,grptres,maxwall,flags
sacctmgr -n list qos format=name%-12,priority%5
sacctmgr list assoc where user=nobody
sacctmgr -n -P list assoc where account=a12 format=account,user,share,priority
sacctmgr list assoc where user=root format=account%20,user%-10,defaultqos
sacctmgr list tres format=type,name
sacctmgr list cluster format=cluster,share,qos
sacctmgr list nonsense
sacctmgr nonsense
sacctmgr list assoc format=nonsense
sacctmgr list assoc where colour=red
# Changed and refused
sacctmgr -i add account a11
sacctmgr -i add account x parent=nowhere
sacctmgr -i add user bin account=nowhere
sacctmgr -i add user nosuchuser account=a1
sacctmgr -i add qos q3 flags=Nonsense
sacctmgr -i modify user nobody set qos=nosuch
sacctmgr -i modify user nosuch set fairshare=2
sacctmgr -i modify account a11 set parent=nowhere
sacctmgr -i modify qos q2 set maxjobspu=-1 grptres=cpu=-1,mem=-1 maxwall=-1 flags=-1
sacctmgr -n -P show qos q2 format=name,maxjobspu,grptres,maxwall,flags
sacctmgr -i delete coordinator accounts=a1 names=nobody
sacctmgr -i add user bin account=a2
sacctmgr -i delete user bin
sacctmgr -i delete user bin
sacctmgr -i add account gone
sacctmgr -i delete account gone
sacctmgr -i delete account gone
sacctmgr -i delete qos nosuch
sacctmgr modify account
sacctmgr -i modify account a1 set
sacctmgr delete
# sshare
sacctmgr -i delete user nosuchuser
weighed a2
weighed a2
weighed a2
sshare -a -A a1,a11,a12,a2 -n -P -o account,user,rawshares,normshares,fairshare
sshare -a
sshare -l -a | head -2
sshare -U -n -P -o account,user,rawshares,normshares
sshare -u nobody -n -P -o account,user,rawshares
sshare -A a11 -a -P -o account,user,rawshares
sshare -A nosuch -P
sshare -u nosuch
sshare -e
sshare -a -n -o account%10,user%-6,rawshares%4,normshares%8
sshare -p -A a2 -a -o account,user,rawshares
sshare -P -o colour
sshare -m -a | head -2
sshare extra
# sprio
stays: batch -J blocks -A a2 -N8 --exclusive -t 9; until_state RUNNING; for n in 1 2 3 4; do batch -J w$n -A a11 -n$n -t 1$n -q q$((n % 2 + 1)) --nice=$((n * 7 % 5)); done; batch -J w5 -A a2 --uid=daemon --gid=daemon -D / -N2 -t 20 -p short,debug; batch -J w6 -A a12 -H -t 6; batch -J w7 -A a12 -a 1-3 -t 7; sleep 1
stays: sprio
stays: sprio -l
stays: sprio -n
stays: sprio -n -l
stays: sprio -w
stays: sprio -w -l
stays: sprio -h -u daemon
stays: sprio -h -j 2,3
stays: sprio -h -j 99999
stays: sprio -h -u nosuch
stays: sprio -p short -h
stays: sprio -o '%i|%r|%u|%Y|%S|%A|%B|%F|%J|%P|%Q|%N|%T'
stays: sprio -o '%.5i|%5i|%.3r|%12u|%.14Y|%y|%a|%b|%f|%j|%p|%q|%t'
stays: sprio -o '%!'
stays: orders sprio '%i/%r' $(letters)
stays: orders sprio '%i/%r' $(letters -)
stays: orders sprio '%i/%r' -Y,i Q,-i -r,i u,-Y r,Y,-i 'Y i' +i
stays: sprio --nosuch
stays: sprio -S nosuch
sprio -M bench -h | wc -l
