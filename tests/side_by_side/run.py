#!/usr/bin/env python3
"""The same lines of shell on Spur and on a Slurm of its own (as bench/ starts them): what they print and how they end, compared.

    python3 tests/side_by_side/run.py --spur target/release/spur tests/side_by_side/srun.sh

A file has one case a line; lines that begin with `#` say what follows. Job ids, times, pids, ports and directories are made alike
before they are compared; so is the order of lines where a case begins with `sorted:`. After a case that begins with `stays:` its jobs stay for
the next; else they are cancelled. Exit code 1 if any case differs.

With --record FILE what the Slurm answered is written down (tests/golden), with a `~` before lines on which Spur differs and a `?` before those that
depend on the moment; tests/e2e/recorded.rs has Spur answer the others again.

With --accounts both systems have them: a Slurm with slurmdbd and MariaDB (tests/side_by_side/accounts.py), as root. Lines follow each other
on the same two trees, with the functions of accounts.lib at hand.

    python3 tests/side_by_side/run.py --accounts --spur target/release/spur tests/side_by_side/accounts.sh

With --cores their nodes have sockets, cores and threads, and whole cores are handed out (tests/side_by_side/cores.py)."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from clusters import Slurm, Spur  # noqa: E402
import beside  # noqa: E402
from accounts import AccountsSlurm, AccountsSpur  # noqa: E402
from cores import CoresSlurm, CoresSpur  # noqa: E402


# Longer than any case takes, but those that wait for what never comes.
PATIENCE = 30
# Of what is printed by something that has no end.
MOST = 10_000


def normal(text, cluster, work):
    for place in (work, cluster.directory):
        text = text.replace(str(place), "DIR")
    text = text.replace(work.name, "WORK")
    # A slurmd that shares its machine with others says which it is.
    text = re.sub(r"slurmstepd-n\d+:", "slurmstepd:", text)
    # How long an allocation takes is no difference.
    text = re.sub(r"(srun|salloc): job \d+ (queued and waiting for|has been allocated) resources\n", "", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    # Clusters are numbered, and answer at ports.
    text = re.sub(r"(?<=bench\|)127\.0\.0\.1\|\d+\|\d+\|", "HOST|PORT|RPC|", text)
    text = re.sub(r"(?<=StepId=)\d+|(?<=JobId=)\d+|(?i:(?<=job ))\d+|(?<=allocation )\d+|(?<=JOB )\d+|(?<=STEP )\d+", "ID", text)
    text = re.sub(r"(?<=bcast_)\d+", "ID", text)
    return re.sub(r"\bpid \d+", "pid PID", text)


def words_before(line):
    """What a case is to be taken as, and the case."""
    marks = set()
    while found := re.match(r"(sorted|stays):\s*", line):
        marks.add(found[1])
        line = line[found.end():]
    return marks, line.strip()


def run(cluster, line, number, stays):
    work = cluster.directory / f"work-{number}"
    work.mkdir()
    environment = dict(cluster.environment)
    if cluster.name == "spur":
        environment["PATH"] = f"{cluster.bin}:{environment['PATH']}"
    environment["BASH_ENV"] = str(pathlib.Path(__file__).resolve().parent / "accounts.lib")
    with subprocess.Popen(["bash", "-c", line], cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as shell:
        try:
            told = (*shell.communicate(timeout=PATIENCE), shell.returncode)
        except subprocess.TimeoutExpired:
            # All that the line has started: a pipe that one of them holds would never end.
            os.killpg(shell.pid, signal.SIGKILL)
            told = (*(part[:MOST] for part in shell.communicate()), f"no end in {PATIENCE} s")
    if not stays:
        cluster.empty_queue(60)
    return tuple(normal(part, cluster, work) if isinstance(part, str) else part for part in told)


def depends_on_the_moment(line, is_sorted, told):
    """Whether another run may answer otherwise: something is waited for or interrupted, or several tasks complain at once."""
    complaints = [row for row in told[1].splitlines() if "task" in row]
    # Who ends itself races with nobody.
    races = re.search(r"\bsleep [0-9.]|\bkill\b(?! -9 \\?\$)| & |\btrap\b|\brequeue\b", line)
    return races or not isinstance(told[2], int) or (len(complaints) > 1 and not is_sorted)


def record(file, line, marks, is_alike, told):
    """One case: what it is, standard output, standard error, exit code."""
    sign = "~" if not is_alike else "?" if depends_on_the_moment(line, "sorted" in marks, told) else "$"
    file.write(f"{sign} {''.join(f'{mark}: ' for mark in sorted(marks))}{line}\n")
    for sign, text in (("|", told[0]), ("!", told[1])):
        file.writelines(f"{sign}{row}\n" for row in text.split("\n")[:-1])
        # What does not end with its line.
        if rest := text.split("\n")[-1]:
            file.write(f"{sign}{rest}\\\n")
    file.write(f"= {told[2]}\n")


def main():
    parser = beside.parser(__doc__)
    parser.add_argument("--accounts", action="store_true", help="with accounts on both")
    parser.add_argument("--cores", action="store_true", help="with whole cores on both")
    parser.add_argument("--record", type=pathlib.Path, help="a file for what the Slurm answered")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    theirs, ours = (AccountsSlurm, AccountsSpur) if options.accounts else (CoresSlurm, CoresSpur) if options.cores else (Slurm, Spur)
    if not theirs.is_installed():
        more = ", slurmdbd, mariadbd" if options.accounts else ""
        print(f"no Slurm is installed here (slurmctld, slurmd, munged, sbatch{more} on PATH): nothing to compare with")
        return 77
    tally = beside.Tally(options.verbose)
    recording = options.record.open("w") if options.record else contextlib.nullcontext()
    with beside.both(theirs, ours, options.spur) as clusters, recording as recorded:
        for file in options.files:
            for number, line in beside.cases(file):
                marks, line = words_before(line)
                told = [run(cluster, line, f"{file.stem}-{number}", "stays" in marks) for cluster in clusters]
                if "sorted" in marks:
                    told = [(*("".join(sorted(part.splitlines(True))) for part in one[:2]), one[2]) for one in told]
                if recorded:
                    record(recorded, line, marks, told[0] == told[1], told[0])
                tally.take(f"{file.stem}:{number}", line, *told)
    return tally.verdict()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
