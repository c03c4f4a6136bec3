"""dpdispatcher: tasks packed into jobs, files moved, ends awaited."""
# packages: dpdispatcher
from dpdispatcher import Machine, Resources, Submission, Task

import os

os.makedirs("local/t1", exist_ok=True)
open("local/t1/in", "w").write("5\n")
machine = Machine.load_from_dict({
    "batch_type": "Slurm", "context_type": "LocalContext", "local_root": os.path.abspath("local"), "remote_root": os.path.abspath("remote")})
os.makedirs("remote", exist_ok=True)
resources = Resources.load_from_dict({"number_node": 1, "cpu_per_node": 1, "gpu_per_node": 0, "queue_name": "main", "group_size": 1})
task = Task(command="cat in > out", task_work_path="t1/", forward_files=["in"], backward_files=["out"])
submission = Submission(work_base=".", machine=machine, resources=resources, task_list=[task])
submission.run_submission(check_interval=2)
assert open("local/t1/out").read() == "5\n"
