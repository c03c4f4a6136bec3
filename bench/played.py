"""A cluster whose nodes are all played by one process (`examples/agents`): controllers in a temporary directory, and questions to them.

    cargo build --release -p spur -p wire --bins --example agents
"""
import argparse, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

COMMANDS = ("sbatch", "squeue", "sinfo", "scancel", "scontrol", "sacct", "sdiag")


def arguments(controllers):
    parser = argparse.ArgumentParser()
    parser.add_argument("--spur", default="target/release/spur")
    parser.add_argument("--agents", default="target/release/examples/agents")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--controllers", type=int, default=controllers)
    parser.add_argument("--keep", action="store_true")
    return parser


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Played:
    """`with Played(options) as cluster:` ends what it has started."""

    def __init__(self, options, settings=""):
        self.options, self.started, self.controllers = options, [], []
        self.spur = os.path.abspath(options.spur)
        self.base = base = pathlib.Path(tempfile.mkdtemp(prefix="spur-played-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
        for name in ("run", "state", "log", "bin", "work"):
            (base / name).mkdir()
        for name in COMMANDS:
            (base / "bin" / name).symlink_to(self.spur)
        (base / "spur.conf").write_text(f"""cluster_name = "played"
[controller]
socket = "{base}/run/controller.sock"
state_dir = "{base}/state"
pid_file = "{base}/run/controller.pid"
log_file = "{base}/log/controller.log"
local_members = {options.controllers}
{settings}
[[nodes]]
names = "n[1-{options.nodes}]"
cpus = 8
memory_mb = 16000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
""")
        self.environment = dict(os.environ, PATH=f"{base}/bin:{os.environ['PATH']}", SPUR_CONF=f"{base}/spur.conf")

    def __enter__(self):
        try:
            for member in range(1, self.options.controllers + 1):
                words = [self.spur, "spurctld", "--config", str(self.base / "spur.conf")]
                self.controllers.append(self.start(words + (["--member", str(member)] if member > 1 else []), f"out-{member}.log"))
            self.until("the controllers", lambda: self.run("scontrol", "ping", check=False).count("is UP") == self.options.controllers, 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        for process in self.started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        if self.options.keep:
            print(f"kept: {self.base}", file=sys.stderr)
        else:
            shutil.rmtree(self.base, ignore_errors=True)

    def start(self, words, log):
        with open(self.base / "log" / log, "w") as file:
            process = subprocess.Popen(words, env=self.environment, stdout=file, stderr=subprocess.STDOUT, cwd=self.base / "work")
        self.started.append(process)
        return process

    def start_agents(self):
        """All of them; returns after how many seconds they are there."""
        sockets = [f"{self.base}/run/controller{suffix}.sock" for suffix in [""] + [f"-{m}" for m in range(2, self.options.controllers + 1)]]
        words = [os.path.abspath(self.options.agents), "--nodes", f"n[1-{self.options.nodes}]"]
        begin = time.perf_counter()
        self.start(words + [word for socket in sockets for word in ("--socket", socket)], "agents.log")
        self.until("all nodes", lambda: self.count("idle") == self.options.nodes)
        return time.perf_counter() - begin

    def run(self, *words, check=True):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, cwd=self.base / "work")
        if check and done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def timed(self, *words):
        begin = time.perf_counter()
        self.run(*words)
        return (time.perf_counter() - begin) * 1000

    def until(self, what, holds, limit=600):
        begin = time.perf_counter()
        while not holds():
            if time.perf_counter() - begin > limit:
                raise SystemExit(f"{what}: not within {limit} s; see {self.base} (--keep)")
            time.sleep(0.02)
        return time.perf_counter() - begin

    def state(self, job):
        return self.run("squeue", "-h", "-j", job, "-t", "all", "-o", "%t", check=False)

    def count(self, state):
        """Nodes in that state."""
        return sum(int(word) for word in self.run("sinfo", "-h", "-t", state, "-o", "%D", check=False).split() if word.isdigit())

    def tally(self):
        """What the agents have done so far."""
        lines = (self.base / "log/agents.log").read_text().strip().splitlines()
        return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", lines[-1])} if lines else {}

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.controllers[0].pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def cpu_seconds(self):
        """Of each controller, since it was started."""
        def used(process):
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return [used(process) for process in self.controllers]
