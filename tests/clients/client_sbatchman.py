"""sbatchman: a project, a configuration, jobs one after the other; their states come from `sacct -D`."""
# packages: sbatchman
import os
import pathlib
import time

os.environ["XDG_CONFIG_HOME"] = str(pathlib.Path.cwd() / "settings")
import sbatchman as sbm
from sbatchman.config.global_config import set_cluster_name

set_cluster_name("spur")
sbm.init_project(pathlib.Path.cwd(), no_logo=True)
sbm.create_slurm_config("small", cluster_name="spur", partition="main", ntasks="1", cpus_per_task=1, mem="100M", time="00:05:00")
good = sbm.launch_job("small", "sleep 1; echo it works", tag="good")
bad = sbm.launch_job("small", "exit 3", tag="bad", previous_job_id=good.job_id)
assert sbm.count_active_jobs() >= 1
give_up = time.time() + 90
while sbm.count_active_jobs() and time.time() < give_up:
    time.sleep(0.5)
sbm.update_jobs_status()
states = {job.tag: str(job.status) for job in sbm.jobs_list()}
assert states == {"good": "COMPLETED", "bad": "FAILED"}, states
assert "it works" in next(pathlib.Path.cwd().rglob("good/**/stdout.log")).read_text()
