#!/usr/bin/env python3
"""The same jobs on Spur and on a Slurm with slurmdbd; then, when the hour is over, what `sreport` says of it, compared.

    python3 tests/side_by_side/sreport.py --spur target/release/spur

slurmdbd counts whole hours only, so this begins at once and ends some two minutes after the next full hour: begin it at five or ten
minutes before one. Words must be the same; numbers may differ by what a second here and there makes. As root. Exit code 1 if any
answer differs, 77 where there is no such Slurm."""
import argparse
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from accounts import AccountsSlurm, AccountsSpur

# How far a number may be off: in a hundred, and in seconds of one CPU.
SHARE, SECONDS = 0.08, 60

JOBS = """
sacctmgr -i add account science
sacctmgr -i add account chem,bio parent=science
sacctmgr -i add account odd
sacctmgr -i add user root account=chem,odd
sacctmgr -i add user daemon account=chem
sacctmgr -i add user nobody account=bio
sleep 1
scontrol create reservation reservationname=kept starttime=now duration=3 nodes=n7,n8 users=root
sbatch -o /dev/null -D / -A chem -n4 --wrap 'sleep 50'
sbatch -o /dev/null -D / -A chem --uid=daemon -N2 -n2 --wrap 'sleep 40'
sbatch -o /dev/null -D / -A bio --uid=nobody -N1 -n8 --wrap 'sleep 30'
sbatch -o /dev/null -D / -A bio --uid=nobody -a 1-3 --wrap 'sleep 20'
sbatch -o /dev/null -D / -A odd -n1 --mem=500 --wrap 'sleep 60'
sbatch -o /dev/null -D / -A chem -N1 -n3 --reservation=kept --wrap 'sleep 25'
sbatch -o /dev/null -D / -A odd -n2 --wrap 'sleep 300' -t 5
sleep 15
scontrol update nodename=n6 state=down reason=broken
sleep 45
scontrol update nodename=n6 state=resume
scancel -A odd
sleep 10
"""

