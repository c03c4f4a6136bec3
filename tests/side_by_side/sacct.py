#!/usr/bin/env python3
"""The same jobs on Spur and on a Slurm with slurmdbd and MariaDB, both new; then what `sacct` says about them, compared.

    python3 tests/side_by_side/sacct.py --spur target/release/spur [--keep]

The jobs are those of `sacct_jobs.sh`, which has the same ids on both; the questions are the lines of `sacct.sh`. Times, durations
and measured numbers are made alike before they are compared. Exit code 1 if any answer differs, 77 where there is no such Slurm."""
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import beside  # noqa: E402
from clusters import Failed, Slurm, Spur, free_ports, wait_for  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# What one question may take, and all jobs together.
PATIENCE, JOBS_PATIENCE = 30, 240


class SlurmWithHistory(Slurm):
    """Its own MariaDB and slurmdbd beside it."""

    def __init__(self, directory):
        super().__init__(directory)
        self.database_port, self.history_port = free_ports(2)
        at = self.directory
        self.selection = "CR_CPU_Memory"
        self.accounting = (
            "JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=1\nAccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost=localhost\nAccountingStoragePort={self.history_port}\n"
            f"AccountingStoragePass={at}/munge/socket\nAccountingStoreFlags=job_script,job_comment,job_env\nKillWait=1\nMinJobAge=3600\n")

    @staticmethod
    def is_installed():
        return Slurm.is_installed() and all(shutil.which(name) for name in ("slurmdbd", "mariadbd", "mariadb-install-db"))

    def begin_database(self):
        at, me = self.directory, self.run_as()
        data = at / "mariadb"
        data.mkdir(mode=0o755)
        if me == "root":
            shutil.chown(data, "mysql")
        user = ["--user=mysql"] if me == "root" else []
        subprocess.run(["mariadb-install-db", *user, f"--datadir={data}", "--auth-root-authentication-method=normal"], check=True,
                       capture_output=True)
        socket = data / "socket"
        self.child("mariadbd", "mariadbd", "--no-defaults", *user, f"--datadir={data}", f"--socket={socket}", f"--port={self.database_port}",
                   "--bind-address=127.0.0.1", f"--pid-file={data}/pid", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900")
        ask = ["mariadb", "--no-defaults", "-uroot", "-S", str(socket), "-e"]
        if not wait_for(lambda: subprocess.run([*ask, "select 1"], capture_output=True).returncode == 0, 60, 0.2):
            raise Failed("MariaDB did not start")
        subprocess.run([*ask, "create database slurm; create user slurm@'127.0.0.1' identified by 'x'; create user slurm@localhost "
                        "identified by 'x'; grant all on slurm.* to slurm@'127.0.0.1'; grant all on slurm.* to slurm@localhost"], check=True)
        settings = at / "slurmdbd.conf"
        settings.write_text(
            f"AuthType=auth/munge\nAuthInfo=socket={at}/munge/socket\nDbdHost=localhost\nDbdPort={self.history_port}\nSlurmUser={me}\n"
            f"LogFile={at}/log/slurmdbd.log\nPidFile={at}/slurmdbd.pid\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
            f"StoragePort={self.database_port}\nStorageUser=slurm\nStoragePass=x\nStorageLoc=slurm\n")
        settings.chmod(0o600)
        self.child("slurmdbd", "slurmdbd", "-D")
        if not wait_for(lambda: self.run("sacctmgr", "-n", "list", "cluster", seconds=10).returncode == 0, 90, 0.3):
            raise Failed("slurmdbd did not answer")
        self.run("sacctmgr", "-i", "add", "cluster", "bench")


class SpurWithHistory(Spur):
    """As that Slurm is set up: no extern steps, scripts kept, and an account for root, which slurmdbd makes by itself."""

    def __init__(self, directory, binary):
        super().__init__(directory, binary)
        with open(self.settings, "a") as settings:
            settings.write("[accounting]\nextern_steps = false\nkeep_scripts = true\nkeep_environments = true\n")

    def start(self):
        super().start()
        self.run("sacctmgr", "-i", "add", "account", "root")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=root")


def normal(text, cluster):
    text = text.replace(str(cluster.directory / "work"), "DIR").replace(str(cluster.directory), "DIR")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    # How long something took differs by a second; whether it took any time does not matter either.
    text = re.sub(r"\b(\d+-)?\d\d:\d\d:\d\d(\.\d+)?\b|\b\d\d:\d\d\.\d{3}\b", "SPAN", text)
    return re.sub(r" +$", "", text, flags=re.M)


def shell(cluster, line, seconds):
    work = cluster.directory / "work"
    work.mkdir(exist_ok=True)
    environment = dict(cluster.environment)
    if cluster.name == "spur":
        environment["PATH"] = f"{cluster.bin}:{environment['PATH']}"
    try:
        done = subprocess.run(["bash", "-c", line], cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=seconds)
        return done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        return "", f"no end in {seconds} s", 124


def main():
    parser = beside.parser(__doc__)
    parser.add_argument("--keep", action="store_true", help="keep both running until a line is read from standard input")
    options = parser.parse_args()
    if not SlurmWithHistory.is_installed():
        print("no Slurm with slurmdbd and MariaDB is installed here: nothing to compare with")
        return 77
    tally = beside.Tally(options.verbose)
    with beside.both(SlurmWithHistory, SpurWithHistory, options.spur) as clusters:
        jobs = HERE / "sacct_jobs.sh"
        for cluster in clusters:
            out, err, code = shell(cluster, f". {jobs}", JOBS_PATIENCE)
            print(f"{cluster.name}: jobs ended with {code}: {(out + err).strip()[-600:]}")
        for number, line in beside.cases(HERE / "sacct.sh"):
            told = (shell(cluster, line, PATIENCE) for cluster in clusters)
            tally.take(number, line, *((normal(out, cluster), normal(err, cluster), code)
                                       for cluster, (out, err, code) in zip(clusters, told)))
        if options.keep:
            print(f"both run in {clusters[0].directory.parent}; a line ends them")
            sys.stdin.readline()
    return tally.verdict()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
