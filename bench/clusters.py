"""The systems that are measured: each starts in a directory of its own and ends only what it started.

Both have 8 nodes of 8 CPUs, all of them on this machine."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

NODES, CPUS = 8, 8
SLOTS = NODES * CPUS


class Failed(Exception):
    """A system that cannot be measured, with the reason."""


def is_running(pid):
    """Whether any thread lives: a killed process keeps its locks while one of them still waits for the disk."""
    try:
        threads = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        states = [(each / "stat").read_text().rsplit(")", 1)[1].split()[0] for each in threads]
    except OSError:
        return pathlib.Path(f"/proc/{pid}").exists() and is_running(pid)
    return any(state not in "ZX" for state in states)


def wait_for(question, seconds, every=0.02):
    """Asks until the answer is true; false when it never was."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if question():
            return True
        time.sleep(every)
    return bool(question())


class Cluster:
    """Commands of one system, and its controller's process."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SPUR_", "SBATCH_"))}

    def run(self, *words, seconds=120):
        """One command; a command that does not end in time counts as failed."""
        words = (self.path(words[0]), *words[1:])
        try:
            return subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=seconds, close_fds=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", f"no answer in {seconds} s")

    def queued(self, *more):
        return self.run("squeue", "-h", "-o", "%i", *more).stdout.split()

    def submit(self, *words, seconds=120):
        answer = self.run("sbatch", "--parsable", "-o", "/dev/null", *words, seconds=seconds)
        if answer.returncode != 0:
            raise Failed(f"{self.name}: sbatch: {answer.stderr.strip()[:300]}")
        return answer.stdout.strip().split(";")[0]

    def empty_queue(self, seconds=300):
        """Cancels everything; false when something stays."""
        if self.queued():
            self.run("scancel", "-u", self.run_as(), seconds=seconds)
            # Root may have submitted for others.
            if others := self.run("squeue", "-h", "-o", "%A").stdout.split()[:1000]:
                self.run("scancel", *others, seconds=seconds)
        return wait_for(lambda: not self.queued(), seconds, 0.2)

    @staticmethod
    def run_as():
        return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()

    def stop_controller(self, with_signal):
        """Seconds until the controller was gone."""
        pid, begun = self.controller_pid(), time.monotonic()
        os.kill(pid, with_signal)
        if not wait_for(lambda: self.is_gone(pid), 60, 0.005):
            raise Failed(f"{self.name}: the controller does not end")
        return time.monotonic() - begun

    def controller_rss_mib(self):
        for line in pathlib.Path(f"/proc/{self.controller_pid()}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return round(int(line.split()[1]) / 1024, 1)

    def controller_cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.controller_pid()}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Spur(Cluster):
    name = "spur"
    # What a node is made of, and what of the section on scheduling.
    shape, scheduler = f"cpus = {CPUS}", ""

    def __init__(self, directory, binary):
        super().__init__(directory)
        self.binary = str(pathlib.Path(binary).resolve())
        self.home = self.directory / "cluster"
        self.bin = self.home / "bin"
        self.controller = None
        # `spur up` points a user's commands at the cluster it starts: not at this one.
        self.environment |= {"HOME": str(self.directory), "SPUR_CONF": str(self.home / "spur.conf")}
        self.settings = self.directory / "given.conf"
        self.settings.write_text(
            # Documents as the Slurm beside it writes them.
            "cluster_name = 'bench'\n[controller]\ndata_parser = 'v0.0.38'\nmax_job_count = 4000000\nmax_array_size = 1000001\n"
            f"[[nodes]]\nnames = 'n[1-{NODES}]'\n{self.shape}\nmemory_mb = 64000\n"
            f"[[partitions]]\nname = 'debug'\nnodes = 'n[1-{NODES}]'\ndefault = true\n{self.scheduler}")

    def path(self, command):
        return str(self.bin / command)

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True).stdout.strip()

    def start(self):
        answer = subprocess.run([self.binary, "up", "--dir", self.home, "--config", self.settings], env=self.environment,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if answer.returncode != 0:
            raise Failed(f"spur up: {answer.stderr.strip()}")

    def begin_controller(self):
        """Starts a stopped controller as `spur up` would, without waiting for its nodes."""
        with open(self.home / "log/controller.log", "ab") as log:
            self.controller = subprocess.Popen(["spurctld", "--config", str(self.home / "spur.conf")], executable=self.binary,
                                               env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               start_new_session=True)
        (self.home / "run/controller.pid").write_text(f"{self.controller.pid}\n")

    def is_gone(self, pid):
        is_ours = self.controller and self.controller.pid == pid
        return self.controller.poll() is not None if is_ours else not is_running(pid)

    def controller_pid(self):
        return int((self.home / "run/controller.pid").read_text())

    def stop(self):
        subprocess.run([self.binary, "down", "--dir", self.home], env=self.environment, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=120)
        if self.controller:
            self.controller.wait(60)


class Slurm(Cluster):
    name = "slurm"
    selection, shape = "CR_CPU", f"CPUs={CPUS}"
    # What is written about jobs; a Slurm with a database says more.
    accounting = "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"

    def __init__(self, directory):
        super().__init__(directory)
        self.directory.chmod(0o755)
        self.environment["SLURM_CONF"] = str(self.directory / "slurm.conf")
        self.children = {}

    @staticmethod
    def is_installed():
        return all(shutil.which(name) for name in ("slurmctld", "slurmd", "munged", "sbatch"))

    def path(self, command):
        return command

    def version(self):
        return self.run("sbatch", "--version").stdout.strip()

    def start(self):
        at, me, host = self.directory, self.run_as(), socket.gethostname().split(".")[0]
        for name in ("munge", "state", "spool", "log"):
            (at / name).mkdir(mode=0o755)
        key = at / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        ports = free_ports(NODES + 1)
        nodes = "".join(f"NodeName=n{i + 1} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[i + 1]} {self.shape} "
                        "RealMemory=64000 State=UNKNOWN\n" for i in range(NODES))
        (at / "slurm.conf").write_text(
            f"ClusterName=bench\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={ports[0]}\nSlurmUser={me}\nSlurmdUser={me}\n"
            f"AuthType=auth/munge\nAuthInfo=socket={at}/munge/socket\nCredType=cred/munge\n"
            f"SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.%n.pid\n"
            f"StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool/%n\n"
            f"SlurmctldLogFile={at}/log/slurmctld.log\nSlurmdLogFile={at}/log/slurmd.%n.log\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
            f"{self.accounting}JobCompType=jobcomp/none\nMpiDefault=none\n"
            f"SwitchType=switch/none\nSelectType=select/cons_tres\nSelectTypeParameters={self.selection}\n"
            "SchedulerType=sched/backfill\nSchedulerParameters=batch_sched_delay=0,default_queue_depth=1000\n"
            "MaxJobCount=100000\nMaxArraySize=100001\nReturnToService=2\nSlurmdParameters=config_overrides\n"
            f"{nodes}PartitionName=debug Nodes=n[1-{NODES}] Default=YES MaxTime=INFINITE State=UP\n")
        self.child("munged", "munged", "-F", "--force", f"--key-file={key}", f"--socket={at}/munge/socket",
                   f"--pid-file={at}/munge/pid", f"--log-file={at}/log/munged.log", f"--seed-file={at}/munge/seed")
        if not wait_for((at / "munge/socket").exists, 20):
            raise Failed("munged made no socket")
        self.begin_database()
        self.begin_controller()
        for i in range(1, NODES + 1):
            (at / f"spool/n{i}").mkdir()
            self.child(f"n{i}", "slurmd", "-D", "-N", f"n{i}")
        if not wait_for(lambda: self.run("sinfo", "-h", "-N", "-p", "debug", "-t", "idle", "-o", "%N").stdout.count("\n") == NODES, 180, 0.2):
            log = (at / "log/slurmctld.log").read_text() if (at / "log/slurmctld.log").exists() else ""
            raise Failed(f"not all nodes of the Slurm came up: {log[-600:]}")

    def child(self, name, *words):
        with open(self.directory / "log" / f"{name}.out", "ab") as log:
            self.children[name] = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self.children[name]

    def begin_database(self):
        """Before the controller, where there is one."""

    def begin_controller(self):
        self.child("slurmctld", "slurmctld", "-D")

    def controller_pid(self):
        return self.children["slurmctld"].pid

    def is_gone(self, pid):
        return self.children["slurmctld"].poll() is not None

    def stop(self):
        if "slurmctld" in self.children:
            self.run("scancel", "-u", self.run_as(), seconds=60)
            wait_for(lambda: not self.queued("-t", "R,CG"), 20, 0.2)
        for child in reversed(self.children.values()):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in reversed(self.children.values()):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def free_ports(count):
    """Ports that were free a moment ago."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
