"""asyncmd: processes that are Slurm jobs, awaited through sacct."""
# packages: asyncmd setuptools
import asyncio
import os

from asyncmd import slurm

with open("job.sh", "w") as script:
    script.write("#!/bin/bash\n#SBATCH -o out.%j\ncat > got\nsleep 1\necho said; echo wrong >&2\nexit $CODE\n")


async def main():
    slurm.SlurmProcess.slurm_cluster_mediator.min_time_between_sacct_calls = 1
    for code in (0, 3):
        os.environ["CODE"] = str(code)
        process = await slurm.create_slurmprocess_submit(jobname=f"md{code}", sbatch_script=os.path.abspath("job.sh"), workdir=os.getcwd(),
                                                         stdfiles_removal="no", sleep_time=1)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        # It tells success from failure only.
        assert (process.returncode, err) == (min(code, 1), b"wrong\n") and b"said" in out, (process.returncode, out, err)
    process = await slurm.create_slurmprocess_submit(jobname="endless", sbatch_script=os.path.abspath("job.sh"), workdir=os.getcwd(), sleep_time=1)
    process.kill()


asyncio.run(main())
