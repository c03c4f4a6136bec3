"""sluurp: a script submitted with `--export=NONE`, waited for, looked at, and one that is cancelled; partitions and their limits."""
# packages: sluurp packaging
import pathlib
import time

from sluurp import utils
from sluurp.executor import submit
from sluurp.job import SBatchScriptJob, cancel_slurm_job, get_job_status, get_my_jobs

here = pathlib.Path.cwd()


def job(name, line):
    wanted = {"memory": 1, "partition": "main", "n_tasks": 1, "cpu-per-task": 1}
    return SBatchScriptJob(script=(line,), script_path=here / f"{name}.sh", clean_script=False, slurm_config=wanted)


future = submit(job("done", "sleep 1; echo worked for $SLURM_JOB_ID"), timeout=60)
assert future.result(timeout=120) == "completed"
assert f"worked for {future.job_id}\n" in future.collect_logs(), future.collect_logs()

other = submit(job("cancelled", "sleep 300"), timeout=60)
assert other.job_id in get_my_jobs()
cancel_slurm_job(other.job_id)
give_up = time.time() + 60
while get_job_status(other.job_id) != "cancelled" and time.time() < give_up:
    time.sleep(0.3)
assert other.result(timeout=60) == "cancelled"

assert list(utils.get_partitions()) == ["main"]
assert utils.get_partition_gpus("main") == ()
assert utils.get_partition_walltime("main"), utils.get_partition_walltime("main")
