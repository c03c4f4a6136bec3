#!/usr/bin/env python3
"""The mover against `cp -a` and `rsync -a`, in turn, on one file system: one large file, many small files, and its memory.

    cargo build --release -p mover --example move
    python3 bench/staging.py --mover target/release/examples/move --dir /var/tmp
    python3 bench/staging.py --mover target/release/examples/move --files 0 --rounds 15      # the large file only

Ways go in turn, each round begins with another one, and what counts is the median of the ratios of each round. CPU seconds (user
and system, of the copying process) stand beside the time: they hardly depend on who else is on the machine.

Large file: before each copy the source is in the page cache, nothing is dirty, and as much memory as the copy needs has been in use
until a moment ago (`room`, a file that is read and whose every other MiB is then dropped from the cache). Without that a guest whose
free memory goes back to its host (a balloon that reports free pages) pays the host for page after page: the same copy takes once
0.7 s and once 2.5 s, whoever makes it.

Small files: every trial writes to a directory of its own, and nothing is deleted before the end: ext4 avoids inodes that were freed
a moment ago, which makes whoever comes after a deletion slow.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

Trial = collections.namedtuple("Trial", "seconds cpu said")
BLOCK = 1 << 20


def make_small(where, count):
    data = os.urandom(16384)
    for number in range(count):
        directory = where / f"d{number // 10000}" / f"e{number // 100 % 100}"
        if number % 100 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number % 100:03}").write_bytes(data[: number * 37 % 8192 + 100])


def make_large(path, size):
    block = os.urandom(BLOCK)
    with open(path, "wb") as file:
        for number in range(size // BLOCK):
            file.write(number.to_bytes(8, "little") + block[8:])


def run(command):
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command}: {said}")
    return Trial(seconds, used.ru_utime + used.ru_stime, said)


def kib_of(*names):
    rows = (line.split() for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return sum(int(row[1]) for row in rows if row[0].rstrip(":") in names)


def settle():
    """Nothing of an earlier trial is still on its way to the disk; others on this machine may go on writing."""
    for _ in range(20):
        os.sync()
        if kib_of("Dirty", "Writeback") < 64 << 10:
            return
        time.sleep(0.25)


def read(path):
    buffer = bytearray(BLOCK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def free_every_other(path):
    """Pages that were in use until now, in stretches that are too short for a balloon to take to the host (2 MiB and more)."""
    with open(path, "rb", buffering=0) as file:
        # Page by page: a folio that reaches over the end of a stretch would stay.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        buffer = bytearray(BLOCK)
        while file.readinto(buffer):
            pass
        for start in range(0, path.stat().st_size, 2 * BLOCK):
            os.posix_fadvise(file.fileno(), start, BLOCK, os.POSIX_FADV_DONTNEED)


def reported_mib():
    """What the balloon, if there is one that counts, has given back to the host so far."""
    count = pathlib.Path("/sys/module/page_reporting/parameters/reported_kib")
    return int(count.read_text()) >> 10 if count.exists() else 0


def idle():
    fields = lambda: [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    before = fields()
    time.sleep(0.2)
    spent = [b - a for a, b in zip(before, fields())]
    return round((spent[3] + spent[4]) / max(1, sum(spent)), 2)


def contest(name, source, base, ways, rounds, lines, before, after):
    """Trials by way, one a round; who begins changes."""
    trials = {way: [] for way in ways}
    for number in range(rounds):
        order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
        for way in order:
            target = base / f"{name}-{way}-{number}".replace(" ", "-")
            share = idle()
            before()
            given_back = reported_mib()
            trial = run([word.replace("SOURCE", str(source)).replace("TARGET", str(target)) for word in ways[way]])
            trials[way].append(trial)
            line = {"measure": name, "way": way, "round": number, "seconds": round(trial.seconds, 3)}
            lines.append(line | {"cpu": round(trial.cpu, 3), "idle": share, "given_back_mib": reported_mib() - given_back})
            after(way, target)
    print(f"\n{name}: {rounds} rounds; seconds and CPU seconds, median (best)")
    for way in ways:
        seconds, cpu = ([trial[index] for trial in trials[way]] for index in (0, 1))
        print(f"  {way:<20} {statistics.median(seconds):7.2f} ({min(seconds):.2f}) {statistics.median(cpu):9.2f} ({min(cpu):.2f})")
    return trials


def ratio(trials, one, other, index=0):
    """How often one way's figure goes into the other's, round by round: quartiles."""
    each = sorted(b[index] / a[index] for a, b in zip(trials[one], trials[other]))
    return (each[len(each) // 4], statistics.median(each), each[-1 - len(each) // 4])


def verdict(words, figures, is_met, asked):
    low, middle, high = figures
    print(f"  {words}: {middle:.2f} ({low:.2f} to {high:.2f} in half of the rounds); asked {asked}: {'met' if is_met else 'NOT MET'}")
    return is_met


def judge(trials, name):
    faster = ratio(trials, "mover", "cp -a")
    cheaper = ratio(trials, "mover", "cp -a", 1)
    costs = ratio(trials, "mover unverified", "mover")
    met = [
        verdict(f"{name}: mover, times as fast as cp -a", faster, faster[1] >= 1, "1.00"),
        verdict(f"{name}: verification, times as long", costs, costs[1] <= 1.25, "1.25"),
    ]
    print(f"  {name}: cp -a, times the CPU seconds of the mover: {cheaper[1]:.2f}")
    if "rsync -a" in trials:
        rsync = ratio(trials, "mover", "rsync -a")
        met.append(verdict(f"{name}: mover, times as fast as rsync -a", rsync, rsync[1] >= 1.5, "1.50"))
    return all(met)


def one_large(given, base, ways, lines):
    source, room = base / "large-source", base / "room"
    make_large(source, given.large_mib << 20)
    make_large(room, 2 * given.large_mib << 20)
    if kib_of("MemAvailable") < 4 * given.large_mib << 10:
        print("less memory than four times the file: the source does not stay in the page cache, the disk is measured too")

    def before():
        settle()
        read(source)
        free_every_other(room)

    def after(way, target):
        assert subprocess.run(["cmp", str(source), str(target)]).returncode == 0, f"{way} made a different file"
        os.remove(target)

    trials = contest("large", source, base, ways, given.rounds, lines, before, after)
    if given.full:
        full = {"mover full": [ways["mover"][0], "--verify", "full", "SOURCE", "TARGET"]}
        contest("large, read back", source, base, full, 3, lines, before, after)
    os.remove(source)
    os.remove(room)
    return judge(trials, "large")


def many_small(given, base, ways, lines):
    source = base / "small-source"
    make_small(source, given.files)
    mover = ways["mover"][0]
    ways = ways | {"mover into a buffer": [mover, "--verify", "stream", "--fenced", "SOURCE", "TARGET"]}
    has_rsync = shutil.which("rsync") is not None
    if has_rsync:
        ways["rsync -a"] = ["rsync", "-a", "SOURCE/", "TARGET/"]
    trials = contest("small", source, base, ways, given.small_rounds, lines, settle, lambda way, target: None)
    for way in ways:
        same = subprocess.run(["diff", "-r", str(source), str(base / f"small-{way}-0".replace(" ", "-"))])
        assert same.returncode == 0, f"{way} made a different tree"
    if not has_rsync:
        print("  rsync is not installed: NOT MEASURED")
    return judge(trials, "small") and has_rsync


def memory(given, base, mover):
    source = base / "many-source"
    for number in range(given.memory_files):
        if number % 1000 == 0:
            (source / f"d{number // 1000}").mkdir(parents=True)
        (source / f"d{number // 1000}" / f"f{number % 1000}").touch()
    journal = base / "journal"
    is_met = True
    for life in ("first", "resumed"):
        said = run([mover, "--journal", str(journal), str(source), str(base / "many-target")]).said
        peak_kib = int(said.rsplit("peak", 1)[-1].split()[0])
        is_met &= peak_kib * 1024 < 100_000_000
        words = "met" if peak_kib * 1024 < 100_000_000 else "NOT MET"
        print(f"\n{given.memory_files} files, {life}: {peak_kib} KiB at most; asked less than 100 MB: {words}")
    return is_met


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mover", required=True)
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--rounds", type=int, default=9, help="of the large file")
    parser.add_argument("--small-rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--large-mib", type=int, default=4096)
    parser.add_argument("--full", action="store_true", help="also three copies that are read back from the disk")
    parser.add_argument("--memory-files", type=int, default=0, help="also copy so many empty files, for the mover's memory")
    parser.add_argument("--out", help="takes JSON lines")
    given = parser.parse_args()
    mover = str(pathlib.Path(given.mover).resolve())
    base = pathlib.Path(tempfile.mkdtemp(prefix="spur-staging-", dir=given.dir))
    ways = {
        "cp -a": ["cp", "-a", "SOURCE", "TARGET"],
        "mover": [mover, "--verify", "stream", "SOURCE", "TARGET"],
        "mover unverified": [mover, "--verify", "none", "SOURCE", "TARGET"],
    }
    lines = []
    is_met = True
    try:
        if given.large_mib:
            is_met &= one_large(given, base, ways, lines)
        if given.files:
            is_met &= many_small(given, base, ways, lines)
        if given.memory_files:
            is_met &= memory(given, base, mover)
    finally:
        if given.out:
            with open(given.out, "a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        shutil.rmtree(base, ignore_errors=True)
    print("\nverdict: " + ("all met" if is_met else "NOT all met"))
    sys.exit(0 if is_met else 1)


main()
