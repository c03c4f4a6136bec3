"""slurmrestapi's typed models of Slurm's documents: what --json prints is read by them, of each parser that both know."""
# packages: slurmrestapi
import json
import subprocess
import time

import slurmrestapi.models as models


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


subprocess.run(["sbatch", "-W", "-o", "/dev/null", "--wrap", "srun false"], capture_output=True)
runs = said("sbatch", "--parsable", "-t", "20", "-c2", "-o", "/dev/null", "--wrap", "srun sleep 300")
array = said("sbatch", "--parsable", "-t", "20", "-a", "1-4%2", "-o", "/dev/null", "--wrap", "sleep 300")
held = said("sbatch", "--parsable", "-H", "-N2", "--exclusive", "--comment", "told", "-o", "/dev/null", "--wrap", "true")
said("scontrol", "create", "reservation", "reservationname=later", "starttime=now+1hour", "duration=60", "nodes=n1", "users=root")
while said("squeue", "-h", "-j", runs, "-o", "%t") != "R":
    time.sleep(0.1)

ASKED = {
    "JobInfoResp": ["squeue", "scontrol show job"],
    "NodesResp": ["scontrol show node"],
    "PartitionResp": ["scontrol show partition"],
    "ReservationResp": ["scontrol show reservation"],
    "LicensesResp": ["scontrol show licenses"],
    "PingArrayResp": ["scontrol ping"],
    "SlurmdbdJobsResp": ["sacct"],
    "SlurmdbdQosResp": ["sacctmgr show qos"],
    "AccountsResp": ["sacctmgr show account"],
    "AssocsResp": ["sacctmgr show assoc"],
    "UsersResp": ["sacctmgr show user"],
    "TresResp": ["sacctmgr show tres"],
    "ClustersResp": ["sacctmgr show cluster"],
    "WckeyResp": ["sacctmgr show wckey"],
    "DiagResp": ["sdiag"],
    "SharesResp": ["sshare -a"],
}
wrong, read = [], 0
for parser in ("41", "42", "43"):
    for name, lines in ASKED.items():
        model = getattr(models, f"V00{parser}Openapi{name}", None)
        for line in lines if model else []:
            told = json.loads(said(*line.split(), f"--json=v0.0.{parser}"))
            try:
                answer = model.from_dict(told)
                read += 1
            except ValueError as why:
                wrong.append((parser, line, str(why)))
                continue
            if line == "squeue":
                assert {int(runs), int(array), int(held)} <= {job.job_id for job in answer.jobs}
said("scontrol", "delete", "reservation=later")
said("scancel", runs, array, held)
assert not wrong and read > 30, (read, wrong)
