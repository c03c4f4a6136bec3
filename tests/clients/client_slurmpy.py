"""slurmpy: scripts from templates."""
# packages: slurmpy
import os, time
from slurmpy import Slurm

job = Slurm("name", {"partition": "main", "time": "00:02:00"}).run("echo done > done")
for _ in range(200):
    if os.path.exists("done"):
        break
    time.sleep(0.1)
assert open("done").read() == "done\n", job