# {hour}: from the start of the hour to its end.
QUESTIONS = """
sreport -n -P -t seconds cluster utilization {hour}
sreport -n -P -t seconds -T cpu,mem,node,billing cluster utilization {hour}
sreport -n -P -t seconds cluster accountutilizationbyuser {hour}
sreport -n -P -t seconds cluster accountutilizationbyuser tree {hour}
sreport -n -P -t seconds cluster accountutilizationbyuser accounts=chem {hour}
sreport -n -P -t seconds cluster accountutilizationbyuser users=daemon {hour}
sreport -n -P -t seconds -T cpu,mem cluster accountutilizationbyuser {hour}
sreport -n -P -t seconds cluster userutilizationbyaccount {hour}
sreport -n -P -t seconds cluster userutilizationbyaccount users=root {hour}
sreport -n -P -t seconds user topusage {hour}
sreport -n -P -t seconds user topusage topcount=1 {hour}
sreport -n -P -t seconds user topusage group {hour}
sreport -n -P -t seconds user topusage accounts=bio {hour}
sreport -n -P -t seconds job sizesbyaccount {hour}
sreport -n -P -t seconds job sizesbyaccount flatview {hour}
sreport -n -P -t seconds job sizesbyaccount grouping=2,4 {hour}
sreport -n -P job sizesbyaccount printjobcount {hour}
sreport -n -P job sizesbyaccount printjobcount flatview grouping=2,4 {hour}
sreport -n -P job sizesbyaccount printjobcount accounts=science {hour}
sreport -n -P job sizesbyaccount printjobcount users=daemon flatview {hour}
sreport -n -P -t seconds reservation utilization {hour}
sreport -n -P -t seconds reservation utilization format=name,allocated,idle,totaltime {hour}
sreport -P -t minutes cluster utilization {hour}
sreport -t minper cluster utilization {hour}
sreport -t percent cluster accountutilizationbyuser {hour}
sreport -t hours user topusage {hour}
sreport job sizesbyaccount printjobcount {hour}
sreport cluster utilization {hour}
sreport user topusage format=login,account,used%20 {hour}
sreport -n -P -t secper cluster utilization {hour}
sreport -n -P -t hourper cluster utilization {hour}
sreport -n -P -t seconds --tres=cpu,node cluster accountutilizationbyuser {hour}
sreport -n -P -t seconds -T all cluster utilization {hour}
sreport -n -P -t seconds -T cpu,mem user topusage {hour}
sreport -n -P -t minutes -T cpu,mem cluster userutilizationbyaccount tree {hour}
sreport -n -P -t seconds -T mem job sizesbyaccount {hour}
sreport -n -P -t seconds -T node,cpu reservation utilization {hour}
sreport -n -P -t seconds cluster utilization start={start:%Y-%m-%dT%H:%M} end={end:%Y-%m-%dT%H:%M}
sreport -n -P -t seconds cluster utilization start={start:%m/%d-%H:%M} end={end:%m/%d-%H:%M}
sreport -n -P -t seconds cluster utilization start={start:%m/%d/%y-%H:%M:%S} end={end:%m/%d/%y-%H:%M:%S}
sreport -n -P -t seconds cluster utilization start={start:%m%d%y-%H:%M} end={end:%m%d%y-%H:%M}
sreport -n -P -t seconds cluster utilization start=midnight end={end:%H:%M}
sreport -n -P -t seconds cluster utilization start=today end=tomorrow
sreport -n -P -t seconds cluster utilization start={start:%H:%M} end=now
sreport -P -t seconds cluster utilization start={start:%H:%M}
sreport -n -P -t seconds -a cluster utilization {hour}
sreport -n -P -t seconds -M bench cluster utilization {hour}
sreport -n -P -t seconds cluster utilization all_clusters {hour}
sreport -n -P -t seconds --local cluster utilization {hour}
sreport -Q -p -t seconds cluster utilization {hour}
sreport -p -t seconds cluster utilization format=cluster,tresname,allocated,down,planneddown,idle,reserved,reported,overcommitted {hour}
sreport -p -t seconds cluster accountutilizationbyuser format=accounts,cluster,energy,login,proper,tresname,used {hour}
sreport -p -t seconds cluster userutilizationbyaccount format=login,proper,accounts,cluster,used {hour}
sreport -p -t seconds user topusage format=accounts,cluster,login,proper,tresname,used {hour}
sreport -p -t seconds reservation utilization format=associations,cluster,end,flags,idle,name,nodes,reservationid,start,totaltime,allocated,tresname,tresstime {hour}
sreport -p -t seconds job sizesbyaccount format=account,cluster {hour}
sreport -p -t seconds job sizesbyaccount partitions=debug {hour}
sreport -p -t seconds job sizesbyaccount nodes=n1 {hour}
sreport -p -t seconds job sizesbyaccount gid=0 {hour}
sreport -p -t seconds job sizesbyaccount jobs=1 {hour}
sreport -p -t seconds job sizesbyaccount wckeys=x {hour}
sreport -p -t seconds job sizesbyaccountandwckey {hour}
sreport -p -t seconds job sizesbywckey {hour}
sreport -p -t seconds cluster userutilizationbywckey {hour}
sreport -p -t seconds cluster wckeyutilizationbyuser {hour}
sreport -p -t seconds user topusage users=root {hour}
sreport -p -t seconds user topusage clusters=bench {hour}
sreport -p -t seconds reservation utilization names=kept {hour}
sreport -p -t seconds reservation utilization names=nosuch {hour}
sreport -p -t seconds reservation utilization nodes=n7 {hour}
sreport -p -t seconds reservation utilization ids=1 {hour}
sreport -p -t seconds reservation utilization flags=x {hour}
sreport cluster utilization colour=red {hour}
sreport cluster utilization format=colour {hour}
sreport user topusage topcount=x {hour}
sreport job sizesbyaccount grouping=x {hour}
sreport job sizesbyaccount grouping=individual {hour}
"""


