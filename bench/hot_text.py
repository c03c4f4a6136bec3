#!/usr/bin/env python3
"""Finds the functions that short-lived processes run, for the linker to put side by side (crates/spur/hot_text.txt). README.md says how."""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from clusters import Spur

# Other instances of a generic function share its name but for the hash. As long as they are small, the name alone is kept:
# it outlives compilers and new versions of libraries.
BYTES_FOR_A_NAME = 2048


def functions(executable):
    """Every function's size."""
    sizes = {}
    for line in subprocess.run(["nm", "-S", executable], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW":
            sizes[words[3]] = int(words[1], 16)
    if len(sizes) < 10_000:
        sys.exit("the executable has no symbols: cargo rustc --release -p spur --bin spur -- -C strip=none")
    return sizes


def run_by_commands(cluster, directory):
    """In the order in which they are first met: what each command runs, followed by callgrind."""
    follow = ["valgrind", "-q", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={directory}/%p.out"]
    script = directory / "inside.sh"
    script.write_text(f"#!/bin/bash\n{' '.join(follow)} {cluster.path('srun')} -Q --overlap -N1 -n1 true\n")
    script.chmod(0o755)
    submitted = [cluster.path("sbatch"), "-H", "-o", "/dev/null", "--wrap=true"]
    inside = [cluster.path("salloc"), "-Q", "-N1", "--exclusive", str(script)]
    questions = (("squeue", "-h", "-o", "%i %T"), ("squeue", "-j", "1"), ("scancel", "1"), ("sinfo",))
    asked = [follow + [cluster.path(name), *words] for name, *words in questions]
    for words in [follow + submitted, inside, *asked]:
        before = set(directory.glob("*.out"))
        subprocess.run(words, env=cluster.environment, capture_output=True, timeout=120, check=True)
        for told in set(directory.glob("*.out")) - before:
            for line in told.read_text().splitlines():
                if found := re.match(r"c?fn=\(\d+\) ([^ ']+)", line):
                    yield found[1]


def run_by_supervisors(cluster, directory):
    """What is seen of the supervisors of a few hundred jobs."""
    data, line = directory / "perf.data", f"{cluster.path('sbatch')} -o /dev/null --wrap=true"
    loop = f"for ((i = 0; i < 500; i++)); do {line} & {line}; done; wait; {cluster.path('sbatch')} -W -o /dev/null --wrap=true"
    subprocess.run(["perf", "record", "-a", "-q", "-F", "15000", "-o", data, "bash", "-c", loop], env=cluster.environment, capture_output=True, check=True)
    told = subprocess.run(["perf", "script", "-i", data, "--no-demangle", "--comm", "spurstepd", "-F", "ip,sym"], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        if len(words := line.split()) == 2:
            yield words[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spur", required=True, help="a release build with its symbols")
    parser.add_argument("--out", default=str(pathlib.Path(__file__).resolve().parent.parent / "crates/spur/hot_text.txt"))
    options = parser.parse_args()
    for needed in ("valgrind", "perf", "nm"):
        if not shutil.which(needed):
            sys.exit(f"{needed} is needed")
    sizes = functions(options.spur)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-hot-"))
    cluster = Spur(directory / "spur", options.spur)
    cluster.start()
    try:
        run = [name for name in (*run_by_commands(cluster, directory), *run_by_supervisors(cluster, directory)) if name in sizes]
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
    without_hash = lambda name: re.sub(r"17h[0-9a-f]{16}E(\..*)?$", "17h*", name)
    family = collections.Counter()
    for name, size in sizes.items():
        family[without_hash(name)] += size
    run = list(dict.fromkeys(run))
    own = collections.Counter()
    for name in run:
        own[without_hash(name)] += sizes[name]
    is_enough = lambda name: family[without_hash(name)] <= max(own[without_hash(name)], BYTES_FOR_A_NAME)
    lines = dict.fromkeys(without_hash(name) if is_enough(name) else name for name in run)
    head = "# Functions that commands and supervisors run, in the order of their first call; made by bench/hot_text.py, read by build.rs.\n"
    pathlib.Path(options.out).write_text(head + "\n".join(lines) + "\n")
    n_bytes = sum(sizes[name] for name in run)
    print(f"{len(run)} functions of {n_bytes >> 10} KiB in {len(lines)} lines; the executable has {len(sizes)} of {sum(sizes.values()) >> 10} KiB")


if __name__ == "__main__":
    main()
