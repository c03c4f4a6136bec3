"""fireworks: the queue adapter for Slurm."""
# packages: fireworks
import time

from fireworks.user_objects.queue_adapters.common_adapter import CommonAdapter

adapter = CommonAdapter(q_type="SLURM", q_name="main", rocket_launch="sleep 1; echo ran > ran", nodes=1, ntasks=1, walltime="00:02:00",
                        job_name="fw")
with open("script", "w") as script:
    script.write(adapter.get_script_str("."))
job = adapter.submit_to_queue("script")
assert int(job) > 0, job
assert adapter.get_njobs_in_queue() is not None
while adapter.get_njobs_in_queue() > 0:
    time.sleep(0.3)
assert open("ran").read() == "ran\n"
