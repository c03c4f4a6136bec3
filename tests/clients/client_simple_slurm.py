"""simple_slurm: sbatch and squeue from Python."""
# packages: simple_slurm
import datetime
import time

from simple_slurm import Slurm

slurm = Slurm(array=range(0, 2), cpus_per_task=1, job_name="name", output=f"{Slurm.JOB_ARRAY_MASTER_ID}_{Slurm.JOB_ARRAY_ID}.out",
              time=datetime.timedelta(minutes=5))
job = slurm.sbatch("echo hello from " + Slurm.SLURM_ARRAY_TASK_ID)
after = Slurm(dependency=dict(afterok=job), output="after.out").sbatch("echo after", shell="/bin/sh")
for _ in range(200):
    slurm.squeue.update_squeue()
    if str(after) not in str(slurm.squeue.jobs):
        break
    time.sleep(0.2)
assert open("after.out").read() == "after\n"
