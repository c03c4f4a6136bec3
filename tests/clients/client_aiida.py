"""aiida: its Slurm plugin's own commands and parsers, run here."""
# packages: aiida-core
import subprocess

from aiida.schedulers.datastructures import JobState
from aiida.schedulers.plugins.slurm import SlurmScheduler

scheduler = SlurmScheduler()


def run(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


open("job.sh", "w").write("#!/bin/bash\n#SBATCH --job-name=aiida --ntasks=1\nsleep 3\n")
job = scheduler._parse_submit_output(*run(scheduler._get_submit_command("job.sh")))
import time

time.sleep(0.5)
listed = scheduler._parse_joblist_output(*run(scheduler._get_joblist_command(jobs=[job])))
assert [one.job_id for one in listed] == [job] and listed[0].job_state == JobState.RUNNING, listed
while scheduler._parse_joblist_output(*run(scheduler._get_joblist_command(jobs=[job]))):
    time.sleep(0.5)
code, out, err = run(scheduler._get_detailed_job_info_command(job))
assert code == 0, err
scheduler.parse_output({"retval": code, "stdout": out, "stderr": err}, "", "")
fields = dict(zip(out.splitlines()[0].split("|"), out.splitlines()[1].split("|")))
assert fields["State"] == "COMPLETED", fields
other = scheduler._parse_submit_output(*run(scheduler._get_submit_command("job.sh")))
assert scheduler._parse_kill_output(*run(scheduler._get_kill_command(other)))
