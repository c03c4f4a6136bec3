"""slurmtui: its screens from squeue, sacct and sinfo as JSON; a job deleted by its keys."""
# packages: slurmtui
import asyncio
import subprocess
import time

from slurmtui import slurm_utils
from slurmtui.main import SlurmTUI
from slurmtui.utils import SETTINGS


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


done = said("sbatch", "--parsable", "-W", "-J", "done", "-o", "/dev/null", "--wrap", "true")
job = said("sbatch", "--parsable", "-J", "shown", "-t", "30", "-o", "log-%j", "--wrap", "echo hello; sleep 300")
array = said("sbatch", "--parsable", "-H", "-a", "1-4", "-o", "/dev/null", "--wrap", "sleep 300")
while said("squeue", "-h", "-j", job, "-o", "%t") != "R":
    time.sleep(0.1)
settings = SETTINGS()
jobs = slurm_utils.get_running_jobs(settings)
assert jobs[int(job)]["job_state"] == ["RUNNING"] and int(array) in jobs, jobs.keys()
history = slurm_utils.get_old_jobs(settings, "now-1days", "now")
assert int(done) in [int(one) for one in history], history
resources = slurm_utils.get_resources(settings)
assert (resources["main"]["nodes_total"], resources["main"]["cpus_total"]) == (2, 16), resources


async def draw():
    app = SlurmTUI()
    async with app.run_test(size=(180, 50)) as pilot:
        for _ in range(10):
            await pilot.pause(0.2)
        await pilot.press("down", "enter")
        await pilot.pause(0.5)
        await pilot.press("escape")
        await pilot.pause(0.5)


asyncio.run(draw())
said("scancel", job, array)
