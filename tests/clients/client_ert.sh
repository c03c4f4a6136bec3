# ert: an ensemble whose realizations are jobs; one that fails is told from those that do not.
# packages: ert setuptools<81
cat > WORK << X
EXECUTABLE work.sh
ARGLIST <IENS>
X
cat > work.sh << 'X'
#!/bin/bash
echo "realization $1 in job $SLURM_JOB_ID on $SLURM_JOB_NODELIST" > told
[ "$1" != 2 ]
X
chmod +x work.sh
cat > config.ert << 'X'
NUM_REALIZATIONS 4
MIN_REALIZATIONS 3
MAX_SUBMIT 1
QUEUE_SYSTEM SLURM
QUEUE_OPTION SLURM PARTITION main
QUEUE_OPTION SLURM SQUEUE_TIMEOUT 1
RUNPATH runs/<IENS>
ENSPATH storage
INSTALL_JOB WORK WORK
FORWARD_MODEL WORK
X
ert ensemble_experiment --disable-monitoring config.ert
grep -h "in job" runs/*/told | sort > told
cat told
[ "$(wc -l < told)" = 4 ] && [ "$(cut -d' ' -f5 told | sort -u | wc -l)" = 4 ] && [ -e runs/0/OK ] && [ -e runs/3/OK ] && [ ! -e runs/2/OK ]
