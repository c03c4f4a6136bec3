"""easy-slurm: copies sources, runs set-up and job, and moves results; interrupted jobs go on."""
# packages: easy-slurm
import os
import pathlib
import subprocess
import tempfile
import time

import easy_slurm

# What it counts on is a site's own.
os.environ["SLURM_TMPDIR"] = tempfile.mkdtemp()
source = pathlib.Path("source")
source.mkdir()
(source / "work.py").write_text("print('worked')\n")
easy_slurm.submit_job(
    job_dir="jobs/{date:%Y-%m-%d}-first", src=str(source),
    setup="echo set up", setup_resume="echo set up again", on_run="python3 work.py", on_run_resume="true",
    teardown="echo ended", sbatch_options={"job-name": "easy", "nodes": 1, "time": "0:05:00"})
for _ in range(120):
    if not subprocess.run(["squeue", "-h", "-n", "easy"], capture_output=True, text=True).stdout:
        break
    time.sleep(0.5)
said = "".join(path.read_text() for path in pathlib.Path("jobs").glob("*/slurm_*.out")) or "".join(
    path.read_text() for path in pathlib.Path("jobs").rglob("*.out"))
assert "set up" in said and "worked" in said, said
