"""stui: a screen of the cluster and its jobs, looked at through a terminal."""
# packages: stui pexpect setuptools<81
import os
import subprocess

import pexpect

job = subprocess.run(["sbatch", "--parsable", "-J", "forstui", "-o", "/dev/null", "--wrap", "sleep 60"], capture_output=True, text=True,
                     check=True).stdout.strip()
try:
    screen = pexpect.spawn("stui", dimensions=(40, 150), timeout=40, env={**os.environ, "TERM": "xterm-256color"}, encoding="utf-8")
    screen.expect("forstui")
    screen.send("q")
    screen.close(force=True)
finally:
    subprocess.run(["scancel", job])
