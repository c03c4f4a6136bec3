"""slurm-dashboard: what its web pages ask squeue, sacct, sstat and scontrol."""
# packages: slurm-dashboard
import getpass
import pathlib
import subprocess
import time

from slurm_dashboard.services import slurm

user = getpass.getuser()
pathlib.Path("job.sh").write_text("#!/bin/bash\n#SBATCH -J again -o again.out\necho again\n")
run = lambda *words: subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
done = run("sbatch", "-W", "--parsable", "--mem=100", "job.sh")
running = run("sbatch", "--parsable", "-J", "long", "--mem=100", "--wrap", "srun sleep 100")
give_up = time.time() + 60
while f"{running}.0" not in run("squeue", "-h", "-s", "-o", "%i") and time.time() < give_up:
    time.sleep(0.3)
waiting = run("sbatch", "--parsable", "-J", "later", f"--dependency=afterok:{running}", "--wrap", "true")
history = {one["id"]: one for one in slurm.get_job_history(user)}
print(history)
assert history[done]["state"] == "COMPLETED", history
mine = {one["id"]: one for one in slurm.get_running_jobs(user)}
print(mine)
assert {running, waiting} <= set(mine), mine
for ask in (slurm.get_job_efficiency, slurm.get_job_submit_info):
    told = ask(done, user)
    print(ask.__name__, told)
    assert told and not told.get("error"), (ask, told)
told = slurm.get_job_resources(running)
print(told)
assert told and not told.get("error"), told
for ask in (slurm.get_queue_info, slurm.get_queue_positions, slurm.get_historical_wait_time, slurm.get_job_dependencies, slurm.get_job_insights):
    told = ask(user)
    print(ask.__name__, told)
    assert not told.get("error"), (ask, told)
assert waiting in str(slurm.get_job_dependencies(user))
assert slurm.cancel_job(running)[0]
