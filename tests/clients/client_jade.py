"""NREL-jade: its Slurm manager's submissions and looks at the queue."""
# packages: NREL-jade setuptools
import os
import time

from jade.hpc.common import HpcJobStatus
from jade.hpc.slurm_manager import SlurmManager
from jade.models.hpc import HpcConfig, SlurmConfig

os.environ.setdefault("USER", "root")
manager = SlurmManager(HpcConfig(hpc_type="slurm", hpc=SlurmConfig(account="none", walltime="0:05:00", nodes=1)))
with open("run.sh", "w") as script:
    script.write("#!/bin/bash\nsleep 2; echo done > done\n")
os.chmod("run.sh", 0o755)
manager.create_submission_script("jade", "./run.sh", "submit.sh", ".")
status, job, error = manager.submit("submit.sh")
assert job, error
info = manager.check_status(job_id=job)
assert info.name == "jade" and info.status in (HpcJobStatus.QUEUED, HpcJobStatus.RUNNING), info
assert job in manager.check_statuses()
give_up = time.time() + 60
while manager.check_status(job_id=job).status in (HpcJobStatus.QUEUED, HpcJobStatus.RUNNING, HpcJobStatus.COMPLETE) and time.time() < give_up:
    if os.path.exists("done"):
        break
    time.sleep(0.5)
assert open("done").read() == "done\n"
