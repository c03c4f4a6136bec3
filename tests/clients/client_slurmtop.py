"""slurmtop: its two tables, from `sinfo -sh` and `squeue --json`."""
# packages: slurmtop
import subprocess

from slurmtop._data import SinfoData, SqueueData

job = subprocess.run(["sbatch", "--parsable", "-J", "shown", "--wrap", "sleep 60"], check=True, capture_output=True, text=True).stdout.strip()
subprocess.run(["sbatch", "-H", "-J", "held", "--wrap", "true"], check=True)
subprocess.run(["srun", "--jobid", job, "--overlap", "true"], check=True)
partitions = SinfoData().data
assert [(one[0].rstrip("*"), one[1] + one[2] + one[3]) for one in partitions] == [("main", 2)], partitions
jobs = {one["name"]: one for one in SqueueData().jobs}
assert jobs["shown"]["job_state"] == "RUNNING" and jobs["shown"]["node_number"] == "1", jobs
assert jobs["shown"]["nodes"] in ("n1", "n2") and jobs["shown"]["time_elapse"], jobs
assert jobs["held"]["job_state"] == "PENDING", jobs
