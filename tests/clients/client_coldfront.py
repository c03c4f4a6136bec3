"""ColdFront's plugin for Slurm: accounts and users added, blocked and taken away by sacctmgr, and the cluster read from its dump."""
# packages: coldfront setuptools<81
import os
import pathlib
import shutil
import subprocess

here = pathlib.Path.cwd()
os.environ.update(PLUGIN_SLURM="True", SLURM_SACCTMGR_PATH=shutil.which("sacctmgr"), SECRET_KEY="word", DB_URL=f"sqlite:///{here}/db.sqlite", DJANGO_SETTINGS_MODULE="coldfront.config.settings")

import django  # noqa: E402

django.setup()

from coldfront.plugins.slurm import utils  # noqa: E402
from coldfront.plugins.slurm.associations import SlurmCluster  # noqa: E402


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def dumped():
    utils.slurm_dump_cluster("spur", str(here / "dump"))
    with open(here / "dump") as stream:
        return SlurmCluster.new_from_stream(stream)


for account in ("lab", "group"):
    utils.slurm_add_account("spur", account, specs=["Fairshare=7", "QOS+=normal"])
utils.slurm_add_account("spur", "lab")  # what is there is not added twice
for user, account in (("daemon", "lab"), ("daemon", "group"), ("bin", "lab")):
    utils.slurm_add_assoc(user, "spur", account, specs=["DefaultAccount=lab"] if account == "lab" else None)
assert utils.slurm_check_assoc("daemon", "spur", "group") and not utils.slurm_check_assoc("bin", "spur", "group")
cluster = dumped()
assert cluster.name == "spur" and {"root", "lab", "group"} <= set(cluster.accounts), cluster.accounts
assert set(cluster.accounts["lab"].users) == {"daemon", "bin"}, cluster.accounts["lab"].users
assert any("Fairshare=7" in spec for spec in cluster.accounts["lab"].specs), cluster.accounts["lab"].specs
# The default account goes last: another is made the default first.
utils.slurm_remove_assoc("daemon", "spur", "lab")
assert said("sacctmgr", "-nP", "show", "user", "daemon", "format=defaultaccount") == "group"
utils.slurm_block_account("spur", "group")
assert "0" in said("sacctmgr", "-nP", "show", "assoc", "account=group", "user=", "format=grpsubmitjobs").splitlines()
utils.slurm_remove_assoc("nobody", "spur", "group")  # nothing is deleted
for user, account in (("bin", "lab"), ("daemon", "group")):
    utils.slurm_remove_assoc(user, "spur", account)
for account in ("lab", "group"):
    utils.slurm_remove_account("spur", account)
assert not {"lab", "group"} & set(dumped().accounts)
