"""jupyterhub-moss: its question to sinfo and what it reads from the answer."""
# packages: jupyterhub jupyterhub-moss setuptools<81
import asyncio
import re
import subprocess

import jupyterhub_moss.spawner as spawner

known = spawner.MOSlurmSpawner
command = known.slurm_info_cmd.default_value if hasattr(known.slurm_info_cmd, "default_value") else known.slurm_info_cmd
answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)
assert answer.returncode == 0 and answer.stdout, answer
parsed = None
for name in ("_slurm_info_resources", "slurm_info_resources", "_get_slurm_info_resources"):
    reader = getattr(known, name, None)
    if reader and getattr(reader, "default_value", None):
        reader = reader.default_value
    if callable(reader):
        try:
            parsed = reader(answer.stdout)
        except TypeError:
            parsed = reader(None, answer.stdout)
        if asyncio.iscoroutine(parsed):
            parsed = asyncio.run(parsed)
        break
print(command, answer.stdout, parsed, sep="\n")
assert re.search("main", answer.stdout)
assert parsed is None or "main" in str(parsed), parsed
