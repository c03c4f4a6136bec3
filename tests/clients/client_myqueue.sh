# MyQueue: finds the cluster's partitions, submits tasks with dependencies, lists and removes them.
# packages: myqueue
set -e
export HOME=$PWD/home; mkdir -p $HOME/.myqueue w; cd w
cat > $HOME/.myqueue/config.py <<'S'
config = {"scheduler": "slurm", "nodes": [("main", {"cores": 8, "memory": "8000MB"})]}
S
mq init
mq config slurm || true
printf 'import time; time.sleep(1); print("one")\n' > one.py
printf 'print("two")\n' > two.py
printf 'raise SystemExit(3)\n' > bad.py
printf 'import time; time.sleep(200)\n' > slow.py
mq submit one.py -R 1:2m
mq submit two.py -R 1:2m -d one.py
mq submit bad.py -R 1:2m
mq submit slow.py -R 1:5m
ended() { for i in $(seq 200); do mq ls 2> /dev/null | grep -q "$1.*$2" && return; mq kick > /dev/null 2>&1 || true; sleep 0.3; done; mq ls; squeue; exit 1; }
ended two.py done
ended bad.py FAILED
ended slow.py running
mq rm -s r .
for i in $(seq 100); do [ -z "$(squeue -h)" ] && break; sleep 0.3; done
[ -z "$(squeue -h)" ]
cat two.py.*.out one.py.*.out | sort | paste -sd, | grep -q one,two
