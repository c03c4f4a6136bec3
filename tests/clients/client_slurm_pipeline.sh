# slurm-pipeline: steps with dependencies, its own scripts.
# packages: slurm-pipeline
set -e
cat > one.sh <<'S'
#!/bin/bash
echo "TASK: a $(sbatch --parsable -o /dev/null --wrap 'echo one > one')"
S
cat > two.sh <<'S'
#!/bin/bash
echo "TASK: b $(sbatch --parsable -o /dev/null ${SP_DEPENDENCY_ARG} --wrap 'cat one > two')"
S
chmod +x one.sh two.sh
echo '{"steps": [{"name": "first", "script": "./one.sh"}, {"name": "second", "script": "./two.sh", "dependencies": ["first"]}]}' > spec.json
slurm-pipeline.py --specification spec.json > status.json
for i in $(seq 100); do [ -s two ] && break; sleep 0.2; done
[ "$(cat two)" = one ]
slurm-pipeline-status.py --specification status.json | grep -q COMPLETED
