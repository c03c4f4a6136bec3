"""libEnsemble: a manager and workers in an allocation of two nodes, which find its nodes and start tasks by srun."""
# packages: libensemble setuptools<81
import os
import pathlib
import subprocess
import sys

# Its workers look at their nodes by mpirun, if there is one.
os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
if "SLURM_JOB_ID" not in os.environ:
    done = subprocess.run(["sbatch", "-W", "-N2", "--ntasks-per-node=2", "-t", "5", "-o", "ensemble.log", "--wrap", f"{sys.executable} {__file__}"])
    print(pathlib.Path("ensemble.log").read_text())
    assert done.returncode == 0
    said = sorted(path.read_text() for path in pathlib.Path(".").rglob("task.out"))
    assert len(said) == 4 and all(text == "2\n2\n" for text in said), said
    sys.exit()

import numpy as np  # noqa: E402
from libensemble import Ensemble  # noqa: E402
from libensemble.executors import MPIExecutor  # noqa: E402
from libensemble.specs import ExitCriteria, GenSpecs, LibeSpecs, SimSpecs  # noqa: E402


def simulate(H, persis_info, sim_specs, libE_info):
    executor = libE_info["executor"]
    task = executor.submit(app_name="said", num_procs=2, num_nodes=1, app_args="SLURM_NTASKS", stdout="task.out")
    task.wait(timeout=60)
    assert task.state == "FINISHED", task.state
    out = np.zeros(1, dtype=sim_specs["out"])
    out["f"] = H["x"]
    return out, persis_info


def generate(H, persis_info, gen_specs):
    out = np.zeros(4, dtype=gen_specs["out"])
    out["x"] = np.arange(4)
    return out, persis_info


if __name__ == "__main__":
    executor = MPIExecutor(custom_info={"mpi_runner": "srun"})
    executor.register_app(full_path="/usr/bin/printenv", app_name="said")
    ensemble = Ensemble(
        executor=executor,
        libE_specs=LibeSpecs(comms="local", nworkers=2, sim_dirs_make=True, gen_on_manager=True, disable_log_files=True, resource_info={"cores_on_node": (2, 2)}),
        sim_specs=SimSpecs(sim_f=simulate, inputs=["x"], out=[("f", float)]),
        gen_specs=GenSpecs(gen_f=generate, out=[("x", float)]),
        exit_criteria=ExitCriteria(sim_max=4),
    )
    history, _, flag = ensemble.run()
    assert flag == 0 and list(history["f"][:4]) == [0, 1, 2, 3], history
