"""slurm-viewer: what its screens ask for, through its own communication layer."""
# packages: slurm-viewer
import asyncio
import subprocess

from slurm_viewer.data.config import Cluster
from slurm_viewer.data.slurm_communication import Slurm

job = subprocess.run(["sbatch", "--parsable", "-t", "5", "--wrap", "sleep 60"], capture_output=True, text=True, check=True).stdout.strip()


async def look():
    slurm = Slurm(Cluster(name="here"))
    assert (await slurm.slurm_version()).startswith("22.05")
    assert await slurm.partitions() == ["main"]
    assert await slurm.cluster_name() == "spur"
    assert await slurm.partition_info()
    nodes = await slurm.nodes()
    assert {node.node_name for node in nodes} == {"n1", "n2"}, nodes
    queue = await slurm.queue(False)
    assert int(job) in [int(one.job_id) for one in queue], queue
    await slurm.jobs(1, False)


asyncio.run(look())
subprocess.run(["scancel", job])
