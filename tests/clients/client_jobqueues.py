"""jobqueues (Acellera): submit folders, watch, stop."""
# packages: jobqueues setuptools
import getpass
import os
import time

from jobqueues.slurmqueue import SlurmQueue

for name, line in (("one", "sleep 2; echo done > done.txt"), ("two", "sleep 100")):
    os.makedirs(name, exist_ok=True)
    with open(f"{name}/run.sh", "w") as script:
        script.write(f"#!/bin/bash\n{line}\n")
    os.chmod(f"{name}/run.sh", 0o755)
queue = SlurmQueue()
queue.partition, queue.ngpu, queue.ncpu, queue.memory, queue.jobname = "main", 0, 1, 100, "jq"
# Left open it writes `--priority=None`, which no Slurm takes.
queue.priority, queue.user = "100", getpass.getuser()
queue.submit("one")
assert queue.inprogress() == 1
give_up = time.time() + 60
while queue.inprogress() > 0 and time.time() < give_up:
    time.sleep(0.5)
assert open("one/done.txt").read() == "done\n"
assert queue.jobInfo(), "what has been is remembered"
queue.submit("two")
assert queue.inprogress() == 1
queue.stop()
give_up = time.time() + 60
while queue.inprogress() > 0 and time.time() < give_up:
    time.sleep(0.5)
assert queue.inprogress() == 0
