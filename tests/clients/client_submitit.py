"""submitit: functions as jobs, alone and as an array; failures and cancellation are told."""
# packages: submitit setuptools<81
import submitit

executor = submitit.AutoExecutor(folder="submitit-%j")
executor.update_parameters(timeout_min=2, slurm_mem="200M", cpus_per_task=1, slurm_array_parallelism=2)
assert executor.submit(pow, 2, 10).result() == 1024
assert [job.result() for job in executor.map_array(pow, [1, 2, 3], [2, 2, 2])] == [1, 4, 9]
failed = executor.submit(int, "x")
try:
    failed.result()
    raise SystemExit("the failure was not told")
except submitit.core.utils.FailedJobError:
    pass
import time
long = executor.submit(time.sleep, 300)
while long.state != "RUNNING":
    time.sleep(0.5)
long.cancel()
while not long.done(force_check=True):
    time.sleep(0.5)
assert long.state.startswith("CANCELLED"), long.state
