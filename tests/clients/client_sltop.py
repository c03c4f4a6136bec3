"""sltop: its screen of partitions, limits and queue, drawn with running, waiting and dependent jobs; one cancelled by its keys."""
# packages: sltop
import asyncio
import subprocess
import time

from sltop import sltop


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


first = said("sbatch", "--parsable", "-J", "first", "-c2", "-t", "30", "-o", "/dev/null", "--wrap", "sleep 300")
second = said("sbatch", "--parsable", "-J", "second", "-d", f"afterok:{first}", "-o", "/dev/null", "--wrap", "true")
array = said("sbatch", "--parsable", "-a", "1-4%2", "-o", "/dev/null", "--wrap", "sleep 300")
while said("squeue", "-h", "-j", first, "-o", "%t") != "R":
    time.sleep(0.1)
found = {row["partition"]: row for row in sltop._resources(None)}
assert found["main"]["cpus"].endswith("/16") and found["main"]["nodes_aiot"].endswith("/2"), found
rules = {row["partition"]: row for row in sltop._rules(None)}
assert (rules["main"]["state"], rules["main"]["max_time"], rules["main"]["oversubscribe"]) == ("UP", "UNLIMITED", "NO"), rules
rows = {row["jobid"]: row for row in sltop._queue(None, None)}
assert (rows[first]["state"], rows[first]["timelimit"], rows[first]["nodelist"]) == ("RUNNING", "30:00", "n1"), rows
assert rows[second]["reason"] == "(Dependency)" and first in rows[second]["dependency"], rows
assert rows[f"{array}_[3-4%2]"]["array_job_id"] == array, rows


async def draw():
    app = sltop.SlurmMonitor(interval=1, partition_filter=None, user_filter=None, idle_timeout=0)
    async with app.run_test(size=(160, 50)) as pilot:
        for _ in range(20):
            await pilot.pause(0.2)
        await pilot.press("tab", "down", "q")


asyncio.run(draw())
said("scancel", first, second, array)
