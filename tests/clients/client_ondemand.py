"""Open OnDemand's adapter for Slurm: its commands and how it takes them apart (the gem itself is not from PyPI)."""
import subprocess
import time

RECORD, UNIT = "\x1e", "\x1f"
FIELDS = ["%a", "%A", "%B", "%c", "%C", "%d", "%D", "%e", "%E", "%f", "%F", "%g", "%G", "%h", "%H", "%i", "%I", "%j", "%J", "%k", "%K",
          "%l", "%L", "%m", "%M", "%n", "%N", "%o", "%O", "%p", "%P", "%q", "%r", "%S", "%t", "%T", "%u", "%U", "%v", "%V", "%w", "%W",
          "%x", "%X", "%y", "%Y", "%z", "%Z", "%b"]


def ask(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=20, **more).stdout


def jobs(*filters):
    out = ask("squeue", "--all", "--states=all", "--noconvert", "-h", "-o", RECORD + UNIT.join(FIELDS), *filters)
    return [dict(zip(FIELDS, record.rstrip("\n").split(UNIT))) for record in out.split(RECORD)[1:]]


script = "#!/bin/bash\nsleep 60\n"
job = ask("sbatch", "-D", ".", "-J", "sys/dashboard/x", "-o", "%j.out", "-t", "00:05:00", "--export", "NONE", "--parsable", "--no-requeue",
          input=script).strip().split(";")[0]
try:
    give_up = time.time() + 30
    while (mine := jobs("-j", job)) and mine[0]["%t"] != "R" and time.time() < give_up:
        time.sleep(0.2)
    assert len(mine) == 1 and len(mine[0]) == len(FIELDS), mine
    assert (mine[0]["%A"], mine[0]["%t"], mine[0]["%j"], mine[0]["%P"]) == (job, "R", "sys/dashboard/x", "main"), mine
    assert any(one["%A"] == job for one in jobs("-u", mine[0]["%u"]))
    allocated, idle, other, total = map(int, ask("sinfo", "-aho", "%A/%D/%C").split("\n")[0].split("/")[3:7])
    assert allocated + idle + other == total
    for line in ask("sinfo", "-ahNO", "nodehost:32,gres:64,gresused:64").splitlines():
        assert line.split()[0] in ("n1", "n2"), line
    ask("scontrol", "hold", ask("sbatch", "-H", "--parsable", "-o", "/dev/null", "--wrap", "true").strip())
    ask("sacctmgr", "-nP", "show", "users", "withassoc", "format=account,cluster,partition,qos", "where", f"user={mine[0]['%u']}")
    ask("scontrol", "show", "part", "-o")
finally:
    subprocess.run(["scancel", "-u", mine[0]["%u"]])
