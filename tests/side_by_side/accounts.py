"""The two systems with accounts: a Slurm with its own slurmdbd and MariaDB, and a Spur, which needs neither. Both enforce limits and weigh
priorities by fair-share; both begin with an empty tree."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from clusters import Failed, Slurm, Spur, free_ports, wait_for  # noqa: E402

ENFORCE = "associations,limits,qos,safe"


class AccountsSlurm(Slurm):
    @staticmethod
    def is_installed():
        return Slurm.is_installed() and all(shutil.which(name) for name in ("slurmdbd", "mariadbd", "mariadb-install-db"))

    def start(self):
        self.database_port, self.daemon_port = free_ports(2)
        super().start()

    def begin_controller(self):
        """Where munged is up and the controller is not: the database goes first."""
        if "slurmdbd" not in self.children:
            self.begin_database()
            self.begin_daemon()
        super().begin_controller()

    def begin_database(self):
        at = self.directory / "database"
        at.mkdir()
        shutil.chown(at, "mysql")
        subprocess.run(["mariadb-install-db", "--user=mysql", f"--datadir={at}", "--auth-root-authentication-method=normal"],
                       check=True, capture_output=True, timeout=300)
        self.child("mariadb", "mariadbd", "--no-defaults", "--user=mysql", f"--datadir={at}", f"--socket={at}/socket",
                   f"--port={self.database_port}", "--bind-address=127.0.0.1", f"--pid-file={at}/pid",
                   "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900")

        def ask(words):
            return subprocess.run(["mariadb", "-uroot", f"-S{at}/socket", "-e", words], capture_output=True).returncode == 0

        if not wait_for(lambda: ask("select 1"), 120, 0.5):
            raise Failed("the database did not come up")
        ask("create database slurm; create user slurm@localhost identified by 'x'; create user slurm@127.0.0.1 identified by 'x';"
            "grant all on slurm.* to slurm@localhost; grant all on slurm.* to slurm@127.0.0.1")

    def begin_daemon(self):
        at, settings = self.directory, self.directory / "slurmdbd.conf"
        settings.write_text(
            f"AuthType=auth/munge\nAuthInfo=socket={at}/munge/socket\nDbdHost=localhost\nDbdPort={self.daemon_port}\n"
            f"SlurmUser={self.run_as()}\nLogFile={at}/log/slurmdbd.log\nPidFile={at}/slurmdbd.pid\n"
            "StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStorageUser=slurm\nStoragePass=x\nStorageLoc=slurm\n"
            f"StoragePort={self.database_port}\n")
        settings.chmod(0o600)
        conf = at / "slurm.conf"
        text = conf.read_text().replace("AccountingStorageType=accounting_storage/none\n", (
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n"
            f"AccountingStoragePort={self.daemon_port}\nAccountingStoragePass={at}/munge/socket\n"
            f"AccountingStorageEnforce={ENFORCE}\nPriorityType=priority/multifactor\nPriorityDecayHalfLife=7-0\n"
            "PriorityCalcPeriod=00:01:00\nPriorityWeightFairshare=10000\nPriorityWeightQOS=1000\nPriorityWeightAssoc=500\n"
            "DefMemPerCPU=100\n"))
        text = text.replace("SelectTypeParameters=CR_CPU\n", "SelectTypeParameters=CR_CPU_Memory\n")
        conf.write_text(text + "PartitionName=short Nodes=n[1-2] QOS=pq MaxTime=INFINITE State=UP\n")
        self.child("slurmdbd", "slurmdbd", "-D")
        if not wait_for(lambda: self.run("sacctmgr", "-n", "list", "qos").returncode == 0, 120, 0.5):
            raise Failed("slurmdbd did not come up")
        # Known before the controller asks for them.
        self.run("sacctmgr", "-i", "add", "cluster", "bench")
        self.run("sacctmgr", "-i", "add", "qos", "pq")


class AccountsSpur(Spur):
    def __init__(self, directory, binary):
        super().__init__(directory, binary)
        settings = self.settings.read_text() + (
            "[[partitions]]\nname = 'short'\nnodes = 'n[1-2]'\nqos = 'pq'\n"
            f"[accounting]\nenforce = '{ENFORCE}'\n"
            "[scheduler]\npriority = 'multifactor'\npriority_half_life = 604800\npriority_calc_period = 60\n"
            "weight_fair_share = 10000\nweight_qos = 1000\nweight_association = 500\n"
            "default_memory_per_cpu_mb = 100\n")
        self.settings.write_text(settings)

    def start(self):
        super().start()
        self.run("sacctmgr", "-i", "add", "qos", "pq")
