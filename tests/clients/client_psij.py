"""psij: a job through the portable interface; its end, its failure and its cancellation are told."""
# packages: psij-python
from datetime import timedelta

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1

executor = JobExecutor.get_instance("slurm")


def submit(executable, *arguments):
    spec = JobSpec(
        executable=executable, arguments=list(arguments), stdout_path="psij.out",
        resources=ResourceSpecV1(node_count=1, processes_per_node=1, cpu_cores_per_process=1),
        attributes=JobAttributes(duration=timedelta(minutes=2), queue_name="main"), launcher="single",
    )
    job = Job(spec)
    executor.submit(job)
    return job


done = submit("/bin/echo", "hello").wait(timeout=timedelta(minutes=2))
assert done.state == JobState.COMPLETED, done
assert submit("/bin/false").wait(timeout=timedelta(minutes=2)).state == JobState.FAILED
long = submit("/bin/sleep", "300")
long.wait(timeout=timedelta(minutes=1), target_states=[JobState.ACTIVE])
long.cancel()
assert long.wait(timeout=timedelta(minutes=2)).state == JobState.CANCELED
