"""The two systems with accounts: a Slurm with its own slurmdbd and MariaDB, and a Spur, which needs neither. Both enforce limits and weigh
priorities by fair-share; both begin with an empty tree."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from clusters import Spur  # noqa: E402
from sacct import SlurmWithHistory  # noqa: E402

ENFORCE = os.environ.get("ENFORCE", "associations,limits,qos,safe")
# What single resources add to priorities: nothing unless said so, since whoever is worth more starts first. And what they cost in
# the partition `short`.
TRES = os.environ.get("PRIORITY_WEIGHT_TRES", "")
BILLING = "CPU=2.0,Mem=10.0G,Node=0.5"


def with_implied(words):
    """In a spur.conf each word stands for itself; in a slurm.conf some ask for others."""
    words = words.split(",")
    implied = ["associations"] + ["limits"] * ("safe" in words) + ["nosteps"] * ("nojobs" in words)
    return ",".join(words + [word for word in implied if word not in words])


class AccountsSlurm(SlurmWithHistory):
    def __init__(self, directory):
        super().__init__(directory)
        self.accounting += (
            f"AccountingStorageEnforce={ENFORCE}\nPriorityType=priority/multifactor\nPriorityDecayHalfLife=7-0\n"
            "PriorityCalcPeriod=00:01:00\nPriorityWeightFairshare=10000\nPriorityWeightQOS=1000\nPriorityWeightAssoc=500\n"
            "DefMemPerCPU=100\n" + (f"PriorityWeightTRES={TRES}\n" if TRES else ""))

    def begin_database(self):
        super().begin_database()
        # Known before the controller asks for it.
        self.run("sacctmgr", "-i", "add", "qos", "pq")
        with open(self.directory / "slurm.conf", "a") as settings:
            settings.write(f"PartitionName=short Nodes=n[1-2] QOS=pq MaxTime=INFINITE State=UP TRESBillingWeights={BILLING}\n")


class AccountsSpur(Spur):
    def __init__(self, directory, binary):
        super().__init__(directory, binary)
        with open(self.settings, "a") as settings:
            settings.write(
                "[[partitions]]\nname = 'short'\nnodes = 'n[1-2]'\nqos = 'pq'\n"
                f"billing_weights = '{BILLING}'\n"
                f"[accounting]\nextern_steps = false\nkeep_scripts = true\nenforce = '{with_implied(ENFORCE)}'\n"
                "[scheduler]\npriority = 'multifactor'\npriority_half_life = 604800\npriority_calc_period = 60\n"
                "weight_fair_share = 10000\nweight_qos = 1000\nweight_association = 500\ndefault_memory_per_cpu_mb = 100\n"
                f"weight_tres = '{TRES}'\n")

    def start(self):
        super().start()
        self.run("sacctmgr", "-i", "add", "qos", "pq")
