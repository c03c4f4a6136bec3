# gwf: targets with dependencies as jobs.
# packages: gwf setuptools<81
set -e
cat > workflow.py <<'S'
from gwf import Workflow

gwf = Workflow()
gwf.target("one", inputs=[], outputs=["one.txt"], cores=1, memory="100m", walltime="00:02:00", queue="main") << "echo 1 > one.txt"
gwf.target("two", inputs=["one.txt"], outputs=["two.txt"], cores=1, memory="100m", walltime="00:02:00", queue="main") << "cat one.txt one.txt > two.txt"
S
gwf config set backend slurm
gwf run
for i in $(seq 100); do [ -s two.txt ] && break; sleep 0.3; done
[ "$(paste -sd, two.txt)" = 1,1 ]
for i in $(seq 50); do [ "$(gwf status 2>&1 | grep -ci completed)" -ge 2 ] && break; sleep 0.3; done
gwf status
gwf status | grep -q completed
gwf logs one
