#!/usr/bin/env python3
"""Steps: many at once, their output, and wide ones; on Spur and, where it is installed, on Slurm. README.md says how."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import measures
from clusters import CPUS, NODES, Failed, Slurm, Spur

clock = time.monotonic


def in_allocation(cluster, script, *options, seconds=300):
    """A shell script inside an allocation of the whole cluster; what it printed."""
    path = cluster.directory / "inside.sh"
    path.write_text("#!/bin/bash\n" + script)
    path.chmod(0o755)
    answer = cluster.run("salloc", "-Q", f"-N{NODES}", "--exclusive", *options, str(path), seconds=seconds)
    if answer.returncode != 0:
        raise Failed(f"{cluster.name}: {answer.stderr.strip()[:300]}")
    return answer.stdout


def concurrent(cluster, count):
    """`count` times `srun -n1 true` at once in one allocation: steps a second, from the first start to the last end."""
    srun = cluster.path("srun")
    script = f"""
begun=$(date +%s.%N)
for ((i = 0; i < {count}; i++)); do {srun} -Q --overlap -N1 -n1 true || echo failed & done
wait
echo "$begun $(date +%s.%N)"
"""
    lines = in_allocation(cluster, script).split("\n")
    begun, ended = map(float, [line for line in lines if " " in line][0].split())
    return {"n": count, "failed": lines.count("failed"), "s": round(ended - begun, 3), "steps_per_s": round(count / (ended - begun), 1)}


def shared(cluster, count):
    """The same, but each wants a CPU of its own, and waits for it if need be."""
    srun = cluster.path("srun")
    script = f"""
begun=$(date +%s.%N)
for ((i = 0; i < {count}; i++)); do {srun} -Q --exact -N1 -n1 -c1 true || echo failed & done
wait
echo "$begun $(date +%s.%N)"
"""
    lines = in_allocation(cluster, script).split("\n")
    begun, ended = map(float, [line for line in lines if " " in line][0].split())
    return {"n": count, "failed": lines.count("failed"), "s": round(ended - begun, 3), "steps_per_s": round(count / (ended - begun), 1)}


def output(cluster, megabytes):
    """One task writes; the far end of srun's pipe counts. Also into a file, by the node itself."""
    figures = {}
    source = f"head -c {megabytes << 20} /dev/zero"
    for name, options in (("pipe", []), ("unbuffered", ["-u"]), ("labels", ["-l"])):
        # Labels are put before lines, so there it is lines.
        work = source if name != "labels" else f"yes {'x' * 99} | head -c {megabytes << 20}"
        words = [cluster.path("srun"), "-n1", *options, "sh", "-c", work]
        begun = clock()
        with subprocess.Popen(words, env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
            seen = 0
            while piece := child.stdout.read1(1 << 20):
                seen += len(piece)
        took = clock() - begun
        if child.returncode != 0 or seen < megabytes << 20:
            raise Failed(f"{cluster.name}: {seen} bytes of {megabytes} MiB, exit {child.returncode}")
        figures[f"{name}_mb_per_s"] = round((megabytes << 20) / 1e6 / took, 1)
    return figures


def width(cluster, tasks, times):
    """From srun's start until all tasks have begun: each writes its clock. One task against many on one allocation."""
    srun = cluster.path("srun")
    once = f"""
for ((i = 0; i < {times}; i++)); do
  echo "begun $(date +%s.%N)"
  {srun} -Q --overlap -N WIDE_N -n WIDE date +%s.%N || echo failed
done
"""
    found = {}
    for wide in (1, tasks):
        script = once.replace("WIDE_N", str(min(wide, NODES))).replace("WIDE", str(wide))
        begun, last, waits = None, [], []
        for line in in_allocation(cluster, script, f"-n{NODES * CPUS}").split("\n") + ["begun 0"]:
            if line.startswith("begun"):
                if begun and len(last) == wide:
                    waits.append(max(last) - begun)
                begun, last = float(line.split()[1]), []
            elif line.strip() and line != "failed":
                last.append(float(line))
        if len(waits) < times:
            raise Failed(f"{cluster.name}: {len(waits)} of {times} steps of {wide} tasks")
        found[wide] = sorted(waits)
    middle = lambda wide: found[wide][len(found[wide]) // 2] * 1000
    return {"tasks": tasks, "one_ms": round(middle(1), 1), "all_ms": round(middle(tasks), 1), "later_ms": round(middle(tasks) - middle(1), 1)}


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spur", default=str(here.parent / "target/release/spur"))
    parser.add_argument("--slurm", choices=["auto", "no"], default="auto")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["concurrent", "shared", "output", "width"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=NODES * CPUS)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quiet", type=float, default=10, help="seconds to wait for other load to go before each trial")
    parser.add_argument("--out", default="bench-steps.jsonl")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-steps-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    directory.chmod(0o755)
    clusters = [Spur(directory / "spur", options.spur)]
    if options.slurm == "auto" and Slurm.is_installed():
        clusters.append(Slurm(directory / "slurm"))
    acts = {
        "concurrent": lambda c: concurrent(c, options.steps),
        "shared": lambda c: shared(c, options.steps),
        "output": lambda c: output(c, options.megabytes if c.name == "spur" else min(256, options.megabytes)),
        "width": lambda c: width(c, options.tasks, 5),
    }
    rows, code = [], 0
    try:
        for cluster in clusters:
            cluster.start()
        for measure in options.only:
            for _ in range(options.repeats):
                for cluster in clusters:
                    idle = measures.wait_for_quiet(options.quiet)
                    try:
                        figures = acts[measure](cluster)
                    except Failed as why:
                        figures, code = {"failed_because": str(why)}, code | (cluster.name == "spur")
                    rows.append({"measure": measure, "system": cluster.name, "idle": idle, **figures})
                    print(json.dumps(rows[-1]), flush=True)
                    with open(options.out, "a") as out:
                        out.write(json.dumps(rows[-1]) + "\n")
    finally:
        for cluster in clusters:
            cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
    best = lambda measure, system, figure, pick: pick(
        (row[figure] for row in rows if (row["measure"], row["system"]) == (measure, system) and figure in row), default=None)
    print()
    for measure, figure, pick in (("concurrent", "steps_per_s", max), ("shared", "steps_per_s", max), ("output", "pipe_mb_per_s", max),
                                  ("width", "later_ms", min)):
        ours, theirs = (best(measure, system, figure, pick) for system in ("spur", "slurm"))
        print(f"{measure:<12} {figure:<16} spur {ours}   slurm {theirs}")
    return code


if __name__ == "__main__":
    sys.exit(main())
