"""Exporters for Prometheus (vpenso's and rivosinc's commands): their lines, parsed as they parse them."""
import json
import re
import subprocess


def ask(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=20).stdout


job = ask("sbatch", "--parsable", "-c2", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 60").strip()
try:
    for _ in range(100):
        if ask("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING":
            break
    # cpus.go
    allocated, idle, other, total = map(int, ask("sinfo", "-h", "-o", "%C").strip().split("/"))
    assert allocated >= 2 and allocated + idle + other == total
    # node.go
    rows = [line.split() for line in ask("sinfo", "-h", "-N", "-O", "NodeList,AllocMem,Memory,CPUsState,StateLong").splitlines()]
    assert len(rows) == 2 and all(len(row) == 5 for row in rows), rows
    assert sum(int(row[1]) for row in rows) >= 100 and any(row[4] in ("mixed", "allocated") for row in rows), rows
    # nodes.go
    for line in ask("sinfo", "-h", "-o", "%D|%T").splitlines():
        count, state = line.split("|")
        assert int(count) > 0 and state.isalpha(), line
    # queue.go
    assert any(line.split(",")[0] == job and line.split(",")[1] == "RUNNING"
               for line in ask("squeue", "-a", "-r", "-h", "-o", "%A,%T,%r", "--states=all").splitlines())
    # partitions.go, accounts.go, users.go
    assert re.fullmatch(r"\d+/\d+/\d+/\d+", dict(line.split(",", 1) for line in ask("sinfo", "-h", "-o%R,%C").splitlines())["main"])
    assert ["main"] == [line for line in ask("squeue", "-a", "-r", "-h", "-o%P", "--states=RUNNING").splitlines() if line == "main"][:1]
    assert all(line.count("|") == 3 for line in ask("squeue", "-a", "-r", "-h", "-o", "%A|%a|%T|%C").splitlines())
    assert all(line.count("|") == 3 for line in ask("squeue", "-a", "-r", "-h", "-o", "%A|%u|%T|%C").splitlines())
    # scheduler.go
    said = ask("sdiag")
    for words in ("Server thread count", "Agent queue size", "DBD Agent queue size", "Last cycle", "Mean cycle", "Cycles per minute",
                  "Total backfilled jobs (since last slurm start)", "Last depth cycle", "Depth Mean"):
        assert re.search(rf"^\s*{re.escape(words)}[^:]*:\s*\S+", said, re.M), words
    # gpus.go
    ask("sacct", "-a", "-X", "--format=AllocTRES", "--state=RUNNING", "--noheader", "--parsable2")
    assert len(ask("sinfo", "-h", "-o", "%n %G").splitlines()) == 2
    # sshare.go
    ask("sshare", "-n", "-P", "-o", "account,fairshare")
    # rivosinc: JSON of its day
    assert {entry["name"] for entry in json.loads(ask("sinfo", "--json=v0.0.38"))["nodes"]} == {"n1", "n2"}
    assert int(job) in [entry["job_id"] for entry in json.loads(ask("squeue", "--json=v0.0.38"))["jobs"]]
    # its fallback format
    shape = '{"a": "%a", "id": %A, "end_time": "%e", "u": "%u", "state": "%T", "p": "%P", "cpu": %C, "mem": "%m", "array_id": "%K", "r": "%R"}'
    assert int(job) in [json.loads(line)["id"] for line in ask("squeue", "--states=all", "-h", "-r", "-o", shape).splitlines()]
finally:
    subprocess.run(["scancel", job])
