#!/usr/bin/env python3
"""What a job counts for its account, whatever becomes of it, on Spur and on a Slurm with slurmdbd: one account for each fate.

    python3 tests/side_by_side/usage.py --spur target/release/spur

Takes some three minutes: a 22.05 counts once a PriorityCalcPeriod. Figures may differ by what a second here and there makes. As root.
Exit code 1 if any differs, 77 where there is no such Slurm."""
import signal
import sys
import time

import beside
from accounts import AccountsSlurm, AccountsSpur
from sreport import shell

# How far a figure may be off: in a hundred, and in seconds of one CPU.
SHARE, SECONDS = 0.15, 8

# The account, how its job is submitted, and what is done to it, each after so many seconds of running.
FATES = [
    ("plain", "-n2 --wrap 'sleep 20'", []),
    ("requeued", "-n2 --wrap 'sleep 60'", [(10, "scontrol requeuehold {job}")]),
    ("suspended", "-n2 --wrap 'sleep 25'", [(8, "scontrol suspend {job}"), (24, "scontrol resume {job}")]),
    ("cancelled", "-n3 --wrap 'sleep 60'", [(12, "scancel {job}")]),
    ("array", "-a 1-3 -n1 --wrap 'sleep 12'", []),
    ("het", "-n1 : -n2 --wrap 'sleep 15'", []),
    ("timeout", "-n1 -t 1 --wrap 'sleep 90'", []),
    ("held", "-n4 -H --wrap 'sleep 20'", [(5, "scancel {job}")]),
]
ASK = "sshare -nP -a -o account,user,rawusage"


def figures(cluster):
    rows = [line.strip().split("|") for line in shell(cluster, ASK)[0].splitlines()]
    names = [name for name, *_ in FATES]
    return {row[0].strip(): float(row[2]) for row in rows if len(row) == 3 and row[0].strip() in names and not row[1].strip()}


def main():
    options = beside.parser(__doc__).parse_args()
    if not AccountsSlurm.is_installed():
        print("no Slurm with slurmdbd and MariaDB is installed here: nothing to compare with")
        return 77
    with beside.both(AccountsSlurm, AccountsSpur, options.spur) as clusters:
        for cluster in clusters:
            for name, *_ in FATES:
                shell(cluster, f"sacctmgr -i add account {name} && sacctmgr -i add user root account={name}")
        time.sleep(2)
        todo = []
        for cluster in clusters:
            for name, words, deeds in FATES:
                out, err, code = shell(cluster, f"sbatch --parsable -o /dev/null -D / -A {name} {words.replace(' : ', f' : -A {name} ')}")
                if code != 0:
                    print(f"{cluster.name}: {name}: {err}")
                    continue
                job = out.strip().split(";")[0]
                todo += [(time.monotonic() + after, cluster, line.format(job=job)) for after, line in deeds]
        for at, cluster, line in sorted(todo, key=lambda one: one[0]):
            time.sleep(max(0, at - time.monotonic()))
            _, err, code = shell(cluster, line)
            if code != 0:
                print(f"{cluster.name}: {line}: {err}")
        # The last to end has a minute, a 22.05 looks once a minute, and ends jobs up to half a minute late.
        time.sleep(160)
        theirs, ours = (figures(cluster) for cluster in clusters)
    n_different = 0
    for name, *_ in FATES:
        pair = theirs.get(name), ours.get(name)
        is_near = None not in pair and abs(pair[0] - pair[1]) <= max(SECONDS, SHARE * max(pair))
        n_different += not is_near
        print(f"{'alike ' if is_near else 'DIFFER'} {name:10} slurm {pair[0]} spur {pair[1]}")
    print(f"{len(FATES) - n_different} alike, {n_different} differ")
    return 1 if n_different else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
