# snakemake with its Slurm executor: two rules, one depending on the other, and a failing one.
# packages: snakemake snakemake-executor-plugin-slurm
set -e
cat > Snakefile <<'S'
rule all:
    input: "total"
rule part:
    output: "part{n}"
    resources: mem_mb=1000, runtime=2
    shell: "echo {wildcards.n} > {output}"
rule total:
    input: expand("part{n}", n=[1, 2, 3])
    output: "total"
    resources: mem_mb=1000, runtime=2
    shell: "cat {input} | paste -sd+ | bc > {output} || awk '{{s+=$1}} END {{print s}}' {input} > {output}"
rule bad:
    output: "never"
    resources: mem_mb=1000, runtime=2
    shell: "exit 3"
S
snakemake --executor slurm --jobs 3 --default-resources slurm_partition=main --slurm-init-seconds-before-status-checks 2 --seconds-between-status-checks 2 --latency-wait 10
[ "$(cat total)" = 6 ]
! snakemake --executor slurm --jobs 1 --slurm-init-seconds-before-status-checks 2 --seconds-between-status-checks 2 --latency-wait 2 never
