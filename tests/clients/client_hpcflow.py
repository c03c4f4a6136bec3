"""hpcflow: a workflow whose tasks are jobs and arrays of the scheduler, each after the one before."""
# packages: hpcflow-new2
import os
import pathlib
import subprocess

os.environ["HOME"] = os.getcwd()
os.environ["COLUMNS"] = "150"
pathlib.Path("workflow.yaml").write_text("""
name: w
template_components:
  task_schemas:
    - objective: say
      inputs: [{parameter: p}]
      outputs: [{parameter: q}]
      actions:
        - commands:
            - command: echo $((<<parameter:p>> + 100))
              stdout: <<int(parameter:q)>>
    - objective: again
      inputs: [{parameter: q}]
      outputs: [{parameter: r}]
      actions:
        - commands:
            - command: echo $((<<parameter:q>> + 1000))
              stdout: <<int(parameter:r)>>
tasks:
  - schema: say
    sequences: [{path: inputs.p, values: [1, 2, 3]}]
    resources: {any: {scheduler: slurm, use_job_array: true}}
  - schema: again
    resources: {any: {scheduler: slurm, use_job_array: true}}
""")
subprocess.run(["hpcflow", "config", "add-scheduler", "slurm"], check=True)
subprocess.run(["hpcflow", "go", "--wait", "workflow.yaml"], check=True)
import hpcflow.app as hf  # noqa: E402

(path,) = [path for path in pathlib.Path(".").iterdir() if path.name.startswith("w_")]
workflow = hf.Workflow(path)
values = [element.outputs.r.value for element in workflow.tasks[1].elements]
assert values == [1101, 1102, 1103], values
