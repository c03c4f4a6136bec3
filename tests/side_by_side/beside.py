"""Two systems that were told the same: how they are started and ended together, and how their answers are compared."""
import argparse
import contextlib
import difflib
import os
import pathlib
import shutil
import sys
import tempfile


def parser(description):
    """The options that every comparison has."""
    here = pathlib.Path(__file__).resolve().parent
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--spur", default=str(here.parents[1] / "target/release/spur"))
    options.add_argument("--verbose", action="store_true", help="also show what agrees")
    return options


def cases(file):
    """The lines of a file that are not remarks, with their numbers."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


@contextlib.contextmanager
def both(theirs, ours, binary):
    """A Slurm and a Spur in a directory that goes with them."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-beside-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    directory.chmod(0o755)
    clusters = [theirs(directory / "slurm"), ours(directory / "spur", binary)]
    try:
        for cluster in clusters:
            cluster.start()
        yield clusters
    finally:
        for cluster in clusters:
            cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


class Tally:
    """Counts what is alike and prints what is not; an answer is (stdout, stderr, exit code)."""

    def __init__(self, verbose):
        self.verbose, self.n_alike, self.n_different = verbose, 0, 0

    def take(self, label, line, theirs, ours):
        if theirs == ours:
            self.n_alike += 1
            if self.verbose:
                print(f"alike  {label} {line}\n{ours}")
            return
        self.n_different += 1
        print(f"DIFFER {label} {line}")
        for name, index in (("stdout", 0), ("stderr", 1)):
            for change in difflib.unified_diff(theirs[index].splitlines(), ours[index].splitlines(), "slurm", "spur", lineterm="", n=0):
                if not change.startswith(("---", "+++", "@@")):
                    print(f"    {name} {change}")
        if theirs[2] != ours[2]:
            print(f"    exit   -{theirs[2]} +{ours[2]}")
        sys.stdout.flush()

    def verdict(self):
        """The exit code."""
        print(f"{self.n_alike} alike, {self.n_different} differ")
        return 1 if self.n_different else 0
