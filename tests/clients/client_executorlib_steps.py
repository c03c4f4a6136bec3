"""executorlib: futures as steps of one allocation (srun), from inside a job."""
# packages: executorlib h5py
import os
import subprocess
import sys

if "SLURM_JOB_ID" in os.environ:
    from executorlib import SlurmJobExecutor

    with SlurmJobExecutor(max_cores=2, resource_dict={"cores": 1}) as executor:
        assert [future.result(timeout=120) for future in [executor.submit(pow, 2, n) for n in range(3)]] == [1, 2, 4]
    open("done", "w").write("done")
else:
    subprocess.run(["sbatch", "--wait", "-n2", "--mem=3G", "-o", "job.log", "--wrap", f"{sys.executable} {__file__}"], timeout=200, env={
        name: value for name, value in os.environ.items()})
    print(open("job.log").read())
    assert open("done").read() == "done"
