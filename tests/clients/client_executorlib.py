"""executorlib: futures as jobs, through pysqa."""
# packages: executorlib pysqa h5py
from executorlib import SlurmClusterExecutor

if __name__ == "__main__":
    with SlurmClusterExecutor(cache_directory="cache", resource_dict={"cores": 1, "partition": "main"}) as executor:
        assert executor.submit(sum, [1, 2, 3]).result(timeout=180) == 6
