"""parsl: a block of workers in a job, started by srun."""
# packages: parsl
import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def square(x):
    return x * x


provider = SlurmProvider(
    partition="main", nodes_per_block=1, init_blocks=1, max_blocks=1, cores_per_node=1, mem_per_node=1,
    walltime="00:10:00", launcher=SrunLauncher(), exclusive=False,
)
executor = HighThroughputExecutor(label="slurm", address="127.0.0.1", max_workers_per_node=1, provider=provider)
with parsl.load(Config(executors=[executor], run_dir="parsl")):
    assert [square(x).result(timeout=180) for x in range(4)] == [0, 1, 4, 9]
