# toil: a CWL workflow whose steps are jobs.
# packages: toil[cwl]
set -e
cat > echo.cwl <<'S'
cwlVersion: v1.2
class: CommandLineTool
baseCommand: [echo, hello]
stdout: out.txt
inputs: []
outputs: {o: {type: stdout}}
requirements: {ResourceRequirement: {coresMin: 1, ramMin: 200}}
S
toil-cwl-runner --batchSystem slurm --slurmPartition main --jobStore ./store --defaultMemory 300Mi --defaultDisk 100Mi --maxCores 1 echo.cwl > result.json
grep -q out.txt result.json
[ "$(cat out.txt)" = hello ]
