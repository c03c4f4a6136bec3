#!/usr/bin/env python3
"""The mover against `cp -a` and `rsync -a`, in turn, on one file system: one large file, many small files, and its memory.

    cargo build --release -p mover --example move
    python3 bench/staging.py --mover target/release/examples/move --dir /var/tmp

Every trial writes to a directory of its own, and nothing is deleted before the end: ext4 avoids inodes that were freed a moment
ago, which makes whoever comes after a deletion slow. Trials go round robin; the ratio is of the medians. `sync` comes before
each trial and is not counted, so that nobody pays for another's dirty pages.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def make_small(where, count):
    data = os.urandom(16384)
    for number in range(count):
        directory = where / f"d{number // 10000}" / f"e{number // 100 % 100}"
        if number % 100 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number % 100:03}").write_bytes(data[: number * 37 % 8192 + 100])


def make_large(path, size):
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "little") + block[8:])


def run(command):
    os.sync()
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    return took, done.stdout


def idle():
    fields = lambda: [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    before = fields()
    time.sleep(0.2)
    spent = [b - a for a, b in zip(before, fields())]
    return round((spent[3] + spent[4]) / max(1, sum(spent)), 2)


def contest(name, source, base, ways, repeats, lines):
    times = {way: [] for way in ways}
    for number in range(repeats):
        for way, command in ways.items():
            target = base / f"{name}-{way}-{number}".replace(" ", "-")
            share = idle()
            took, _ = run([word.replace("SOURCE", str(source)).replace("TARGET", str(target)) for word in command])
            times[way].append(took)
            lines.append({"measure": name, "way": way, "seconds": round(took, 3), "idle": share})
            if name == "large":
                # Room is dearer than order here: one file frees no crowd of inodes.
                same = subprocess.run(["cmp", str(source), str(target)]).returncode == 0
                assert same, f"{way} made a different file"
                os.remove(target)
    median = {way: statistics.median(values) for way, values in times.items()}
    print(f"\n{name}: median of {repeats} (best), seconds")
    for way in ways:
        print(f"  {way:<16} {median[way]:8.2f} ({min(times[way]):.2f})")
    return median


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mover", required=True)
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--large-mib", type=int, default=4096)
    parser.add_argument("--memory-files", type=int, default=0, help="also copy so many empty files, for the mover's memory")
    parser.add_argument("--out", help="takes JSON lines")
    given = parser.parse_args()
    mover = str(pathlib.Path(given.mover).resolve())
    base = pathlib.Path(tempfile.mkdtemp(prefix="spur-staging-", dir=given.dir))
    lines = []
    try:
        ways = {
            "cp -a": ["cp", "-a", "SOURCE", "TARGET"],
            "mover": [mover, "--verify", "stream", "SOURCE", "TARGET"],
            "mover unverified": [mover, "--verify", "none", "SOURCE", "TARGET"],
            "mover full": [mover, "--verify", "full", "SOURCE", "TARGET"],
        }
        if given.large_mib:
            source = base / "large-source"
            make_large(source, given.large_mib << 20)
            large = contest("large", source, base, ways, given.repeats, lines)
            os.remove(source)
            print(f"  mover / cp -a: {large['cp -a'] / large['mover']:.2f} times as fast")
            print(f"  verification costs {100 * (large['mover'] / large['mover unverified'] - 1):.0f} %")
        if given.files:
            source = base / "small-source"
            make_small(source, given.files)
            ways["mover into a buffer"] = [mover, "--verify", "stream", "--fenced", "SOURCE", "TARGET"]
            if shutil.which("rsync"):
                ways["rsync -a"] = ["rsync", "-a", "SOURCE/", "TARGET/"]
            small = contest("small", source, base, ways, given.repeats, lines)
            for way in ways:
                same = subprocess.run(["diff", "-r", str(source), str(base / f"small-{way}-0".replace(" ", "-"))])
                assert same.returncode == 0, f"{way} made a different tree"
            print(f"  mover / cp -a: {small['cp -a'] / small['mover']:.2f} times as fast")
            if "rsync -a" in small:
                print(f"  mover / rsync -a: {small['rsync -a'] / small['mover']:.2f} times as fast")
            print(f"  verification costs {100 * (small['mover'] / small['mover unverified'] - 1):.0f} %")
        if given.memory_files:
            source = base / "many-source"
            for number in range(given.memory_files):
                if number % 1000 == 0:
                    (source / f"d{number // 1000}").mkdir(parents=True)
                (source / f"d{number // 1000}" / f"f{number % 1000}").touch()
            journal = base / "journal"
            for life in ("first", "resumed"):
                _, said = run([mover, "--journal", str(journal), str(source), str(base / "many-target")])
                print(f"\n{given.memory_files} files, {life}: {said.strip().rsplit('peak', 1)[-1].strip()} at most")
    finally:
        if given.out:
            with open(given.out, "a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        shutil.rmtree(base, ignore_errors=True)


main()
