# maestrowf: a study of parameters, each step a job of its own.
# packages: maestrowf
set -e
cat > study.yaml <<'S'
description:
    name: squares
    description: squares and their sum
batch:
    type: slurm
    host: spur
    bank: default
    queue: main
    shell: /bin/bash
study:
    - name: square
      description: one
      run:
          cmd: |
              $(LAUNCHER) echo $(($(N) * $(N))) > square
          nodes: 1
          procs: 1
          walltime: "00:02:00"
    - name: total
      description: all
      run:
          cmd: |
              cat $(square.workspace)/*/square | paste -sd+ > total
          depends: [square_*]
          nodes: 1
          procs: 1
          walltime: "00:02:00"
global.parameters:
    N:
        values: [2, 3]
        label: N.%%
S
maestro run -y -fg -s 2 -o out study.yaml
[ "$(cat out/total/total)" = 4+9 ]
COLUMNS=300 maestro status out | grep -q FINISHED
