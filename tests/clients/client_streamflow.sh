# StreamFlow: a CWL workflow whose steps are Slurm jobs through its own connector.
# packages: streamflow setuptools<81
set -e
cat > main.cwl <<'S'
cwlVersion: v1.2
class: Workflow
inputs: {word: string}
outputs: {result: {type: File, outputSource: second/out}}
steps:
  first:
    run: {class: CommandLineTool, baseCommand: [echo], inputs: {word: {type: string, inputBinding: {}}}, outputs: {out: {type: stdout}}, stdout: first.txt}
    in: {word: word}
    out: [out]
  second:
    run: {class: CommandLineTool, baseCommand: [wc, -c], inputs: {file: {type: File, inputBinding: {}}}, outputs: {out: {type: stdout}}, stdout: second.txt}
    in: {file: first/out}
    out: [out]
S
printf 'word: hello\n' > job.yml
cat > streamflow.yml <<S
version: v1.0
workflows:
  w:
    type: cwl
    config: {file: main.cwl, settings: job.yml}
    bindings:
      - step: /
        target: {deployment: here}
deployments:
  here:
    type: slurm
    config: {pollingInterval: 1, maxConcurrentJobs: 2}
    workdir: $PWD/work
S
mkdir -p work
streamflow run streamflow.yml --outdir out
grep -q '^6' out/second.txt
