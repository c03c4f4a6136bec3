#!/usr/bin/env python3
"""PriorityFlags, one after the other, on Spur and on a Slurm with slurmdbd: what `sprio` says of the same waiting jobs.

    python3 tests/side_by_side/flags.py --spur target/release/spur

Factors may differ by what a second of age or use makes. As root. Exit code 1 if any differs, 77 where there is no such Slurm."""
import signal
import sys
import time

import beside
from accounts import AccountsSlurm, AccountsSpur
from sreport import shell

FLAGS = ["", "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES", "NO_NORMAL_ALL", "NO_NORMAL_ASSOC",
         "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME"]
WEIGHTS = {"Age": 700, "JobSize": 300, "Partition": 50}
SETUP = """
sacctmgr -i add qos q1 priority=30
sacctmgr -i modify qos normal set priority=10
sacctmgr -i add account a1 fairshare=3
sacctmgr -i add account a2 fairshare=1
sacctmgr -i add user root account=a1,a2 qos=normal,q1 priority=4
sleep 2
sbatch -o /dev/null -D / -A a1 -N8 --exclusive -t 30 --wrap 'sleep 600'
sleep 3
sbatch -o /dev/null -D / -J one -A a1 -n1 -t 10 --wrap true
sbatch -o /dev/null -D / -J two -A a2 -N4 -n32 -t 60 -q q1 --wrap true
sbatch -o /dev/null -D / -J three -A a2 -n8 --mem=2000 -t 5 --nice=7 --wrap true
sbatch -o /dev/null -D / -J four -A a1 -p short -N2 -t 100 --wrap true
sleep 6
"""
ASK = "sprio -h -o '%i %A %B %F %J %P %Q %N %T' | sort"


def slurm_with(flags):
    class Slurm(AccountsSlurm):
        def __init__(self, directory):
            super().__init__(directory)
            self.accounting += f"PriorityFlags={flags}\n" if flags else ""
            self.accounting += "".join(f"PriorityWeight{name}={weight}\n" for name, weight in WEIGHTS.items())
            self.accounting += "PriorityWeightTRES=CPU=2000,Mem=3000\n"
    return Slurm


def spur_with(flags):
    class Spur(AccountsSpur):
        def __init__(self, directory, binary):
            super().__init__(directory, binary)
            text = self.settings.read_text().replace("weight_tres = ''\n", "weight_tres = 'CPU=2000,Mem=3000'\n")
            names = {"Age": "weight_age", "JobSize": "weight_job_size", "Partition": "weight_partition"}
            text += "".join(f"{names[name]} = {weight}\n" for name, weight in WEIGHTS.items())
            self.settings.write_text(text + (f"priority_flags = '{flags}'\n" if flags else ""))
    return Spur


def is_near(one, other):
    left, right = one.replace("=", " ").replace(",", " ").split(), other.replace("=", " ").replace(",", " ").split()
    if len(left) != len(right):
        return False
    # A 22.05 weighs shares of new users within a minute, and has none before.
    left[3:4], right[3:4] = ([], []) if left[3:4] == ["0"] else (left[3:4], right[3:4])
    numbers = [(a, b) for a, b in zip(left, right) if a != b]
    return all(a.lstrip("-").isdigit() and b.lstrip("-").isdigit() and abs(int(a) - int(b)) <= max(3, 0.01 * abs(int(a))) for a, b in numbers)


def main():
    options = beside.parser(__doc__).parse_args()
    if not AccountsSlurm.is_installed():
        print("no Slurm with slurmdbd and MariaDB is installed here: nothing to compare with")
        return 77
    n_different = 0
    for flags in FLAGS:
        with beside.both(slurm_with(flags), spur_with(flags), options.spur) as clusters:
            for line in SETUP.strip().splitlines():
                if line.startswith("sleep"):
                    time.sleep(float(line.split()[1]))
                    continue
                for cluster in clusters:
                    out, err, code = shell(cluster, line)
                    if code != 0:
                        print(f"{cluster.name}: {line}: {code} {out}{err}")
            theirs, ours = (shell(cluster, ASK)[0].splitlines() for cluster in clusters)
            is_alike = len(theirs) == len(ours) and all(is_near(a, b) for a, b in zip(theirs, ours))
        n_different += not is_alike
        print(f"{'alike ' if is_alike else 'DIFFER'} {flags or 'none'}")
        for name, rows in (("slurm", theirs), ("spur ", ours)) if not is_alike or options.verbose else ():
            for row in rows:
                print(f"    {name} {row}")
        sys.stdout.flush()
    print(f"{len(FLAGS) - n_different} alike, {n_different} differ")
    return 1 if n_different else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
