# ray: a head and a worker as steps of one allocation, as its manual's script for Slurm does it.
# packages: ray
set -e
cat > job.sh <<'S'
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --cpus-per-task=4 --mem=3G --output=job.log --time=5
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
port=$((20000 + SLURM_JOB_ID % 10000))
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID
srun --nodes=1 --ntasks=1 -w "$head_node" ray start --head --node-ip-address=127.0.0.1 --port=$port --num-cpus 1 --include-dashboard=false --block > head.log 2>&1 &
for i in $(seq 60); do ray status --address 127.0.0.1:$port > /dev/null 2>&1 && break; sleep 1; done
srun --nodes=1 --ntasks=1 -w "${nodes_array[1]}" ray start --address 127.0.0.1:$port --num-cpus 1 --block > worker.log 2>&1 &
python -u work.py 127.0.0.1:$port
scancel --signal=TERM "$SLURM_JOB_ID"
S
cat > work.py <<'S'
import sys, time
import ray

ray.init(address=sys.argv[1])
deadline = time.time() + 60
while ray.cluster_resources().get("CPU", 0) < 2 and time.time() < deadline:
    time.sleep(0.5)

@ray.remote
def square(x):
    return x * x

assert ray.cluster_resources()["CPU"] == 2
open("result", "w").write(str(sum(ray.get([square.remote(x) for x in range(5)]))))
S
sbatch --wait job.sh || true
cat job.log
[ "$(cat result)" = 30 ]
