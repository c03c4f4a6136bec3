"""slurmwatch: a running job measured once, by a step beside its own and by sstat."""
# packages: slurmwatch
import json
import subprocess


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


job = said("sbatch", "--parsable", "-n1", "--mem=200", "-J", "watched", "--wrap", "srun sleep 300")
while said("squeue", "-h", "-s", "-j", job, "-o", "%i").count(".") < 2:
    pass
seen = json.loads(said("slurmwatch", "--once", "--json", job).splitlines()[-1])
assert (seen["job_id"], seen["job_name"], seen["partition"], seen["hostname"]) == (job, "watched", "main", "n1"), seen
assert seen["cpu"]["cores_allocated"] == 1 and seen["memory"]["limit_bytes"] == 200 << 20, seen
assert seen["memory"]["current_bytes"] > 0, seen
said("scancel", job)
