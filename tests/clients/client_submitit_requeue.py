"""submitit: a job that is told of its time limit saves itself, is requeued and goes on where it was."""
# packages: submitit setuptools<81
import time

import submitit


class Counts:
    """Until ten; what it has counted so far is what it saves."""

    def __init__(self, at=0):
        self.at = at

    def __call__(self, until):
        while self.at < until:
            self.at += 1
            time.sleep(2)
        return self.at, submitit.JobEnvironment().num_nodes

    def checkpoint(self, until):
        return submitit.helpers.DelayedSubmission(Counts(self.at), until)


executor = submitit.AutoExecutor(folder="requeue-%j")
# Told ten seconds after the start, and again in the second run, if it takes as long.
executor.update_parameters(timeout_min=1, slurm_signal_delay_s=50, slurm_mem="300M")
job = executor.submit(Counts(), 12)
assert job.result() == (12, 1), job.result()
log = job.paths.stderr.read_text()
assert "requeue" in log.lower() or "preempted" in log.lower() or "timed" in log.lower(), log
