"""slurmbridge: jobs and nodes as objects, read by scontrol; held, released, changed and cancelled."""
# packages: slurmbridge
import asyncio
import subprocess

from slurmbridge.objects import Job, Node


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


async def walk():
    nodes = {node.node_name: node for node in await Node.all()}
    assert set(nodes) == {"n1", "n2"}, nodes
    assert nodes["n1"].cpu_allocation == ("0", "8"), nodes["n1"]
    number = said("sbatch", "--parsable", "-H", "-J", "bridged", "--wrap", "exec srun sleep 300")
    job = await Job.get(JobId=number)
    assert (job.job_id, job.job_state, job.cpus) == (number, "PENDING", "1"), job
    await job.release()
    # What it cancels by is a signal, which steps hear and batch scripts do not: there must be one.
    while number + ".0" not in said("squeue", "-h", "-s", "-j", number, "-o", "%i").split():
        await asyncio.sleep(0.1)
    job = await Job.get(JobId=number)
    assert job.job_state == "RUNNING", job
    await job.cancel()
    while said("squeue", "-h", "-j", number):
        await asyncio.sleep(0.1)
    await nodes["n2"].set_state("drain", "looked at")
    assert said("sinfo", "-h", "-n", "n2", "-o", "%t %E") == "drain looked at"
    await nodes["n2"].set_state("resume")
    assert said("sinfo", "-h", "-n", "n2", "-o", "%t") == "idle"


asyncio.run(walk())
