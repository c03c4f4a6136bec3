"""dask-jobqueue: workers are jobs."""
# packages: dask-jobqueue
from dask.distributed import Client
from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    with SLURMCluster(cores=1, processes=1, memory="600MB", walltime="00:10:00", interface="lo", death_timeout=90) as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=150)
            assert sum(client.gather(client.map(lambda x: x * x, range(10)))) == 285
