"""exca: tasks and maps of functions as jobs, their results kept; one that fails."""
# packages: exca setuptools<81
import os
import pathlib
import sys

here = pathlib.Path(os.getcwd())
# What is sent must be found by name in the job.
(here / "work.py").write_text('''
import os
import typing as tp
import exca
import pydantic


class Task(pydantic.BaseModel):
    number: int = 1
    infra: exca.TaskInfra = exca.TaskInfra(version="1")

    @infra.apply
    def run(self) -> tuple:
        if self.number < 0:
            raise ValueError("below zero")
        return self.number * 2, os.environ["SLURM_JOB_ID"]


class Map(pydantic.BaseModel):
    infra: exca.MapInfra = exca.MapInfra(version="1")

    @infra.apply(item_uid=str)
    def run(self, items: tp.Iterable[int]) -> tp.Iterator[tuple]:
        for item in items:
            yield item * item, os.environ["SLURM_JOB_ID"]
''')
sys.path.insert(0, str(here))
os.environ["PYTHONPATH"] = str(here)

import work  # noqa: E402

slurm = {"cluster": "slurm", "folder": str(here / "kept"), "slurm_partition": "main", "timeout_min": 5, "cpus_per_task": 1, "mem_gb": 0.2}
value, job = work.Task(number=21, infra=slurm).run()
assert value == 42 and int(job) > 0
assert work.Task(number=21, infra=slurm).run() == (value, job), "kept"
task = work.Task(number=-1, infra=slurm)
try:
    task.run()
    raise SystemExit("it did not fail")
except Exception as why:
    assert "below zero" in str(why), why
assert task.infra.status() == "failed"
results = list(work.Map(infra={**slurm, "max_jobs": 3}).run(range(9)))
assert [value for value, _ in results] == [n * n for n in range(9)] and len({job for _, job in results}) == 3, results
# An array of tasks.
first = work.Task(infra=slurm)
with first.infra.job_array() as array:
    array.extend(first.infra.clone_obj({"number": number}) for number in range(5, 9))
assert [one.run()[0] for one in array] == [10, 12, 14, 16]
