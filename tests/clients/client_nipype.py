"""nipype: nodes of a workflow as jobs, with both of its Slurm plugins."""
# packages: nipype setuptools<81
import os

from nipype import Function, Node, Workflow


def square(x):
    return x * x


def plus(x):
    return x + 1


for plugin in ("SLURM", "SLURMGraph"):
    flow = Workflow("flow", base_dir=os.path.abspath(plugin))
    one = Node(Function(input_names=["x"], output_names=["out"], function=square), name="one")
    two = Node(Function(input_names=["x"], output_names=["out"], function=plus), name="two")
    one.inputs.x = 6
    flow.connect(one, "out", two, "x")
    flow.config["execution"] = {"poll_sleep_duration": 1, "job_finished_timeout": 30}
    done = flow.run(plugin=plugin, plugin_args={"sbatch_args": "-p main", "dont_resubmit_completed_jobs": True})
    if plugin == "SLURM":
        import glob
        import gzip
        import pickle

        result = pickle.load(gzip.open(glob.glob(f"{plugin}/flow/two/result_two.pklz")[0]))
        assert result.outputs.out == 37, result
    else:
        import subprocess
        import time

        give_up = time.time() + 90
        while subprocess.run(["squeue", "-h", "-u", os.environ["USER"]], capture_output=True).stdout and time.time() < give_up:
            time.sleep(0.5)
        assert os.path.exists(f"{plugin}/flow/two/result_two.pklz"), os.listdir(f"{plugin}/flow")
