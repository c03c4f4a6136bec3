"""radical.saga: a job service over the local Slurm."""
# packages: radical.saga
import radical.saga as saga

service = saga.job.Service("slurm://localhost/")
description = saga.job.Description()
description.executable = "/bin/sleep"
description.arguments = ["2"]
description.queue = "main"
description.wall_time_limit = 2
description.total_cpu_count = 1
job = service.create_job(description)
job.run()
job.wait(120)
assert job.state == saga.job.DONE, job.state
