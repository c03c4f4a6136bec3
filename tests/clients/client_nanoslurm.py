"""nanoslurm: submit, wait, look, cancel, and its statistics."""
# packages: nanoslurm
import time

from nanoslurm import stats
from nanoslurm.job import list_jobs, submit

asked = dict(cluster="main", time="00:05:00", cpus=1, memory=1, gpus=0)
job = submit("sleep 2; echo done", name="nano", **asked)
assert job.status in ("PENDING", "RUNNING"), job.status
assert job.info()["JobId"] == str(job.id)
assert job.id in [one.id for one in list_jobs()]
give_up = time.time() + 60
while job.is_running() and time.time() < give_up:
    time.sleep(0.3)
assert "done" in job.tail(), job.tail()
other = submit("sleep 100", name="other", **asked)
other.cancel()
assert sum(stats.node_state_counts().values()) == 2, stats.node_state_counts()
assert set(stats.partition_node_state_counts()) == {"main"}
assert "main" in stats.partition_utilization()
stats.recent_completions()
stats.job_history()
