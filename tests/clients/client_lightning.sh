# PyTorch's torchrun and Lightning in jobs: ranks of two nodes meet; a training run that is told to stop keeps what it has, requeues its job and goes on.
# packages: lightning numpy
set -e
cat > reduce.py <<'S'
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
number = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(number)
print("sum", int(number), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
S
cat > torchrun.sh <<'S'
#!/bin/bash
#SBATCH -N2 --ntasks-per-node=1 -c2 -t 5 --mem=2G -o torchrun.log
srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 2 --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d \
  --rdzv-endpoint "127.0.0.1:$((20000 + SLURM_JOB_ID % 10000))" reduce.py
S
sbatch -W torchrun.sh > /dev/null || { cat torchrun.log; exit 1; }
[ "$(grep -c 'sum 10 of 4' torchrun.log)" = 4 ]

cat > fabric.py <<'S'
from lightning.fabric import Fabric
fabric = Fabric(accelerator="cpu", devices=2, num_nodes=2, strategy="ddp")
fabric.launch()
total = fabric.all_reduce(fabric.to_device(__import__("torch").tensor(fabric.global_rank + 1.0)), reduce_op="sum")
print("rank", fabric.global_rank, "node", fabric.node_rank, "local", fabric.local_rank, "sum", int(total), flush=True)
fabric.barrier()
__import__("torch").distributed.destroy_process_group()  # or its threads may abort the process at its end
S
MASTER_ADDR=127.0.0.1 srun -N2 --ntasks-per-node=2 --mem=2G -t 5 python fabric.py > fabric.log 2>&1 || { cat fabric.log; exit 1; }
for rank in "0 node 0 local 0" "1 node 0 local 1" "2 node 1 local 0" "3 node 1 local 1"; do grep -qx "rank $rank sum 10" fabric.log; done

cat > train.py <<'S'
import os
import time
import lightning as L
import torch

class Slow(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, index):
        time.sleep(0.05)
        open("steps", "a").write(f"{os.environ.get('SLURM_RESTART_COUNT', '0')} {self.global_step}\n")
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

data = torch.utils.data.DataLoader(torch.ones(100, 2), batch_size=1)
trainer = L.Trainer(accelerator="cpu", devices=1, max_epochs=2, enable_progress_bar=False, logger=False, default_root_dir=os.getcwd(), enable_checkpointing=True)
trainer.fit(Slow(), data)
open("done", "w").write(str(trainer.global_step))
S
cat > train.sh <<'S'
#!/bin/bash
#SBATCH -n1 --ntasks-per-node=1 -t 5 --mem=2G --requeue --open-mode=append -o train.log
srun python train.py
S
job=$(sbatch --parsable train.sh)
until [ -s steps ]; do sleep 0.2; done
scancel -s USR1 "$job"
for i in $(seq 400); do [ -e done ] && break; sleep 0.2; done
[ "$(cat done)" = 200 ] || { cat train.log; exit 1; }
grep -q '^1 ' steps
# The second run went on where the first had stopped, not from the beginning.
[ "$(grep -m1 '^1 ' steps | cut -d' ' -f2)" -gt 0 ] || { cat train.log; exit 1; }
