# SoS: tasks of a workflow as Slurm jobs through its PBS template.
# packages: sos sos-pbs setuptools<81
set -e
export HOME=$PWD/home; mkdir -p $HOME/.sos
cat > $HOME/.sos/hosts.yml <<S
localhost: here
hosts:
  here:
    address: localhost
    queue_type: pbs
    status_check_interval: 2
    max_running_jobs: 4
    submit_cmd: sbatch {job_file}
    submit_cmd_output: "Submitted batch job {job_id}"
    status_cmd: squeue --job {job_id}
    kill_cmd: scancel {job_id}
    task_template: |
      #!/bin/bash
      #SBATCH --time={walltime}
      #SBATCH --ntasks=1
      #SBATCH --mem={mem//10**6}
      #SBATCH --job-name={job_name}
      #SBATCH --output={HOME_DIR}/.sos/tasks/{task}.out
      cd {cur_dir}
      {command}
    HOME_DIR: $HOME
    paths: {home: $HOME}
S
sed -i 's/{HOME_DIR}/'"${HOME//\//\\/}"'/' $HOME/.sos/hosts.yml
cat > w.sos <<'S'
[10]
input: for_each={'n': [1, 2]}
output: f'{n}.txt'
task: queue='here', walltime='00:05:00', mem='600M'
sh: expand=True
  echo {n} > {n}.txt
S
timeout 200 sos run w.sos -c $HOME/.sos/hosts.yml -q here -v3
[ "$(cat 1.txt 2.txt | paste -sd,)" = 1,2 ]
sacct -X -n -P -o State | sort -u
