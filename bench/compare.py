#!/usr/bin/env python3
"""Spur and, where it is installed, Slurm: the same work on both, in turn, in one run. README.md says how."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import measures
from clusters import Failed, Slurm, Spur

ALL = ["limits", "throughput", "latency", "srun", "array", "backlog", "kills"]


class Run:
    """The clusters, the options, and everything that was measured."""

    def __init__(self, options, directory):
        self.options, self.directory, self.rows = options, directory, []
        self.clusters = [Spur(directory / "spur", options.spur)]
        if options.slurm != "no" and Slurm.is_installed():
            self.clusters.append(Slurm(directory / "slurm"))
        elif options.slurm == "yes":
            raise Failed("no Slurm is installed here (slurmctld, slurmd, munged and sbatch on PATH)")

    def note(self, measure, system, figures, **more):
        row = {"measure": measure, "system": system, **more, **figures}
        self.rows.append(row)
        line = json.dumps(row)
        print(line, file=sys.stderr, flush=True)
        with open(self.options.out, "a") as out:
            out.write(line + "\n")

    def each(self, measure, act, **more):
        """One measure on every system in turn; a system that fails it does not spoil the others'."""
        for cluster in self.clusters:
            idle = measures.wait_for_quiet(self.options.quiet)
            try:
                self.note(measure, cluster.name, act(cluster), idle=idle, **more)
            except Failed as why:
                self.note(measure, cluster.name, {"failed": str(why)}, idle=idle, **more)
                cluster.empty_queue()


def measure_all(run):
    options, wanted = run.options, run.options.only
    repeats = range(options.repeats)
    if "limits" in wanted:
        for _ in repeats:
            idle = measures.wait_for_quiet(options.quiet)
            run.note("limits", "machine", measures.limits(run.directory), idle=idle)
    if "throughput" in wanted:
        for mode in ("sbatch4", "array"):
            for _ in repeats:
                run.each("throughput", lambda c: measures.throughput(c, options.jobs, mode), mode=mode)
    if "latency" in wanted:
        for _ in repeats:
            run.each("latency", lambda c: measures.latency(c, options.times))
    if "srun" in wanted:
        for _ in repeats:
            run.each("srun", lambda c: measures.srun_true(c, options.times))
    if "array" in wanted:
        run.each("array", lambda c: measures.array_accepted(c, 10_000, 5), tasks=10_000)
        spur = run.clusters[0]
        run.note("array", "spur", measures.array_accepted(spur, 1_000_000, 3), idle=measures.idle_share(), tasks=1_000_000)
    if "backlog" in wanted:
        kind = options.kind
        for _ in repeats:
            run.each("idle_commands", lambda c: measures.commands(c, measures.KINDS["held"]))
        run.each("fill", lambda c: measures.fill(c, options.backlog, kind), kind=kind)
        for _ in repeats:
            run.each("backlog", lambda c: measures.backlog(c, kind, options.quiet), kind=kind)
        for with_signal in (signal.SIGTERM, signal.SIGKILL):
            for _ in repeats:
                run.each("restart", lambda c: measures.restart(c, with_signal))
        for cluster in run.clusters:
            if not cluster.empty_queue():
                print(f"{cluster.name}: the queue did not empty", file=sys.stderr)
    if "kills" in wanted:
        times = {"spur": options.kills, "slurm": options.slurm_kills}
        run.each("kills", lambda c: measures.kills(c, times[c.name]))


# What the table shows: the measure and which of its rows, the figure (inside a summary after a dot), and a better ratio's sense.
TABLE = [
    ("no-op jobs/s, 4 sbatch clients", "throughput", {"mode": "sbatch4"}, "jobs_per_s", "more"),
    ("no-op jobs/s, one array", "throughput", {"mode": "array"}, "jobs_per_s", "more"),
    ("sbatch to its answer, p50 ms", "latency", {}, "sbatch_ms.p50", "less"),
    ("sbatch to the script's first instruction, p50 ms", "latency", {}, "start_ms.p50", "less"),
    ("the same, p95 ms", "latency", {}, "start_ms.p95", "less"),
    ("end of script to gone from squeue, p50 ms", "latency", {}, "gone_ms.p50", "less"),
    ("the same, p95 ms", "latency", {}, "gone_ms.p95", "less"),
    ("srun true, p50 ms", "srun", {}, "srun_ms.p50", "less"),
    ("array of 10,000 accepted, p50 ms", "array", {"tasks": 10_000}, "accept_ms.p50", "less"),
    ("array of 1,000,000 accepted, p50 ms", "array", {"tasks": 1_000_000}, "accept_ms.p50", "less"),
    ("idle: squeue -j, p50 ms", "idle_commands", {}, "squeue_j_ms.p50", "less"),
    ("idle: sbatch, p50 ms", "idle_commands", {}, "sbatch_ms.p50", "less"),
    ("idle: scancel, p50 ms", "idle_commands", {}, "scancel_ms.p50", "less"),
    ("filling the queue, submissions/s", "fill", {}, "per_s", "more"),
    ("backlog: squeue -j, p50 ms", "backlog", {}, "squeue_j_ms.p50", "less"),
    ("backlog: sbatch, p50 ms", "backlog", {}, "sbatch_ms.p50", "less"),
    ("backlog: scancel, p50 ms", "backlog", {}, "scancel_ms.p50", "less"),
    ("backlog: full squeue, p50 ms", "backlog", {}, "squeue_ms.p50", "less"),
    ("backlog: controller, MiB", "backlog", {}, "rss_mib", "less"),
    ("backlog: idle CPU of the controller, %", "backlog", {}, "idle_cpu_percent", "less"),
    ("restart (SIGTERM) to first answer, s", "restart", {"signal": "SIGTERM"}, "first_answer_s", "less"),
    ("restart (SIGKILL) to first answer, s", "restart", {"signal": "SIGKILL"}, "first_answer_s", "less"),
    ("kill -9 after an acknowledgement: kills", "kills", {}, "kills", None),
    ("kill -9 after an acknowledgement: lost", "kills", {}, "lost", None),
]


