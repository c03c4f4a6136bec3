#!/usr/bin/env python3
"""What many agents cost three controllers that have nothing to do, and one job on all of them.

    cargo build --release -p spur && cargo build --release -p wire --example agents
    python3 bench/heartbeats.py [--spur target/release/spur] [--agents target/release/examples/agents] [--nodes 1000]

Measures the controllers' CPU time over --seconds, first without agents (the members' own heartbeats), then with all of them connected
(one process plays them; each says that it lives every 5 s); the difference is what agents cost. Then a job on all nodes: until it runs,
until it has ended by itself, and whether every node is idle again.
"""
import argparse, os, pathlib, shutil, signal, subprocess, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--spur", default="target/release/spur")
parser.add_argument("--agents", default="target/release/examples/agents")
parser.add_argument("--nodes", type=int, default=1000)
parser.add_argument("--controllers", type=int, default=3)
parser.add_argument("--seconds", type=float, default=30)
options = parser.parse_args()
spur, played = os.path.abspath(options.spur), os.path.abspath(options.agents)
base = pathlib.Path(tempfile.mkdtemp(prefix="spur-heartbeats-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
for name in ("run", "state", "log", "bin", "work"):
    (base / name).mkdir()
(base / "spur.conf").write_text(f"""cluster_name = "played"
[controller]
socket = "{base}/run/controller.sock"
state_dir = "{base}/state"
pid_file = "{base}/run/controller.pid"
log_file = "{base}/log/controller.log"
local_members = {options.controllers}
[[nodes]]
names = "n[1-{options.nodes}]"
cpus = 8
memory_mb = 16000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
""")
for name in ("sbatch", "squeue", "sinfo", "scontrol", "sacct"):
    (base / "bin" / name).symlink_to(spur)
environment = dict(os.environ, PATH=f"{base}/bin:{os.environ['PATH']}", SPUR_CONF=f"{base}/spur.conf")
started, controllers = [], []


def start(words, log):
    with open(base / "log" / log, "w") as file:
        process = subprocess.Popen(words, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=base / "work")
    started.append(process)
    return process


def run(*words):
    return subprocess.run(words, env=environment, capture_output=True, text=True, cwd=base / "work").stdout.strip()


def until(what, holds, limit=300):
    begin = time.perf_counter()
    while not holds():
        if time.perf_counter() - begin > limit:
            raise SystemExit(f"{what}: not within {limit} s; see {base}")
        time.sleep(0.02)
    return time.perf_counter() - begin


def idle():
    return sum(int(word) for word in run("sinfo", "-h", "-t", "idle", "-o", "%D").split() if word.isdigit())


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost():
    """Of each controller, in percent of a core."""
    before, begin = [cpu_seconds(one) for one in controllers], time.perf_counter()
    time.sleep(options.seconds)
    took = time.perf_counter() - begin
    return [(cpu_seconds(one) - used) / took * 100 for one, used in zip(controllers, before)]


try:
    for member in range(1, options.controllers + 1):
        words = [spur, "spurctld", "--config", str(base / "spur.conf")] + (["--member", str(member)] if member > 1 else [])
        controllers.append(start(words, f"out-{member}.log"))
    until("the controllers", lambda: run("scontrol", "ping").count("is UP") == options.controllers, 60)
    alone = cost()
    sockets = [f"{base}/run/controller.sock"] + [f"{base}/run/controller-{m}.sock" for m in range(2, options.controllers + 1)]
    begin = time.perf_counter()
    start([played, "--nodes", f"n[1-{options.nodes}]"] + [word for socket in sockets for word in ("--socket", socket)], "agents.log")
    until("all nodes", lambda: idle() == options.nodes)
    print(f"{options.nodes} agents are there after {time.perf_counter() - begin:.1f} s")
    time.sleep(2)
    with_agents = cost()
    shown = lambda costs: " + ".join(f"{one:.1f}" for one in costs)
    print(f"controllers alone: {shown(alone)} % of a core; with {options.nodes} agents: {shown(with_agents)} %; "
          f"the agents cost {sum(with_agents) - sum(alone):.1f} % of a core")
    begin = time.perf_counter()
    job = run("sbatch", "--parsable", "-o", "/dev/null", "-N", str(options.nodes), "--exclusive", "--wrap", "true\n#PLAY 2")
    until("the job", lambda: run("squeue", "-h", "-j", job, "-o", "%t") == "R")
    running = time.perf_counter() - begin
    until("the job's end", lambda: run("squeue", "-h", "-j", job, "-t", "all", "-o", "%t") == "CD")
    until("idle nodes", lambda: idle() == options.nodes)
    state = run("scontrol", "-o", "show", "job", job)
    n_nodes = [word for word in state.split() if word.startswith("NumNodes=")]
    print(f"a job on {options.nodes} nodes ({n_nodes[0]}): runs {running * 1000:.0f} ms after sbatch, has ended and all nodes are idle "
          f"{(time.perf_counter() - begin - 2) * 1000:.0f} ms later than its 2 s")
finally:
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    shutil.rmtree(base, ignore_errors=True)
