"""slurmise: what a job used, from `sacct --json`."""
# packages: slurmise setuptools
import subprocess

from slurmise.slurm import parse_slurm_job_metadata

job = subprocess.run(["sbatch", "--parsable", "--wait", "-J", "used", "-n1", "--mem=100", "--wrap", "srun python3 -c 'x = bytearray(50_000_000)'"],
                     capture_output=True, text=True, check=True).stdout.strip()
told = parse_slurm_job_metadata(job)
assert (told["slurm_id"], told["job_name"], told["state"], told["CPUs"]) == (int(job), "used", "COMPLETED", 1), told
assert told["step_id"] == "0" and told["memory_per_node"]["number"] == 100, told
assert told["max_rss"] > 0, told
