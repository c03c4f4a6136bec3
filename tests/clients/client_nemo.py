"""NeMo Run (which replaces `/nemo_run` in paths: nothing here may be called so): an experiment of dependent jobs over nodes, one that asks to be requeued, a heterogeneous one, and one that is cancelled."""
# packages: nemo-run leptonai>=0.25,<0.28 setuptools<81
import os
import pathlib
import subprocess
import time

os.environ["HOME"] = os.getcwd()

import nemo_run as run  # noqa: E402

base = pathlib.Path.cwd() / "runs"


def on(**more):
    return run.SlurmExecutor(account="root", partition="main", time="00:05:00", mem="200M", container_image=None,
                             tunnel=run.LocalTunnel(job_dir=str(base / "experiments")), packager=run.Packager(), **more)


def told(experiment):
    return {name: (str(one["status"]).split()[0], one["job_id"]) for name, one in experiment.status(return_dict=True).items()}


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    with run.Experiment("chain", base_dir=str(base)) as chain:
        first = chain.add(run.Script(inline="echo node $SLURM_NODEID of $SLURM_NNODES"), executor=on(nodes=2, ntasks_per_node=1), name="first")
        chain.add(run.Script(inline="[ $SLURM_RESTART_COUNT = 1 ]"), executor=on(retries=1), name="again", dependencies=[first])
        chain.run(detach=False, tail_logs=False)
    states = told(chain)
    assert [state for state, _ in states.values()] == ["SUCCEEDED"] * 2, states
    logs = "".join(file.read_text() for file in base.glob("experiments/chain/*/first/log-*.out"))
    assert "node 0 of 2" in logs and "node 1 of 2" in logs, logs

    mixed = on(heterogeneous=True)
    mixed.resource_group = [
        run.SlurmExecutor.ResourceRequest(packager=run.Packager(), nodes=1, ntasks_per_node=count, container_image=None, het_group_index=index)
        for index, count in enumerate((1, 2))
    ]
    with run.Experiment("mixed", base_dir=str(base)) as experiment:
        experiment.add([run.Script(inline="echo lead"), run.Script(inline="echo follow $SLURM_PROCID")], executor=mixed, name="both")
        experiment.run(detach=False, tail_logs=False)
    assert all(state == "SUCCEEDED" for state, _ in told(experiment).values()), told(experiment)

    with run.Experiment("long", base_dir=str(base)) as experiment:
        experiment.add(run.Script(inline="sleep 300"), executor=on(), name="sleeps")
        experiment.run(detach=True)
    (_, job), = told(experiment).values()
    while said("squeue", "-h", "-j", job, "-o", "%t").strip() != "R":
        time.sleep(0.1)
    experiment.cancel("sleeps")
    while said("sacct", "-n", "-X", "-P", "-j", job, "-o", "state").split()[0] != "CANCELLED":
        time.sleep(0.1)
