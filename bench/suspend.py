#!/usr/bin/env python3
"""How long until everything of a suspended job stands still, beyond the grace; for one process and for a thousand.

    bench/suspend.py [--spur target/release/spur] [--processes 1000] [--rounds 5]

Starts a one-node cluster of its own in a temporary directory (suspend_grace = 0) and reads process states from /proc.
"""
import argparse, os, shutil, statistics, subprocess, tempfile, time

CONF = """cluster_name = "suspend"
[agent]
suspend_grace = 0
kill_wait = 1
[[nodes]]
names = "n1"
cpus = 4
memory_mb = 4000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
"""


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "gone"


def wait_for(pids, wanted):
    begin = time.perf_counter()
    left = list(pids)
    while left:
        left = [pid for pid in left if state(pid) not in wanted]
        if time.perf_counter() - begin > 30:
            raise SystemExit(f"{len(left)} processes are still not {wanted}")
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spur", default="target/release/spur")
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spur = os.path.abspath(options.spur)
    root = tempfile.mkdtemp(prefix="spur-suspend-")
    conf = os.path.join(root, "wanted.conf")
    with open(conf, "w") as file:
        file.write(CONF)
    cluster = os.path.join(root, "c")
    env = dict(os.environ, SPUR_CONF=os.path.join(cluster, "spur.conf"), PATH=f"{cluster}/bin:{os.environ['PATH']}")

    def run(*words):
        return subprocess.run(words, env=env, cwd=root, check=True, text=True, capture_output=True).stdout.strip()

    run(spur, "up", "--dir", cluster, "--config", conf)
    try:
        for count in (1, options.processes):
            script = f"for i in $(seq {count}); do sleep 100000 & echo $! >> pids; done; touch ready; wait"
            job = run("sbatch", "--parsable", f"--wrap={script}")
            ready, pids_file = os.path.join(root, "ready"), os.path.join(root, "pids")
            while not os.path.exists(ready):
                time.sleep(0.01)
            pids = [int(line) for line in open(pids_file)]
            frozen, thawed = [], []
            for _ in range(options.rounds):
                begin = time.perf_counter()
                run("scontrol", "suspend", job)
                wait_for(pids, "T")
                frozen.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                run("scontrol", "resume", job)
                wait_for(pids, "SRD")
                thawed.append(time.perf_counter() - begin)
            run("scancel", job)
            wait_for(pids, ("gone", "Z"))
            os.remove(ready), os.remove(pids_file)
            print(f"{count:5} processes: frozen after {statistics.median(frozen) * 1000:.0f} ms"
                  f" (worst {max(frozen) * 1000:.0f}), running again after {statistics.median(thawed) * 1000:.0f} ms")
    finally:
        run(spur, "down", "--dir", cluster)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
