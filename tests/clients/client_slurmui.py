"""slurmui: its tables of jobs, their logs and GPUs, from squeue and scontrol."""
# packages: slurmui textual<0.32
import subprocess
import time

from slurmui import slurmui as ui


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


job = said("sbatch", "--parsable", "-J", "shown", "-o", "log-%j", "--wrap", "echo hello; sleep 300")
while said("squeue", "-h", "-j", job, "-o", "%t") != "R":
    time.sleep(0.1)
table = ui.get_squeue()
row = table[table["JOBID"].astype(str).str.strip() == job].iloc[0]
assert (row["NAME"].strip(), row["STATE"].strip(), row["NODELIST(REASON)"].strip()) == ("shown", "RUNNING", "n1"), row
log = ui.get_log_fn(job)
assert log.endswith(f"log-{job}"), log
deadline = time.time() + 30
while "hello\n" not in ui.read_log(log):
    assert time.time() < deadline
    time.sleep(0.1)
ui.get_job_gpu_ids(job)
said("scancel", job)
