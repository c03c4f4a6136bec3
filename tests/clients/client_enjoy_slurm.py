"""enjoy-slurm: jobs by sbatch with its dependencies, and all of sacct's fields as a table."""
# packages: enjoy-slurm pandas<3 setuptools
import time

import enjoy_slurm as slurm

first = slurm.sbatch(wrap="srun true", job_name="first", partition="main", output="/dev/null", time="00:05:00")
second = slurm.sbatch(wrap="exit 3", job_name="second", dependency=first, output="/dev/null")
with open("third.sh", "w") as script:
    script.write("#!/bin/bash\n#SBATCH --job-name=third --output=/dev/null\ntrue\n")
job = slurm.Job("third.sh")
job.sbatch(dependency=("afterany", [first, second]))
deadline = time.time() + 60
while job.jobinfo()[job.jobid]["State"] != "COMPLETED":
    assert time.time() < deadline, slurm.sacct()
    time.sleep(0.2)
table = slurm.sacct(jobid=f"{first},{second}", steps="all")
state = dict(zip(table.JobID.astype(str), table.State))
assert state[str(first)] == state[f"{first}.0"] == "COMPLETED" and state[str(second)] == "FAILED", table
everything = slurm.sacct(jobid=first, format="all")
assert len(everything.columns) > 100 and "SubmitLine" in everything.columns, list(everything.columns)
