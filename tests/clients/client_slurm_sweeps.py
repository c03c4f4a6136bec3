"""slurm_sweeps: a sweep whose trials are `srun --exclusive` steps of one batch job."""
# packages: slurm-sweeps
import json
import pathlib
import subprocess

pathlib.Path("sweep.py").write_text('''import json
import os
from pathlib import Path

import slurm_sweeps as ss


def train(cfg):
    for epoch in range(2):
        ss.log({"loss": (cfg["x"] - 2) ** 2 + epoch}, epoch)
    with open(os.environ["SWEEP_NOTES"], "a") as notes:
        print(os.environ["SLURM_STEP_ID"], file=notes)


if __name__ == "__main__":
    sweep = ss.Experiment(train=train, cfg={"x": ss.Uniform(0, 4)}, name="x")
    table = sweep.run(n_trials=5)
    Path("result.json").write_text(json.dumps([type(sweep._backend).__name__, len(table)]))
''')
notes = pathlib.Path("notes").resolve()
line = f"export SWEEP_NOTES={notes}; python sweep.py"
subprocess.run(["sbatch", "-W", "-n3", "-o", "sweep.out", "--wrap", line], check=True, timeout=200)
backend, n_rows = json.loads(pathlib.Path("result.json").read_text())
assert backend == "SlurmBackend" and n_rows >= 5, (backend, n_rows)
assert len(set(notes.read_text().split())) == 5, notes.read_text()
