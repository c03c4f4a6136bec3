# richqueue: the queue, history and idle nodes as tables, from JSON; a job sent by its own sbatch.
# packages: richqueue
set -e
export COLUMNS=200 LOGS=$PWD
job=$(sbatch --parsable -J shown -c2 -o /dev/null --wrap 'sleep 300')
done=$(sbatch --parsable -W -J gone -o /dev/null --wrap true)
until [ "$(squeue -h -j "$job" -o %t)" = R ]; do sleep 0.1; done
rq --no-loop > queue
grep -qE "$job +shown +1 +2 .* Running" queue || { cat queue; exit 1; }
rq --no-loop --hist 1 | grep -qE "$done +gone .* Complete"
rq --no-loop --idle > idle
grep -qE 'Mixed +n1 +main +6 ' idle && grep -q n2 idle || { cat idle; exit 1; }
printf '#!/bin/bash\nsleep 300\n' > job.sh
sb --job-name sent job.sh > sent || { cat sent; exit 1; }
squeue -h -n sent -o %j | grep -qx sent
scancel "$job" -n sent
