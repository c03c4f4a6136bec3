"""law (luigi analysis workflow): its Slurm job files and its manager's submit, query and cancel."""
# packages: law
import os
import time

import law

law.contrib.load("slurm")
from law.contrib.slurm import SlurmJobFileFactory, SlurmJobManager  # noqa: E402

os.makedirs("jobs", exist_ok=True)
factory = SlurmJobFileFactory(dir=os.path.abspath("jobs"), mkdtemp=False, command="sleep 1 && echo done", job_name="lawjob",
                              partition="main", postfix_output_files=False)
made = factory.create()
file = made[0] if isinstance(made, tuple) else made.job_file if hasattr(made, "job_file") else made
manager = SlurmJobManager(partition="main")


def submit(file):
    ids = manager.submit(str(file))
    return ids[0] if isinstance(ids, (list, tuple)) else ids


def follow(job):
    seen, give_up = [], time.time() + 60
    while time.time() < give_up:
        seen.append(manager.query(job)["status"])
        if seen[-1] in (manager.FINISHED, manager.FAILED):
            return seen
        time.sleep(0.2)
    raise SystemExit(f"no end: {seen}")


job = submit(file)
seen = follow(job)
assert seen[-1] == manager.FINISHED and manager.RUNNING in seen, seen
assert open("jobs/stdout.txt").read().strip().endswith("done")
bad = factory.create(command="exit 3")
bad = bad[0] if isinstance(bad, tuple) else bad.job_file if hasattr(bad, "job_file") else bad
job = submit(bad)
assert follow(job)[-1] == manager.FAILED
assert manager.query(job)["code"] == 3, manager.query(job)
slow = factory.create(command="sleep 100")
slow = slow[0] if isinstance(slow, tuple) else slow.job_file if hasattr(slow, "job_file") else slow
job = submit(slow)
manager.cancel(job)
assert follow(job)[-1] == manager.FAILED
file = factory.create()
file = file[0] if isinstance(file, tuple) else file.job_file if hasattr(file, "job_file") else file
many = [submit(file) for _ in range(3)]
give_up = time.time() + 60
while any(manager.query(many)[one]["status"] != manager.FINISHED for one in many):
    assert time.time() < give_up
    time.sleep(0.3)
print("ok")