def shell(cluster, line, seconds=60):
    environment = dict(cluster.environment)
    if cluster.name == "spur":
        environment["PATH"] = f"{cluster.bin}:{environment['PATH']}"
    done = subprocess.run(["bash", "-c", line], cwd=cluster.directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=seconds)
    return done.stdout, done.stderr, done.returncode


def words(text):
    """Cells of a line, whichever way they are told apart."""
    return [[cell.strip() for cell in (line.split("|") if "|" in line else line.split())] for line in text.splitlines()]


def number(cell):
    try:
        return float(cell.rstrip("%")) if cell.endswith("%") else float(cell)
    except ValueError:
        return None


def is_near(one, other):
    if one == other:
        return True
    # `12.30%`, or `600(1.50%)`
    parts = [cell.rstrip(")").split("(") for cell in (one, other)]
    if len(parts[0]) != len(parts[1]):
        return False
    pairs = [(number(left), number(right)) for left, right in zip(*parts)]
    return all(None not in pair and abs(pair[0] - pair[1]) <= max(SECONDS, SHARE * max(map(abs, pair))) for pair in pairs)


def is_alike(theirs, ours):
    left, right = words(theirs), words(ours)
    return len(left) == len(right) and all(
        len(a) == len(b) and all(is_near(x, y) for x, y in zip(a, b)) for a, b in zip(left, right))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spur", default=str(pathlib.Path(__file__).resolve().parents[2] / "target/release/spur"))
    parser.add_argument("--keep", action="store_true", help="keep both running until a line is read from standard input")
    options = parser.parse_args()
    if not AccountsSlurm.is_installed():
        print("no Slurm with slurmdbd and MariaDB is installed here: nothing to compare with")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="spur-beside-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    directory.chmod(0o755)
    clusters = [AccountsSlurm(directory / "slurm"), AccountsSpur(directory / "spur", options.spur)]
    n_alike, different = 0, []
    try:
        for cluster in clusters:
            cluster.start()
        hour = datetime.datetime.now().replace(minute=0, second=0, microsecond=0)
        end = hour + datetime.timedelta(hours=1)
        if (end - datetime.datetime.now()).total_seconds() < 150:
            print("too close to the full hour: begin again when it is over")
            return 1
        lines = JOBS.strip().splitlines()
        # Both at the same time, so that both have the same hour.
        for line in lines:
            if line.startswith("sleep"):
                time.sleep(float(line.split()[1]))
                continue
            for cluster in clusters:
                out, err, code = shell(cluster, line)
                if code != 0:
                    print(f"{cluster.name}: {line}: {code} {out}{err}")
        sys.stdout.flush()
        while datetime.datetime.now() < end + datetime.timedelta(seconds=5):
            time.sleep(1)
        asked = f"start={hour:%Y-%m-%dT%H:00:00} end={end:%Y-%m-%dT%H:00:00}"
        probe = f"sreport -n -P -t seconds cluster utilization {asked}"
        for _ in range(90):
            if shell(clusters[0], probe)[0].strip():
                break
            time.sleep(1)
        print(f"asked at {datetime.datetime.now():%H:%M:%S}")
        for line in QUESTIONS.strip().splitlines():
            line = line.format(hour=asked, start=hour, end=end)
            theirs, ours = (shell(cluster, line) for cluster in clusters)
            if is_alike(theirs[0], ours[0]) and theirs[1:] == ours[1:]:
                n_alike += 1
                print(f"alike  {line}\n    {ours[0].splitlines()[:3]}")
                continue
            different.append(line)
            print(f"DIFFER {line}")
            for told, name in ((theirs, "slurm"), (ours, "spur ")):
                for text in (told[0] + told[1]).splitlines():
                    print(f"    {name} {text}")
            sys.stdout.flush()
        if options.keep:
            print(f"both run in {directory}; a line ends them", flush=True)
            sys.stdin.readline()
    finally:
        for cluster in clusters:
            cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{n_alike} alike, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
