"""jax.distributed: processes of a step find each other through Slurm's variables alone."""
# packages: jax
import os
import subprocess
import sys

if "SLURM_PROCID" in os.environ and len(sys.argv) > 1:
    import jax

    # Nodes of `spur up` have names that nobody resolves; who is who comes from Slurm's variables alone.
    jax.distributed.initialize(coordinator_address=f"127.0.0.1:{20000 + int(os.environ['SLURM_JOB_ID']) % 10000}")
    print(jax.process_index(), jax.process_count(), flush=True)
    jax.distributed.shutdown()
else:
    done = subprocess.run(["srun", "-N1", "-n2", "--mem=0", sys.executable, __file__, "worker"], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert sorted(done.stdout.split("\n")) == ["", "0 2", "1 2"], done
