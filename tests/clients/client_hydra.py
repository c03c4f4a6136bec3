"""Hydra's submitit launcher: a sweep as an array of jobs."""
# packages: hydra-submitit-launcher setuptools<81
import os
import subprocess
import sys

open("app.py", "w").write('''
import hydra

@hydra.main(version_base=None, config_path=None, config_name=None)
def main(config):
    open(f"{hydra.utils.get_original_cwd()}/result-{config.x}", "w").write(str(config.x ** 2))
    return config.x ** 2

main()
''')
done = subprocess.run([sys.executable, "app.py", "-m", "+x=2,3", "hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=3",
                       "hydra.launcher.mem_gb=1", "hydra.launcher.partition=main"], timeout=200)
assert done.returncode == 0
assert [open(f"result-{x}").read() for x in (2, 3)] == ["4", "9"], os.listdir(".")
