"""luigi and the like: plain command templates, sbatch --wait and its exit code."""
import subprocess

assert subprocess.run(["sbatch", "--wait", "-Q", "-o", "/dev/null", "--wrap", "exit 0"]).returncode == 0
assert subprocess.run(["sbatch", "--wait", "-Q", "-o", "/dev/null", "--wrap", "exit 7"]).returncode == 7
