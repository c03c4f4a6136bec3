"""torchx: its Slurm scheduler submits, describes and cancels."""
# packages: torchx
import subprocess, sys, time

done = subprocess.run([sys.executable, "-m", "torchx.apps.utils.noop_main"], capture_output=True)
from torchx.schedulers.slurm_scheduler import create_scheduler
from torchx.specs import AppDef, AppState, Resource, Role

import os
scheduler = create_scheduler("session")
app = AppDef(name="x", roles=[Role(name="r", image=os.getcwd(), entrypoint="/bin/sleep", args=["3"], num_replicas=1, resource=Resource(cpu=1, gpu=0, memMB=100))])
config = scheduler.run_opts().resolve({"partition": "main", "time": "2", "nomem": False, "job_dir": None})
identifier = scheduler.schedule(scheduler.submit_dryrun(app, config))
for _ in range(200):
    described = scheduler.describe(identifier)
    if described and described.state in (AppState.SUCCEEDED, AppState.FAILED):
        break
    time.sleep(0.3)
assert described.state == AppState.SUCCEEDED, described
# Its `list()` (0.7.0) reads states as a 22.05 writes them, not as lists: so it is with every Slurm since 23.11. It works where
# DataParserParameters=v0.0.38.
