"""slurm-magic: Slurm's commands as IPython magics; tables that pandas must be able to read."""
# packages: slurm-magic ipython pandas setuptools
import pathlib
import time

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "slurm_magic")
nodes = shell.run_line_magic("sinfo", "-N")
assert list(nodes["NODELIST"]) == ["n1", "n2"], nodes
said = shell.run_cell_magic("sbatch", "-o cell.out", "#!/bin/bash\n#SBATCH -J cell\nsleep 1; echo from a cell\n")
job = int(said.split()[-1])
waiting = shell.run_line_magic("squeue", f"-j {job}")
assert list(waiting["JOBID"]) == [job] and list(waiting["NAME"]) == ["cell"], waiting
give_up = time.time() + 60
while len(shell.run_line_magic("squeue", f"-j {job}")) and time.time() < give_up:
    time.sleep(0.3)
assert pathlib.Path("cell.out").read_text() == "from a cell\n"
done = shell.run_line_magic("sacct", f"-X -j {job} -o JobID,State")
assert list(done["State"])[-1] == "COMPLETED", done
assert shell.run_line_magic("srun", "-n2 echo task").split() == ["task", "task"]
shell.run_line_magic("slurm", "display raw")
assert f"JobId={job} JobName=cell" in shell.run_line_magic("scontrol", f"show job {job}")
