# troika (ECMWF): submits, watches and kills jobs on a Slurm site of this machine.
# packages: troika
set -e
cat > troika.yml <<S
---
sites:
  here:
    type: slurm
    connection: local
    copy_script: false
    at_startup: []
    pre_submit: ["create_output_dir"]
    at_exit: []
S
printf '#!/bin/bash\n# troika name=first\n# troika queue=main\nsleep 1\necho done\n' > job.sh
troika -v -c troika.yml submit -u $USER -o $PWD/out here job.sh
for i in $(seq 100); do grep -qs done out && break; sleep 0.2; done
grep -q done out
troika -c troika.yml monitor -u $USER -o $PWD/out here job.sh || true
printf '#!/bin/bash\n#SBATCH -J second\nsleep 300\n' > slow.sh
troika -c troika.yml submit -u $USER -o $PWD/out2 here slow.sh
for i in $(seq 100); do [ "$(squeue -h -n second -o %T)" = RUNNING ] && break; sleep 0.2; done
troika -c troika.yml monitor -u $USER -o $PWD/out2 here slow.sh
ls slow.sh.* ; cat slow.sh.stat
troika -v -c troika.yml kill -u $USER -o $PWD/out2 here slow.sh
for i in $(seq 100); do [ -z "$(squeue -h -n second)" ] && break; sleep 0.2; done
[ -z "$(squeue -h -n second)" ]
