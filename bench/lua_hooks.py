#!/usr/bin/env python3
"""Many jobs through burst_buffer/lua at once: how many hooks run together, and whether the controller still answers.

    cargo build --release -p spur
    python3 bench/lua_hooks.py --spur target/release/spur --jobs 1000

Starts a cluster of its own with a burst_buffer.lua whose stage-in takes a while, times `squeue` on the idle cluster, submits
all jobs, times `squeue` again and again until the last one's buffer is gone, and counts the hooks that run meanwhile.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

FUNCTIONS = ["job_process", "pools", "job_teardown", "setup", "data_in", "test_data_in", "real_size", "paths", "pre_run",
             "post_run", "data_out", "test_data_out", "get_status"]


def script(seconds):
    lines = [f"function slurm_bb_{name}(...) return 0 end" for name in FUNCTIONS]
    lines.append('function slurm_bb_pools() return 0, \'{"pools":[{"id":"p","quantity":1000000}]}\' end')
    lines.append(f'function slurm_bb_data_in() os.execute("sleep {seconds}") return 0 end')
    return "\n".join(lines) + "\n"


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def workers(controller):
    """Hooks under way: children of the controller by the workers' name."""
    count = 0
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "cmdline").read_bytes().split(b"\0")[0]
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
            count += name.endswith(b"spurhook") and parent == str(controller)
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spur", default="target/release/spur")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--hooks", type=int, default=32)
    parser.add_argument("--stage-in", type=float, default=0.2, help="seconds that data_in sleeps")
    options = parser.parse_args()
    spur = os.path.abspath(options.spur)
    base = pathlib.Path(tempfile.mkdtemp(prefix="spur-lua-"))
    (base / "burst_buffer.lua").write_text(script(options.stage_in))
    (base / "wanted.conf").write_text(
        '[[nodes]]\nnames = "n[1-4]"\ncpus = 64\nmemory_mb = 10000\n[burst_buffer]\ntype = "lua"\nallow_root = true\n'
        f'script = "{base}/burst_buffer.lua"\nhooks = {options.hooks}\n')
    environment = dict(os.environ, PATH=f"{base}/c/bin:{os.environ['PATH']}", SPUR_CONF=f"{base}/c/spur.conf")
    run = lambda *words: subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout
    run(spur, "up", "--dir", f"{base}/c", "--config", f"{base}/wanted.conf")
    try:
        while "PoolName[0]=p " not in run("scontrol", "show", "burst"):
            time.sleep(0.1)
        controller = int((base / "c/run/controller.pid").read_text())

        def squeue():
            begun = time.monotonic()
            run("squeue", "-h", "-o", "%i", "-t", "R")
            return (time.monotonic() - begun) * 1000

        idle = [squeue() for _ in range(100)]
        job = base / "job.sh"
        job.write_text("#!/bin/sh\n#BB_LUA pool=p capacity=1\ntrue\n")
        begun = time.monotonic()
        for _ in range(options.jobs):
            run("sbatch", "-Q", "-o", "/dev/null", str(job))
        submitted = time.monotonic() - begun
        busy, most = [], 0
        while "Allocated Buffers" in run("scontrol", "show", "burst") or run("squeue", "-h", "-o", "%i"):
            busy.append(squeue())
            most = max(most, workers(controller))
            time.sleep(0.05)
        print(json.dumps({
            "jobs": options.jobs,
            "submitted_s": round(submitted, 1),
            "all_gone_s": round(time.monotonic() - begun, 1),
            "most_workers": most,
            "allowed_workers": options.hooks * 5,
            "squeue_idle_ms": {"median": round(statistics.median(idle), 1), "p99": round(percentile(idle, 0.99), 1)},
            "squeue_busy_ms": {"median": round(statistics.median(busy), 1), "p99": round(percentile(busy, 0.99), 1)},
        }, indent=1))
    finally:
        subprocess.run([spur, "down", "--dir", f"{base}/c"], env=environment, capture_output=True)
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
