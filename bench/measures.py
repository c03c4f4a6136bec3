"""What is measured, one function each: a cluster in, figures out. Every loop is bounded in count and in time."""
import os
import pathlib
import select
import shlex
import signal
import subprocess
import time

from clusters import SLOTS, Failed, wait_for

clock = time.monotonic


def summary(seconds):
    """Milliseconds: median, 95th percentile, extremes."""
    ordered = sorted(seconds)
    at = lambda share: round(ordered[round(share * (len(ordered) - 1))] * 1000, 2)
    return {"n": len(ordered), "p50": at(0.5), "p95": at(0.95), "min": at(0), "max": at(1)}


def idle_share(seconds=0.3):
    """The share of this machine's CPUs that nobody wants just now."""
    read = lambda: [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    before = read()
    time.sleep(seconds)
    spent = [b - a for a, b in zip(before, read())]
    return round((spent[3] + spent[4]) / max(1, sum(spent)), 2)


def wait_for_quiet(seconds, share=0.8):
    """Waits a bounded time for others to be quiet; the idle share that stands beside the figure."""
    give_up = clock() + seconds
    idle = idle_share()
    while idle < share and clock() < give_up:
        idle = idle_share()
    return idle


def timed(act, times, seconds=60):
    took, give_up = [], clock() + seconds
    while len(took) < times and clock() < give_up:
        begun = clock()
        act()
        took.append(clock() - begun)
    return took


def limits(directory):
    """The machine's own: what no scheduler on it can be faster than."""
    program, source = directory / "limits", pathlib.Path(__file__).with_name("limits.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, source], check=True)
    ask = lambda *words: subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    synced = ask("sync", "3", str(directory / "limits.sync"))
    return {"true_per_s": float(ask("true", "2", "3")[0]), "shell_per_s": float(ask("shell", "2", "3")[0]),
            "fdatasync_per_s": float(synced[0]), "fdatasync_p50_us": float(synced[1])}


def submit_many(cluster, count, clients, words, seconds):
    """`count` submissions from `clients` shell loops; how long it took and how many were acknowledged."""
    line = shlex.join([cluster.path("sbatch"), "-o", "/dev/null", *words])
    share = [count // clients + (i < count % clients) for i in range(clients)]
    begun, loops = clock(), []
    for i, mine in enumerate(share):
        said = open(cluster.directory / f"said.{i}", "w+")
        loops.append((said, subprocess.Popen(
            ["timeout", str(seconds), "bash", "-c", f"for ((i = 0; i < {mine}; i++)); do {line}; done"],
            env=cluster.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.DEVNULL)))
    for _, loop in loops:
        loop.wait()
    took, acknowledged = clock() - begun, 0
    for said, _ in loops:
        said.seek(0)
        acknowledged += said.read().count("Submitted batch job")
        said.close()
    return took, acknowledged


def throughput(cluster, count, mode, seconds=300):
    """No-op batch jobs from the first submission until the last has run, and until the queue is empty. Each job writes its id."""
    ran = cluster.directory / "ran"
    ran.write_text("")
    ran.chmod(0o666)
    wrap = f"--wrap=echo $SLURM_JOB_ID >>{ran}"
    begun = clock()
    if mode == "array":
        cluster.submit(f"--array=0-{count - 1}", wrap)
        submitted, acknowledged = clock() - begun, count
    else:
        submitted, acknowledged = submit_many(cluster, count, 4, [wrap], seconds)
    n_ran = lambda: ran.read_bytes().count(b"\n")
    wait_for(lambda: n_ran() >= acknowledged, seconds, 0.005)
    last = clock() - begun
    is_empty = wait_for(lambda: not cluster.queued(), seconds, 0.01)
    empty = clock() - begun
    lines = ran.read_text().split()
    if not is_empty:
        cluster.empty_queue()
    return {"n": acknowledged, "ran": len(lines), "distinct": len(set(lines)), "submit_s": round(submitted, 2),
            "last_ran_s": round(last, 2), "queue_empty_s": round(empty, 2), "jobs_per_s": round(acknowledged / last, 1)}


def latency(cluster, times, seconds=120):
    """sbatch -> first instruction of its script, which is also its last; -> the first `squeue -j` that does not show it."""
    pipe = cluster.directory / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe, 0o666)
    script = cluster.directory / "script.sh"
    script.write_text(f"#!/bin/sh\necho >{pipe}\n")
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    acknowledged, started, gone, give_up = [], [], [], clock() + seconds
    try:
        while len(gone) < times and clock() < give_up:
            begun = clock()
            # Not waited for: a job may well run before sbatch has said its number.
            sbatch = subprocess.Popen([cluster.path("sbatch"), "--parsable", "-o", "/dev/null", str(script)], text=True,
                                      env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, close_fds=False)
            wanted, job, at = [reader, sbatch.stdout], None, None
            while wanted and clock() < begun + 60:
                for ready in select.select(wanted, [], [], 1)[0]:
                    wanted.remove(ready)
                    if ready is reader:
                        at = clock()
                        os.read(reader, 64)
                    else:
                        job = ready.readline().strip().split(";")[0]
                        acknowledged.append(clock() - begun)
            sbatch.wait()
            sbatch.stdout.close()
            if at is None or not job:
                raise Failed(f"{cluster.name}: a job did not start")
            if not wait_for(lambda: job not in cluster.queued("-j", job), 60, 0):
                raise Failed(f"{cluster.name}: job {job} does not leave the queue")
            started.append(at - begun)
            gone.append(clock() - at)
    finally:
        os.close(reader)
    return {"sbatch_ms": summary(acknowledged), "start_ms": summary(started), "gone_ms": summary(gone)}


def srun_true(cluster, times):
    bad = []
    took = timed(lambda: cluster.run("srun", "true").returncode and bad.append(1), times)
    return {"srun_ms": summary(took), "failed": len(bad)}


def array_accepted(cluster, tasks, times):
    """A held array, from the command's start to its end."""
    took, cancelled = [], []
    for _ in range(times):
        begun = clock()
        job = cluster.submit("-H", f"--array=0-{tasks - 1}", "--wrap=true")
        took.append(clock() - begun)
        begun = clock()
        cluster.run("scancel", job, seconds=300)
        cancelled.append(clock() - begun)
        if not wait_for(lambda: not cluster.queued(), 120, 0.1):
            raise Failed(f"{cluster.name}: a cancelled array stays in the queue")
    return {"accept_ms": summary(took), "scancel_ms": summary(cancelled)}


def commands(cluster, words, times=20):
    """`squeue -j`, `sbatch`, `scancel` one at a time, with whatever is queued."""
    present = cluster.submit("-H", *words)
    one = timed(lambda: cluster.run("squeue", "-h", "-j", present), times)
    fresh = []
    submitted = timed(lambda: fresh.append(cluster.submit(*words)), times)
    fresh.append(present)
    left = iter(fresh)
    cancelled = timed(lambda: cluster.run("scancel", next(left)), len(fresh))
    return {"squeue_j_ms": summary(one), "sbatch_ms": summary(submitted), "scancel_ms": summary(cancelled)}


KINDS = {"held": ["-H", "--wrap=true"], "eligible": ["--wrap=true"]}


def occupy(cluster):
    """All slots taken, so that what comes after waits for resources."""
    job = cluster.submit(f"--array=0-{SLOTS - 1}", "--wrap=sleep 3600")
    if not wait_for(lambda: len(cluster.queued("-t", "R")) == SLOTS, 60, 0.1):
        raise Failed(f"{cluster.name}: the slots did not fill")
    return job


def fill(cluster, count, kind, seconds=1500):
    if kind == "eligible":
        occupy(cluster)
    took, acknowledged = submit_many(cluster, count, 4, KINDS[kind], seconds)
    return {"n": acknowledged, "s": round(took, 1), "per_s": round(acknowledged / took, 1)}


def backlog(cluster, kind, quiet_s):
    """The same commands, the whole queue, memory and idle CPU, with a filled queue."""
    figures = commands(cluster, KINDS[kind])
    lines = []
    full = timed(lambda: lines.append(cluster.run("squeue").stdout.count("\n")), 7)
    wait_for_quiet(quiet_s)
    cpu, begun = cluster.controller_cpu_seconds(), clock()
    time.sleep(10)
    share = (cluster.controller_cpu_seconds() - cpu) / (clock() - begun) * 100
    return figures | {"squeue_ms": summary(full), "lines": lines[-1], "rss_mib": cluster.controller_rss_mib(),
                      "idle_cpu_percent": round(share, 2)}


def restart(cluster, with_signal):
    """From the start of a new controller to its first answer about a job, and to an answer with all of them."""
    before = cluster.queued()
    stopped = cluster.stop_controller(with_signal)
    begun = clock()
    cluster.begin_controller()
    answers = lambda: cluster.run("squeue", "-h", "-j", before[0], seconds=10).stdout.strip()
    if not wait_for(answers, 120, 0.005):
        raise Failed(f"{cluster.name}: no answer after a restart")
    first = clock() - begun
    after = cluster.queued()
    everything = clock() - begun
    return {"signal": signal.Signals(with_signal).name, "stop_s": round(stopped, 3), "first_answer_s": round(first, 3),
            "all_s": round(everything, 3), "queued": len(before), "lost": len(set(before) - set(after))}


def kills(cluster, times, seconds=900):
    """kill -9 the moment a submission is acknowledged; which are forgotten, which numbers are given twice."""
    given, lost, answered, give_up = [], [], [], clock() + seconds
    while len(given) < times and clock() < give_up:
        job = cluster.submit("-H", "--wrap=true")
        cluster.stop_controller(signal.SIGKILL)
        begun = clock()
        cluster.begin_controller()
        if not wait_for(lambda: cluster.run("squeue", "-h", seconds=10).returncode == 0, 60, 0.005):
            raise Failed(f"{cluster.name}: no answer after kill -9")
        answered.append(clock() - begun)
        given.append(job)
        if job not in cluster.queued("-j", job):
            lost.append(job)
    still = set(cluster.queued())
    return {"kills": len(given), "lost": len(lost), "lost_in_the_end": len(set(given) - still),
            "given_twice": len(given) - len(set(given)), "answer_ms": summary(answered)}
