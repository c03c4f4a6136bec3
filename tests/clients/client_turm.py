"""turm: a screen of the user's jobs, looked at through a terminal of 120 columns."""
# packages: turm pexpect
import os
import subprocess

import pexpect

job = subprocess.run(["sbatch", "--parsable", "-J", "forturm", "-o", "turm-%j.out", "--wrap", "echo said-by-the-job; sleep 60"],
                     capture_output=True, text=True, check=True).stdout.strip()
try:
    screen = pexpect.spawn("turm", ["--slurm-refresh", "1"], dimensions=(40, 120), timeout=30, env={**os.environ, "TERM": "xterm"})
    screen.expect("forturm")
    screen.expect("said-by-the-job")
    screen.send("q")
    screen.close()
finally:
    subprocess.run(["scancel", job])
