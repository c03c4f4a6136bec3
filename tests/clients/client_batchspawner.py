"""batchspawner: JupyterHub's spawner for Slurm submits, asks, and cancels (the hub itself is left out)."""
# packages: batchspawner jupyterhub
import asyncio
import getpass
import os

from batchspawner import SlurmSpawner
from jupyterhub.objects import Hub, Server
from jupyterhub.user import User
from jupyterhub import orm
from traitlets.config import Config


class ForUs(SlurmSpawner):
    """As a hub in which the user is the one who runs it."""
    exec_prefix = ""
    cmd = ["sleep", "60"]
    batch_script = SlurmSpawner.batch_script.default_value.replace("{{cmd}}", "sleep 60").replace("--get-user-env=L", "--no-kill")


async def main():
    database = orm.new_session_factory("sqlite:///:memory:")()
    account = orm.User(name=getpass.getuser())
    database.add(account)
    database.commit()
    spawner = ForUs(config=Config(), db=database, user=User(account, {"db": database}), hub=Hub(),
                    req_homedir=os.getcwd(), req_username=getpass.getuser(), req_partition="main", req_runtime="5", req_memory="200M",
                    req_nprocs="1", req_keepvars="ALL", req_prologue="", req_epilogue="", req_options="")
    script = await spawner._get_batch_script(**spawner.get_req_subvars(), cmd="sleep 60")
    out = await spawner.run_command(spawner.batch_submit_cmd, input=script, env=dict(os.environ))
    spawner.job_id = spawner.parse_job_id(out)
    assert int(spawner.job_id) > 0
    for _ in range(100):
        await spawner.query_job_status()
        if spawner.state_isrunning():
            break
        assert spawner.state_ispending(), spawner.job_status
        await asyncio.sleep(0.2)
    assert spawner.state_isrunning() and spawner.state_gethost() in ("n1", "n2"), spawner.job_status
    await spawner.cancel_batch_job()
    for _ in range(100):
        status = await spawner.query_job_status()
        if not (spawner.state_isrunning() or spawner.state_ispending()):
            return
        await asyncio.sleep(0.2)
    raise SystemExit(f"still there: {spawner.job_status}")


asyncio.run(main())
