# slurm_gpustat: what GPUs there are and who has them, from scontrol, sinfo, squeue.
# packages: slurm_gpustat termcolor setuptools<81
set -e
sinfo -o "%1000N|%1000G" --noheader | sed 's/  */ /g'
slurm_gpustat > said 2>&1 || { grep -qi "gpu" said && grep -qi "no gpus\|0 gpus\|empty\|KeyError\|min()" said && exit 0; cat said; exit 1; }
cat said
