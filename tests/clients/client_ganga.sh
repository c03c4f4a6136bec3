# Ganga: jobs on its backend for Slurm, one that fails, one that is split into subjobs.
# packages: ganga setuptools<81
set -e
export HOME=$PWD
ganga -g < /dev/null > made.log 2>&1
cat > jobs.py <<'S'
import time
jobs = [
    Job(name='one', application=Executable(exe='/bin/echo', args=['hello']), backend=Slurm()),
    Job(name='many', application=Executable(exe='/bin/echo'), splitter=ArgSplitter(args=[['a'], ['b'], ['c']]), backend=Slurm()),
    Job(name='bad', application=Executable(exe='/bin/false'), backend=Slurm()),
]
for job in jobs:
    job.submit()
end = time.time() + 150
while time.time() < end and any(job.status in ('submitting', 'submitted', 'running', 'completing') for job in jobs):
    runMonitoring()
    time.sleep(1)
print('told', [job.status for job in jobs], [part.status for part in jobs[1].subjobs])
print(open(jobs[0].outputdir + 'stdout').read())
S
ganga --quiet -o"[Configuration]gangadir=$PWD/gangadir" jobs.py < /dev/null > out 2>&1
grep -qF "told ['completed', 'completed', 'failed'] ['completed', 'completed', 'completed']" out || { cat out; exit 1; }
grep -qx hello out
