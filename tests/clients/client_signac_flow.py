"""signac-flow: operations of a project as jobs."""
# packages: signac-flow
import subprocess
import sys

open("project.py", "w").write('''
import flow
from flow import FlowProject

class Project(FlowProject):
    pass

@Project.post.isfile("done")
@Project.operation
def work(job):
    open(job.fn("done"), "w").write("x")

if __name__ == "__main__":
    Project().main()
''')
import signac

project = signac.init_project()
for n in range(2):
    project.open_job({"n": n}).init()
environment = {**__import__("os").environ, "FLOW_ENV": ""}
out = subprocess.run([sys.executable, "project.py", "status"], capture_output=True, text=True)
assert out.returncode == 0, out.stderr
from flow.scheduling.slurm import SlurmScheduler

scheduler = SlurmScheduler()
script = "#!/bin/bash\n#SBATCH --job-name=flow-1\n" + f"{sys.executable} project.py run\n"
assert scheduler.submit(script)
names = [job.name() for job in scheduler.jobs()]
assert "flow-1" in names, names
import time

deadline = time.time() + 90
while not all(job.isfile("done") for job in project) and time.time() < deadline:
    time.sleep(0.5)
assert all(job.isfile("done") for job in project)
