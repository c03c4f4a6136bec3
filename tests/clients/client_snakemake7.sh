# snakemake 7: its built-in --slurm, and --cluster with a status script.
# packages: snakemake<8 pulp<2.8 setuptools<81
set -e
cat > Snakefile <<'S'
rule all:
    input: "total"
rule part:
    output: "part{n}"
    resources: mem_mb=800, runtime=2, slurm_partition="main"
    shell: "echo {wildcards.n} > {output}"
rule total:
    input: expand("part{n}", n=[1, 2])
    output: "total"
    resources: mem_mb=800, runtime=2, slurm_partition="main"
    shell: "cat {input} > {output}"
S
cat > status.py <<'S'
#!/usr/bin/env python
import subprocess, sys
out = subprocess.check_output(["sacct", "-j", sys.argv[1], "--format", "State", "--noheader", "-X"], text=True).split()
state = out[0] if out else "PENDING"
print("success" if state == "COMPLETED" else "running" if state in ("PENDING", "RUNNING", "COMPLETING") else "failed")
S
chmod +x status.py
snakemake --slurm --jobs 2 --latency-wait 10
[ "$(paste -sd, total)" = 1,2 ]
rm -f part* total
snakemake --jobs 2 --latency-wait 10 --cluster "sbatch --parsable -p main -t 2 -o /dev/null" --cluster-status ./status.py --cluster-cancel scancel
[ "$(paste -sd, total)" = 1,2 ]
