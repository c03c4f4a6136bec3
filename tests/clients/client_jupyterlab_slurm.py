"""jupyterlab-slurm: a server with the extension; its own suite of Slurm's commands, then jobs through its pages: sent, listed, looked at, held, cancelled."""
# packages: jupyterlab-slurm setuptools
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

here = pathlib.Path.cwd()
(here / "config.py").write_text(
    "c.SlurmTesting.enabled = True\nc.SlurmTesting.allow_mutations = True\n"
    f"c.SlurmTesting.test_directory = {str(here)!r}\n"
    "c.IdentityProvider.token = 'word'\nc.ServerApp.ip = '127.0.0.1'\nc.ServerApp.port = 0\nc.ServerApp.allow_root = True\nc.ServerApp.open_browser = False\n"
)
log = open("server.log", "w+")
server = subprocess.Popen(["jupyter", "server", "--config", "config.py"], stdout=log, stderr=log, env={**os.environ, "JUPYTER_RUNTIME_DIR": str(here / "run")})


def until(what, patience=60):
    deadline = time.time() + patience
    while not (answer := what()):
        assert time.time() < deadline and server.poll() is None, open("server.log").read()[-3000:]
        time.sleep(0.2)
    return answer


def address():
    return [json.loads(file.read_text())["url"] for file in (here / "run").glob("jpserver-*.json")]


def ask(way, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "token word", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{base}jupyterlab_slurm/{way}", data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


try:
    base = until(address)[0]
    until(lambda: subprocess.run(["curl", "-sf", "-o", "/dev/null", base + "api"]).returncode == 0)
    started = ask("test-suite", "POST", {})
    number = re.search(r"[0-9a-f]{32}", json.dumps(started)).group()

    def over():
        run = ask(f"test-suite/{number}")
        return run if '"completed"' in json.dumps(run) or '"error"' in json.dumps(run) else None

    run = until(over, 120)
    results = re.findall(r'"name": "([^"]*)", "success": (true|false)', json.dumps(run))
    assert len(results) == 5 and all(success == "true" for _, success in results), run

    (here / "job.sh").write_text("#!/bin/bash\n#SBATCH -J paged\necho here; sleep 300\n")
    sent = ask("sbatch", "POST", {"inputPath": str(here / "job.sh"), "outputPath": str(here)})
    job = sent["data"]["jobId"]
    until(lambda: [job, "R"] in [[row[0], row[4]] for row in ask("squeue")["data"]["rows"]])
    details = json.dumps(ask(f"job/{job}"))
    assert "paged" in details and "RUNNING" in details, details
    ask("scancel", "DELETE", {"job_ids": [job]})
    until(lambda: subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True).stdout == "")
    assert "CANCELLED" in json.dumps(ask("sacct")), ask("sacct")
finally:
    server.terminate()
    server.wait(20)
