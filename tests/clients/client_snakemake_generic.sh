# snakemake with the generic executor: its own submit, status and cancel commands.
# packages: snakemake snakemake-executor-plugin-cluster-generic
set -e
python -c 'import snakemake_executor_plugin_cluster_generic' 2> /dev/null || { echo "the plugin is not installed"; exit 77; }
cat > status.sh <<'S'
#!/bin/bash
case $(sacct -X -n -P -j "$1" -o State | head -1) in
  COMPLETED) echo success;;
  PENDING | RUNNING | COMPLETING | CONFIGURING | '') echo running;;
  *) echo failed;;
esac
S
chmod +x status.sh
cat > Snakefile <<'S'
rule all:
    input: "total"
rule part:
    output: "part{n}"
    threads: 2
    shell: "echo {wildcards.n} $SLURM_CPUS_PER_TASK > {output}"
rule total:
    input: expand("part{n}", n=[1, 2])
    output: "total"
    shell: "cat {input} > {output}"
rule bad:
    output: "never"
    shell: "exit 3"
S
generic=(--executor cluster-generic --jobs 2 --latency-wait 10 --cluster-generic-submit-cmd
  "sbatch --parsable -p main -c {threads} -J smk-{rule} -o smk-%j.log" --cluster-generic-status-cmd ./status.sh --cluster-generic-cancel-cmd scancel)
snakemake "${generic[@]}"
[ "$(paste -sd' ' total)" = "1 2 2 2" ]
! snakemake "${generic[@]}" never
