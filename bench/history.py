#!/usr/bin/env python3
"""History: one job among a million rows, and what recording costs submissions. README.md says how."""
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
from clusters import Failed, Spur

clock = time.monotonic


def among(directory, options):
    """`sacct -j ONE` with `options.rows` jobs in history, filled through the store's own code; a new process each time."""
    cluster = Spur(directory / "million", options.spur)
    cluster.start()
    cluster.stop()
    begun = clock()
    database = cluster.home / "state/history.sqlite"
    subprocess.run([options.fill, database, str(options.rows)], check=True, timeout=1800)
    filled = clock() - begun
    cluster.start()
    try:
        figures = {"rows": options.rows, "fill_s": round(filled, 1), "file_mb": round(database.stat().st_size / 1e6)}
        ids = [1, options.rows // 2, options.rows]
        for name, words in (("one", lambda i: ["-j", str(ids[i % 3])]), ("one_day_user", lambda i: ["-u", "root", "-S", "now-1days"]),
                            ("one_hour_all", lambda i: ["-a", "-X", "-S", "now-2hours", "-E", "now-1hours"])):
            i, lines = iter(range(10_000)), []

            def ask():
                answer = cluster.run("sacct", "-n", "-P", *words(next(i)))
                if answer.returncode != 0:
                    raise Failed(answer.stderr.strip()[:300])
                lines.append(answer.stdout.count("\n"))

            figures[f"{name}_ms"] = measures.summary(measures.timed(ask, options.times))
            figures[f"{name}_lines"] = max(lines)
        return figures
    finally:
        cluster.stop()


def submissions(directory, options, trial):
    """sbatch of held jobs from four loops, with and without history, in turn."""
    figures = {}
    for name, lines in (("with", ""), ("without", "[accounting]\ndatabase = 'none'\n")):
        cluster = Spur(directory / f"{name}-{trial}", options.spur)
        # Sections may come in any order.
        cluster.settings.write_text(cluster.settings.read_text() + lines)
        cluster.start()
        try:
            idle = measures.wait_for_quiet(options.quiet)
            took, acknowledged = measures.submit_many(cluster, options.jobs, 4, ["-H", "--wrap=true"], 600)
            figures[f"{name}_per_s"], figures[f"{name}_idle"] = round(acknowledged / took, 1), idle
        finally:
            cluster.stop()
    figures["slower_percent"] = round((1 - figures["with_per_s"] / figures["without_per_s"]) * 100, 1)
    return figures


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spur", default=str(here.parent / "target/release/spur"))
    parser.add_argument("--fill", default=str(here.parent / "target/release/examples/fill"),
                        help="cargo build --release -p accounting --example fill")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["among", "submissions"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quiet", type=float, default=10)
    parser.add_argument("--out", default="bench-history.jsonl")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-history-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    directory.chmod(0o755)

    def note(row):
        print(json.dumps(row), flush=True)
        with open(options.out, "a") as out:
            out.write(json.dumps(row) + "\n")

    try:
        if "among" in options.only:
            note({"measure": "among", "idle": measures.wait_for_quiet(options.quiet), **among(directory, options)})
        if "submissions" in options.only:
            rows = [submissions(directory, options, trial) for trial in range(options.repeats)]
            for row in rows:
                note({"measure": "submissions", **row})
            best = {name: max(row[f"{name}_per_s"] for row in rows) for name in ("with", "without")}
            note({"measure": "submissions, best of each", **best, "slower_percent": round((1 - best["with"] / best["without"]) * 100, 1)})
    except Failed as why:
        print(f"history: {why}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
