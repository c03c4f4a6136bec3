"""pysqa: a queue adapter."""
# packages: pysqa
import time

from pysqa import QueueAdapter

queue = QueueAdapter(queue_type="SLURM")
job = queue.submit_job(job_name="p", working_directory=".", cores=1, command="sleep 2; echo done > done", submission_template="""\
#!/bin/bash
#SBATCH --job-name={{job_name}}
#SBATCH --chdir={{working_directory}}
#SBATCH --ntasks={{cores}}
{{command}}
""")
assert queue.get_status_of_job(process_id=job) in ("running", "pending"), queue.get_status_of_job(process_id=job)
assert job in queue.get_queue_status()["jobid"].tolist()
deadline = time.time() + 60
while queue.get_status_of_job(process_id=job) in ("running", "pending") and time.time() < deadline:
    time.sleep(0.5)
assert open("done").read() == "done\n"
other = queue.submit_job(job_name="p2", working_directory=".", cores=1, command="sleep 100", submission_template="#!/bin/bash\n{{command}}\n")
queue.delete_job(process_id=other)
