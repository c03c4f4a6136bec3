# MLXP: a python script with a grid of parameters becomes one batch job a point.
# packages: mlxp setuptools<81
set -e
mkdir -p configs; echo "seed: 0" > configs/config.yaml
cat > main.py <<'PY'
import os
import mlxp


@mlxp.launch(config_path="./configs")
def run(ctx: mlxp.Context) -> None:
    ctx.logger.log_metrics({"seed": ctx.config.seed, "job": int(os.environ["SLURM_JOB_ID"])}, log_name="seen")


if __name__ == "__main__":
    run()
PY
cat > script.sh <<'SH'
#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=5
#SBATCH --mem=500M

python main.py ++seed=1,2,3
SH
mlxpsub script.sh
sleep 1
while [ -n "$(squeue -h --me)" ]; do sleep 0.3; done
cat logs/*/metrics/seen.json
[ "$(cat logs/*/metrics/seen.json | grep -oE '"seed": [123]' | sort -u | wc -l)" = 3 ]
[ "$(cat logs/*/metrics/seen.json | grep -oE '"job": [0-9]+' | sort -u | wc -l)" = 3 ]
