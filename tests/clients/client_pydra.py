"""pydra: tasks of a dataflow as jobs."""
# packages: pydra<1
import pydra


@pydra.mark.task
def square(x):
    return x * x


if __name__ == "__main__":
    task = square(x=7, cache_dir="cache")
    with pydra.Submitter(plugin="slurm", sbatch_args="-p main -t 5", poll_delay=1) as submit:
        submit(task)
    assert task.result().output.out == 49
