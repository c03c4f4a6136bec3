"""adaptive-scheduler: its Slurm scheduler's view of the queue and the partitions, and its executor."""
# packages: adaptive-scheduler ipyparallel setuptools
import subprocess

from adaptive_scheduler._scheduler import slurm

partitions = slurm.slurm_partitions()
assert "main" in partitions, partitions
scheduler = slurm.SLURM(cores=1, partition="main", executor_type="process-pool")
job = subprocess.run(["sbatch", "--parsable", "-J", "adaptive", "--wrap", "sleep 60"], capture_output=True, text=True, check=True).stdout.strip()
found = scheduler.queue()
assert job in found and found[job]["state"] in ("RUNNING", "PENDING"), found
assert found[job]["job_name"] == "adaptive", found
scheduler.cancel(["adaptive"], with_progress_bar=False)
assert job not in scheduler.queue()
