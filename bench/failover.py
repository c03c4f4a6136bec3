#!/usr/bin/env python3
"""Failover: how long after the death of the leader is the next submission acknowledged, and is anything lost or doubled?

    bench/failover.py path/to/spur [--rounds 200] [--dir /tmp/spur-failover]

Three controllers on this machine. Each round: wait until all three are up to date, kill -9 the one that leads, submit at once
(one sbatch, which finds the new leader by itself), start the dead one again. Every job writes one line when it runs; at the end
every acknowledged id must have exactly one line, and no id may have been given twice.
"""
import argparse, json, os, shutil, signal, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("spur")
parser.add_argument("--rounds", type=int, default=200)
parser.add_argument("--dir", default="/tmp/spur-failover")
options = parser.parse_args()
spur, folder = os.path.abspath(options.spur), options.dir
run = lambda line: subprocess.run(line, shell=True, capture_output=True, text=True)
env = f'eval "$({spur} env --dir {folder})"; '

run(f"{spur} down --dir {folder}")
shutil.rmtree(folder, ignore_errors=True)
up = run(f"{spur} up --nodes 1 --cpus 64 --controllers 3 --dir {folder}")
if up.returncode:
    sys.exit(up.stderr)
ran = f"{folder}/ran"


def members():
    try:
        return json.loads(run(f"{spur} status --dir {folder} --json").stdout)["controllers"]["members"]
    except (ValueError, KeyError, TypeError):
        return []


def settled():
    """The number of the leader, once all three are up to date."""
    give_up = time.time() + 60
    while time.time() < give_up:
        now = members()
        leads = [one["id"] for one in now if one.get("is_leader")]
        fresh = [one for one in now if one.get("answers") and one.get("n_behind", 0) in (0, None)]
        if leads and len(fresh) == 3:
            return leads[0]
        time.sleep(0.05)
    sys.exit(f"the controllers do not settle: {members()}")


times, ids, n_failed = [], [], 0
for number in range(options.rounds):
    leader = settled()
    pid = int(open(f"{folder}/run/controller.pid" if leader == 1 else f"{folder}/run/controller-{leader}.pid").read())
    os.kill(pid, signal.SIGKILL)
    began = time.time()
    while True:
        said = run(env + f"sbatch --parsable -D / -o /dev/null --wrap 'echo $SLURM_JOB_ID >> {ran}'")
        if said.returncode == 0:
            break
        n_failed += 1
        if time.time() - began > 60:
            sys.exit(f"stuck: {said.stderr}")
    times.append(time.time() - began)
    ids.append(said.stdout.strip())
    run(f"{spur} up --dir {folder}")

settled()
give_up = time.time() + 60
while time.time() < give_up:
    lines = open(ran).read().split() if os.path.exists(ran) else []
    if set(ids) <= set(lines):
        break
    time.sleep(0.1)
times.sort()
at = lambda part: times[min(len(times) - 1, int(len(times) * part))]
lost, doubled = len(set(ids) - set(lines)), len(lines) - len(set(lines))
print(f"{len(times)} rounds: p50 {at(.5):.2f} s, p90 {at(.9):.2f} s, p99 {at(.99):.2f} s, max {times[-1]:.2f} s; "
      f"{n_failed} commands failed, {lost} jobs lost, {doubled} ran twice, {len(ids) - len(set(ids))} ids given twice")
run(f"{spur} down --dir {folder}")
sys.exit(1 if lost or doubled or len(ids) != len(set(ids)) else 0)
