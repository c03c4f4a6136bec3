# slurm-script-generator: a script is written and submitted; its views of queue, history and waiting.
# packages: slurm-script-generator
set -e
export COLUMNS=150
python - <<'PY'
from slurm_script_generator import SlurmScript
script = SlurmScript(custom_commands=["srun -l hostname", "echo made $SLURM_JOB_NAME $SLURM_NNODES"], job_name="made", nodes=2, ntasks_per_node=1, time="00:05:00", output="made-%j.out")
script.save("made.sh")
print(open("made.sh").read())
job = script.submit_job("submitted.sh")
print(job)
open("job", "w").write(str(job))
PY
cat job
slurm-queue
until sacct -n -X -o state --name made | grep -q COMPLETED; do sleep 0.5; done
grep -q "made made 2" made-*.out
slurm-history | tee history.txt
grep -qE "root|$(id -un)" history.txt
slurm-stats | grep -q "By Partition"
