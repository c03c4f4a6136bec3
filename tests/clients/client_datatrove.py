"""datatrove: a pipeline's tasks as an array of jobs, a second pipeline that depends on it, and its merging of statistics."""
# packages: datatrove[io,processing] regex
import json
import os
import pathlib
import subprocess
import sys
import time

from datatrove.executor.slurm import SlurmPipelineExecutor
from datatrove.pipeline.filters import LambdaFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter

here = pathlib.Path.cwd()
(here / "in").mkdir()
for part in range(4):
    rows = [{"text": f"document {part} {number}", "id": f"{part}-{number}"} for number in range(10)]
    (here / "in" / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
common = dict(time="00:05:00", partition="main", mem_per_cpu_gb=1, env_command=f"export PATH={os.path.dirname(sys.executable)}:$PATH", randomize_start_duration=0)


def even(document):
    return int(document.id.split("-")[1]) % 2 == 0


first = SlurmPipelineExecutor(
    pipeline=[JsonlReader(str(here / "in")), LambdaFilter(even), JsonlWriter(str(here / "mid"), compression=None)],
    job_name="first", tasks=4, workers=2, logging_dir=str(here / "logs1"), **common)
second = SlurmPipelineExecutor(
    pipeline=[JsonlReader(str(here / "mid")), JsonlWriter(str(here / "out"), compression=None)],
    job_name="second", tasks=2, depends=first, logging_dir=str(here / "logs2"), **common)
second.run()
deadline = time.time() + 200
while not (here / "logs2" / "stats.json").exists():
    assert time.time() < deadline, subprocess.run("squeue; tail -n 20 logs*/slurm_logs/*", shell=True, capture_output=True, text=True).stdout
    time.sleep(0.5)
lines = [line for file in (here / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
assert len(lines) == 20, lines
