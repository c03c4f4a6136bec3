"""qtoolkit (of jobflow-remote): Slurm's commands and parsers."""
# packages: qtoolkit
import subprocess
import time

from qtoolkit.core.data_objects import QState
from qtoolkit.io.slurm import SlurmIO

io = SlurmIO()


def run(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True)


open("job.sh", "w").write("#!/bin/bash\n#SBATCH -J q\nsleep 3\n")
done = run(io.get_submit_cmd("job.sh"))
result = io.parse_submit_output(done.returncode, done.stdout, done.stderr)
assert result.job_id, result
time.sleep(0.5)
done = run(io.get_jobs_list_cmd([result.job_id], None))
jobs = io.parse_jobs_list_output(done.returncode, done.stdout, done.stderr)
assert jobs and jobs[0].state == QState.RUNNING, jobs
done = run(io.get_job_cmd(result.job_id))
assert io.parse_job_output(done.returncode, done.stdout, done.stderr).job_id == result.job_id
done = run(io.get_cancel_cmd(result.job_id))
io.parse_cancel_output(done.returncode, done.stdout, done.stderr)
