#!/usr/bin/env python3
"""The whole controller with thousands of nodes on one machine: all agents are played by one process.

    cargo build --release -p spur -p wire --bins --example agents
    python3 bench/agents.py --nodes 1000 [--controllers 3] [--jobs 10000] [--wide 1000]

Starts the controller (or three) in a temporary directory and `examples/agents` as all of its nodes, then measures: until all nodes
are there; a job on `--wide` of them, from sbatch to the last node's launch, and from scancel until all are idle; an array of `--jobs`
tasks of one node each, until the last has ended, with `squeue -j` and `sbatch` timed meanwhile; a backlog that cannot start, and the
same commands beside it. Every job must be seen to end as COMPLETED, none twice. One line a measure, and the same as JSON with --out.
"""
import argparse, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser()
parser.add_argument("--spur", default="target/release/spur")
parser.add_argument("--agents", default="target/release/examples/agents")
parser.add_argument("--nodes", type=int, default=1000)
parser.add_argument("--controllers", type=int, default=1)
parser.add_argument("--jobs", type=int, default=10000)
parser.add_argument("--wide", type=int, default=0, help="nodes of the wide job; all by default")
parser.add_argument("--backlog", type=int, default=10000)
parser.add_argument("--out")
parser.add_argument("--keep", action="store_true")
options = parser.parse_args()
spur, played = os.path.abspath(options.spur), os.path.abspath(options.agents)
base = pathlib.Path(tempfile.mkdtemp(prefix="spur-agents-", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
for name in ("run", "state", "log", "bin", "work"):
    (base / name).mkdir()
(base / "spur.conf").write_text(f"""cluster_name = "played"
[controller]
socket = "{base}/run/controller.sock"
state_dir = "{base}/state"
pid_file = "{base}/run/controller.pid"
log_file = "{base}/log/controller.log"
max_job_count = 1000000
max_array_size = 1000001
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
for name in ("sbatch", "squeue", "sinfo", "scancel", "scontrol"):
    (base / "bin" / name).symlink_to(spur)
environment = dict(os.environ, PATH=f"{base}/bin:{os.environ['PATH']}", SPUR_CONF=f"{base}/spur.conf")
started, results = [], {}


def start(words, log):
    with open(base / "log" / log, "w") as file:
        process = subprocess.Popen(words, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=base / "work")
    started.append(process)
    return process


def run(*words, check=True):
    return subprocess.run(words, env=environment, check=check, capture_output=True, text=True, cwd=base / "work").stdout.strip()


def timed(*words):
    begin = time.perf_counter()
    run(*words)
    return (time.perf_counter() - begin) * 1000


def until(what, holds, limit=600):
    begin = time.perf_counter()
    while not holds():
        if time.perf_counter() - begin > limit:
            raise SystemExit(f"{what}: not within {limit} s; see {base}")
        time.sleep(0.02)
    return time.perf_counter() - begin


def tally():
    lines = (base / "log/agents.log").read_text().strip().splitlines()
    words = re.findall(r"(\w+) (\d+)", lines[-1]) if lines else []
    return {name: int(number) for name, number in words}


def say(name, **numbers):
    results[name] = numbers
    print(f"{name}: " + ", ".join(f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in numbers.items()), flush=True)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def memory_mb(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def count(state):
    text = run("sinfo", "-h", "-t", state, "-o", "%D", check=False)
    return sum(int(word) for word in text.split() if word.isdigit())


try:
    controller = start([spur, "spurctld", "--config", str(base / "spur.conf")], "out-1.log")
    for member in range(2, options.controllers + 1):
        start([spur, "spurctld", "--config", str(base / "spur.conf"), "--member", str(member)], f"out-{member}.log")
    until("the controller", lambda: subprocess.run(["scontrol", "ping"], env=environment, capture_output=True).returncode == 0, 60)
    sockets = [f"{base}/run/controller.sock"] + [f"{base}/run/controller-{member}.sock" for member in range(2, options.controllers + 1)]
    words = [played, "--nodes", f"n[1-{options.nodes}]"] + [word for socket in sockets for word in ("--socket", socket)]
    begin = time.perf_counter()
    start(words, "agents.log")
    until("all nodes", lambda: count("idle") == options.nodes)
    say("all nodes there", seconds=time.perf_counter() - begin, nodes=options.nodes, controller_mb=memory_mb(controller))

    wide = options.wide or options.nodes
    begin = time.perf_counter()
    job = run("sbatch", "--parsable", "-o", "/dev/null", "-N", str(wide), "--exclusive", "--wrap", "srun true\n#PLAY 1000")
    submitted = (time.perf_counter() - begin) * 1000
    until("the wide job", lambda: run("squeue", "-h", "-j", job, "-o", "%t") == "R")
    running = (time.perf_counter() - begin) * 1000
    begin = time.perf_counter()
    run("scancel", job)
    until("the wide job's end", lambda: count("idle") == options.nodes)
    say("wide job", nodes=wide, sbatch_ms=submitted, running_after_ms=running, all_idle_after_cancel_ms=(time.perf_counter() - begin) * 1000)

    quiet = {"squeue_p50_ms": percentile([timed("squeue", "-h", "-j", job, "-t", "all") for _ in range(50)], 0.5)}
    begin = time.perf_counter()
    array = run("sbatch", "--parsable", "-o", "/dev/null", "-a", f"1-{options.jobs}", "--wrap", "true\n#PLAY 0.05")
    questions, submissions = [], []
    while int(run("squeue", "-h", "-r", "-j", array, "-o", "x", check=False).count("x") or 0):
        questions.append(timed("squeue", "-h", "-j", job, "-t", "all"))
        submissions.append(timed("sbatch", "-o", "/dev/null", "-H", "--wrap", "true"))
    seconds = time.perf_counter() - begin
    ended = tally()
    completed = run("squeue", "-h", "-r", "-j", array, "-t", "CD", "-o", "x", check=False).count("x")
    say("array of one-node jobs", jobs=options.jobs, seconds=seconds, per_second=options.jobs / seconds, completed=completed, **quiet,
        squeue_meanwhile_p50_ms=percentile(questions or [0.0], 0.5), squeue_meanwhile_p99_ms=percentile(questions or [0.0], 0.99),
        sbatch_meanwhile_p99_ms=percentile(submissions or [0.0], 0.99), launched=ended.get("launched"), lost_streams=ended.get("lost"))
    if completed != options.jobs:
        print(f"WRONG: {completed} of {options.jobs} are COMPLETED")
    run("scancel", "-u", str(os.getuid()))

    full = run("sbatch", "--parsable", "-o", "/dev/null", "-N", str(options.nodes), "--exclusive", "-t", "60", "--wrap", "true\n#PLAY 100000")
    until("the filler", lambda: run("squeue", "-h", "-j", full, "-o", "%t") == "R")
    begin = time.perf_counter()
    for size in range(10):
        run("sbatch", "-o", "/dev/null", "-N", str(1 + size * 3), "-t", str(10 + size), "-a", f"1-{options.backlog // 10}", "--wrap", "true")
    accepted = time.perf_counter() - begin
    questions = [timed("squeue", "-h", "-j", full) for _ in range(100)]
    submissions = [timed("sbatch", "-o", "/dev/null", "-N2", "--wrap", "true") for _ in range(50)]
    cycles = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in run(spur, "sdiag").splitlines() if ":" in line and "cycle" in line.lower()}
    say("backlog", jobs=options.backlog, accepted_seconds=accepted, squeue_p50_ms=percentile(questions, 0.5), squeue_p99_ms=percentile(questions, 0.99),
        sbatch_p50_ms=percentile(submissions, 0.5), sbatch_p99_ms=percentile(submissions, 0.99), last_cycle_us=cycles.get("Last cycle"),
        max_cycle_us=cycles.get("Max cycle"), controller_mb=memory_mb(controller))
    if options.out:
        with open(options.out, "a") as file:
            file.write(json.dumps({"nodes": options.nodes, "controllers": options.controllers, **results}) + "\n")
finally:
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    if not options.keep:
        shutil.rmtree(base, ignore_errors=True)
    else:
        print(f"kept: {base}", file=sys.stderr)
