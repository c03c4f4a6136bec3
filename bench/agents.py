#!/usr/bin/env python3
"""The whole controller with thousands of nodes on one machine: all agents are played by one process.

    cargo build --release -p spur -p wire --bins --example agents
    python3 bench/agents.py --nodes 1000 [--controllers 3] [--jobs 10000] [--wide 1000]

Measures: until all nodes are there; a job on `--wide` of them, from sbatch until it runs, and from scancel until all are idle; an
array of `--jobs` tasks of one node each, until the last has ended, with `squeue -j` and `sbatch` timed meanwhile; a backlog of
`--backlog` jobs that cannot start, the same commands beside it, and how long a plan takes there (`sdiag`). Every task must be seen to
end as COMPLETED, and to be launched once. One line a measure, and the same as JSON with --out.
"""
import json, os, time

from played import Played, arguments, percentile

parser = arguments(controllers=1)
parser.add_argument("--jobs", type=int, default=10000)
parser.add_argument("--wide", type=int, default=0, help="nodes of the wide job; all by default")
parser.add_argument("--backlog", type=int, default=10000)
parser.add_argument("--out")
options = parser.parse_args()
results = {}


def say(name, **numbers):
    results[name] = numbers
    print(f"{name}: " + ", ".join(f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in numbers.items()), flush=True)


def spread(name, values):
    """The middle and the worst but one in a hundred."""
    values = values or [0.0]
    return {f"{name}_p50_ms": percentile(values, 0.5), f"{name}_p99_ms": percentile(values, 0.99)}


def quietly(cluster, *words):
    return cluster.run("sbatch", "--parsable", "-o", "/dev/null", *words)


def wide_job(cluster):
    wide = options.wide or options.nodes
    begin = time.perf_counter()
    job = quietly(cluster, "-N", str(wide), "--exclusive", "--wrap", "true\n#PLAY 1000")
    submitted = (time.perf_counter() - begin) * 1000
    cluster.until("the wide job", lambda: cluster.state(job) == "R")
    running = (time.perf_counter() - begin) * 1000
    begin = time.perf_counter()
    cluster.run("scancel", job)
    cluster.until("the wide job's end", lambda: cluster.count("idle") == options.nodes)
    idle = (time.perf_counter() - begin) * 1000
    say("wide job", nodes=wide, sbatch_ms=submitted, running_after_ms=running, all_idle_after_cancel_ms=idle)
    return job


def many_jobs(cluster, known):
    """An array of short tasks; somebody asks and submits all the while."""
    quiet = [cluster.timed("squeue", "-h", "-j", known, "-t", "all") for _ in range(50)]
    before, cpu, begin = cluster.tally().get("launched", 0), sum(cluster.cpu_seconds()), time.perf_counter()
    array = quietly(cluster, "-a", f"1-{options.jobs}", "--wrap", "true\n#PLAY 0.05")
    questions, submissions = [], []
    while cluster.run("squeue", "-h", "-j", array, "-o", "x", check=False):
        questions.append(cluster.timed("squeue", "-h", "-j", known, "-t", "all"))
        submissions.append(cluster.timed("sbatch", "-o", "/dev/null", "-H", "--wrap", "true"))
    seconds = time.perf_counter() - begin
    cpu = sum(cluster.cpu_seconds()) - cpu
    time.sleep(1.5)
    completed = cluster.run("squeue", "-h", "-r", "-j", array, "-t", "CD", "-o", "x").count("x")
    launched = cluster.tally()["launched"] - before
    say("array of one-node jobs", jobs=options.jobs, seconds=seconds, per_second=options.jobs / seconds, completed=completed, launched=launched,
        controller_cpu_ms_a_job=cpu * 1000 / options.jobs, **spread("squeue_quiet", quiet), **spread("squeue_meanwhile", questions),
        **spread("sbatch_meanwhile", submissions), lost_streams=cluster.tally()["lost"])
    if (completed, launched) != (options.jobs, options.jobs):
        print(f"WRONG: of {options.jobs}, {launched} were launched and {completed} are COMPLETED")
    cluster.run("scancel", "-u", str(os.getuid()))


def backlog(cluster):
    full = quietly(cluster, "-N", str(options.nodes), "--exclusive", "-t", "60", "--wrap", "true\n#PLAY 100000")
    cluster.until("the filler", lambda: cluster.state(full) == "R")
    begin = time.perf_counter()
    for size in range(10):
        quietly(cluster, "-N", str(1 + size * 3), "-t", str(10 + size), "-a", f"1-{options.backlog // 10}", "--wrap", "true")
    accepted = time.perf_counter() - begin
    questions = [cluster.timed("squeue", "-h", "-j", full) for _ in range(100)]
    submissions = [cluster.timed("sbatch", "-o", "/dev/null", "-N2", "--wrap", "true") for _ in range(50)]
    cycles = dict(line.split(":", 1) for line in cluster.run("sdiag").splitlines() if "cycle:" in line.lower())
    cycles = {name.strip().lower(): int(value) for name, value in cycles.items() if value.strip().isdigit()}
    say("backlog", jobs=options.backlog, accepted_seconds=accepted, **spread("squeue", questions), **spread("sbatch", submissions),
        plan_last_us=cycles.get("last cycle"), plan_longest_us=cycles.get("max cycle"), controller_mb=cluster.memory_mb())


settings = "max_job_count = 1000000\nmax_array_size = 1000001"
with Played(options, settings) as cluster:
    say("all nodes there", seconds=cluster.start_agents(), nodes=options.nodes, controller_mb=cluster.memory_mb())
    job = wide_job(cluster)
    many_jobs(cluster, job)
    backlog(cluster)
    if options.out:
        with open(options.out, "a") as file:
            file.write(json.dumps({"nodes": options.nodes, "controllers": options.controllers, **results}) + "\n")