def best(rows, system, measure, only, figure, sense):
    """The figure of the quietest repetition: the best one."""
    values = []
    for row in rows:
        if row["system"] == system and row["measure"] == measure and all(row.get(k) == v for k, v in only.items()):
            value = row
            for word in figure.split("."):
                value = value.get(word) if isinstance(value, dict) else None
            if value is not None:
                values.append(value)
    return (max(values) if sense == "more" else min(values)) if values else None


def print_table(rows):
    show = lambda value: "–" if value is None else f"{value:,g}"
    print(f"{'best of the repetitions':50} {'Spur':>10} {'Slurm':>10} {'Spur is better by':>18}")
    for title, measure, only, figure, sense in TABLE:
        ours = best(rows, "spur", measure, only, figure, sense)
        theirs = best(rows, "slurm", measure, only, figure, sense)
        if ours is None and theirs is None:
            continue
        ratio = "–"
        if sense and ours and theirs:
            ratio = f"{ours / theirs if sense == 'more' else theirs / ours:.2f} ×"
        print(f"{title:50} {show(ours):>10} {show(theirs):>10} {ratio:>18}")
    for figure in ("true_per_s", "shell_per_s", "fdatasync_per_s"):
        value = best(rows, "machine", "limits", {}, figure, "more")
        if value is not None:
            print(f"{'the machine: ' + figure:50} {show(value):>10}")
    wrong = [row for row in rows if row["measure"] == "throughput" and not row.get("n") == row.get("ran") == row.get("distinct")]
    failed = [row for row in rows if isinstance(row.get("failed"), str)]
    for row in wrong:
        print(f"WRONG: {row['system']} {row['mode']}: {row.get('n')} acknowledged, {row.get('ran')} runs of {row.get('distinct')} jobs")
    for row in failed:
        print(f"FAILED: {row['system']} {row['measure']}: {row['failed']}")
    return 1 if any(row["system"] == "spur" for row in wrong + failed) else 0


def read_options():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spur", default=str(here.parent / "target/release/spur"), help="the executable to measure")
    parser.add_argument("--slurm", choices=["auto", "yes", "no"], default="auto", help="also measure a Slurm of our own")
    parser.add_argument("--only", type=lambda text: text.split(","), default=ALL, help=",".join(ALL))
    parser.add_argument("--out", default="bench-results.jsonl", help="JSON lines are appended here")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1000, help="no-op jobs in one trial")
    parser.add_argument("--times", type=int, default=30, help="commands in one trial")
    parser.add_argument("--backlog", type=int, default=50_000, help="pending jobs")
    parser.add_argument("--kind", choices=list(measures.KINDS), default="held", help="pending because held, or for want of free CPUs")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--slurm-kills", type=int, default=20, help="one takes Slurm about a second")
    parser.add_argument("--quiet", type=float, default=10, help="seconds to wait for other load to go before each trial")
    parser.add_argument("--keep", action="store_true", help="leave logs and state of the clusters behind")
    options = parser.parse_args()
    unknown = set(options.only) - set(ALL)
    if unknown:
        parser.error(f"no measure is called {', '.join(sorted(unknown))}")
    return options


def main():
    options = read_options()
    # Job output and pipes must be visible to the jobs, and the journal must lie on a real disk: not in a tmpfs.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-bench-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    directory.chmod(0o755)
    run, code = None, 1
    try:
        run = Run(options, directory)
        for cluster in run.clusters:
            cluster.start()
            run.note("start", cluster.name, {"version": cluster.version(), "at": time.strftime("%F %T"), "cpus": os.cpu_count()})
        measure_all(run)
    except (Failed, KeyboardInterrupt) as why:
        print(f"compare: {why or 'interrupted'}", file=sys.stderr)
    finally:
        for cluster in run.clusters if run else []:
            cluster.stop()
        if run:
            code = print_table(run.rows)
        if options.keep:
            print(f"kept: {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    sys.exit(main())
