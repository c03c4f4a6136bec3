"""Pulsar (and Galaxy): the command-line runner's submit, status and delete, as its own class makes and reads them."""
# packages: pulsar-app
import subprocess
import time

from pulsar.managers.util.cli.job import job_states
from pulsar.managers.util.cli.job.slurm import Slurm

runner = Slurm(partition="main", ncpus="1", time="5")


def shell(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20)


words = runner.job_script_kwargs("out", "err", "galaxy_1")
open("job.sh", "w").write(f"#!/bin/bash\n{words['headers']}\nsleep 2; echo done\n")
done = shell(runner.submit("job.sh"))
job = done.stdout.strip().split()[-1]
assert done.returncode == 0 and job.isdigit(), done
states, give_up = [], time.time() + 60
while time.time() < give_up:
    state = runner.parse_status(shell(runner.get_status()).stdout, [job]).get(job)
    single = runner.parse_single_status(shell(runner.get_single_status(job)).stdout, job)
    states.append(state)
    if state is None and single == job_states.OK:
        break
    time.sleep(0.3)
assert job_states.RUNNING in states and state is None, states
assert open("out").read() == "done\n"
