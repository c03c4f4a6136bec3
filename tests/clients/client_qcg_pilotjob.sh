# QCG-PilotJob: a manager inside an allocation of two nodes; its agents are steps, its tasks are spread over them.
# packages: qcg-pilotjob setuptools<81
set -e
cat > jobs.json <<'JSON'
[{"request": "submit", "jobs": [
   {"name": "one", "execution": {"exec": "/bin/echo", "args": ["done"], "stdout": "one.out"}, "resources": {"numCores": {"exact": 1}}},
   {"name": "four", "iteration": {"stop": 4}, "execution": {"exec": "/bin/bash", "args": ["-c", "echo ${it} $QCG_PM_NPROCS"], "stdout": "four.${it}.out"},
    "resources": {"numCores": {"exact": 1}}}]},
 {"request": "control", "command": "finishAfterAllTasksDone"}]
JSON
# Tasks are bound by number: no node may have more than the machine has.
sbatch -W -N2 --ntasks-per-node=2 -t 5 -o manager.log --wrap "qcg-pm-service --file --file-path jobs.json --wd work --log debug"
[ "$(cat work/one.out)" = done ]
[ "$(cat work/four.?.out)" = "$(printf '0 1\n1 1\n2 1\n3 1')" ]
ls work/nl-agent-n1.log work/nl-agent-n2.log
