"""waldur-site-agent: accounts, users, limits and QOS as its agent keeps them by sacctmgr, and its report of what was used."""
# packages: waldur-site-agent waldur-site-agent-slurm
import os
import shutil
import subprocess

from waldur_site_agent_slurm.client import SlurmClient


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def walk(cluster):
    client = SlurmClient({"cpu": {}, "mem": {}, "node": {}}, os.path.dirname(shutil.which("sacctmgr")), cluster)
    assert client.validate_slurm_binary() and client.list_clusters() == ["spur"] and "cpu" in client.list_tres()
    client.create_resource("org", "an organisation, here", "waldur")
    client.create_resource("other", "another", "waldur")
    client.create_resource("Proj_A", "a project's", "waldur", parent_name="org")
    assert {one.name for one in client.list_resources()} >= {"org", "other", "proj_a"}
    assert client.get_resource("Proj_A").description == "a project's" and client.get_resource("none") is None
    assert client.get_account_parent("Proj_A") == "org"
    client.set_account_parent("Proj_A", "other")
    assert client.get_account_parent("proj_a") == "other"
    client.set_resource_limits("proj_a", {"cpu": 1000, "mem": 2000})
    assert client.get_resource_limits("proj_a") == {"cpu": 1000, "mem": 2000}
    client.create_association("daemon", "proj_a", "proj_a")
    client.create_association("root", "proj_a")
    assert client.get_association("daemon", "proj_a").user == "daemon" and client.account_has_users("proj_a")
    client.set_resource_user_limits("proj_a", "daemon", {"cpu": 10, "node": 5})
    assert client.get_resource_user_limits("proj_a")["daemon"] == {"cpu": 10, "node": 5}
    for name in ("fast", "slow"):
        assert not client.qos_exists(name)
    client.create_qos("fast", flags="DenyOnLimit,NoDecay", grp_tres="cpu=25,node=2", max_jobs=10, max_submit=20, max_wall="1-00:00:00", min_tres_per_job="cpu=1")
    client.create_qos("slow")
    client.set_account_qos_list("proj_a", ["fast", "normal"])
    client.add_account_qos("proj_a", "slow")
    assert client.get_current_account_qos("proj_a") == "fast,normal,slow"
    client.set_account_default_qos("proj_a", "normal")
    client.set_qos_grp_tres_mins("fast", {"cpu": 100, "node": 10})
    assert client.get_qos_grp_tres_mins("fast") == {"cpu": 100, "node": 10}
    client.reset_qos_raw_usage("fast")
    client.create_association_with_qos("games", "proj_a", ["fast", "slow"], default_qos="fast", partitions=["main"])
    assert set(client.list_resource_users("proj_a")) == {"daemon", "root", "games"}
    client.set_account_fairshare("proj_a", 7)
    assert "7" in said("sacctmgr", "-nP", "show", "assoc", "account=proj_a", "format=fairshare").splitlines()
    client.set_account_limits("proj_a", "GrpTRES", {"cpu": 12, "node": 2})
    client.reset_raw_usage("proj_a")
    # What was used, and who is sent away.
    said("sbatch", "-W", "-A", "proj_a", "-n2", "-o", "/dev/null", "--wrap", "sleep 1.1")
    report = [line for line in client.get_usage_report(["proj_a", "other"]) if line.user == "root"]
    assert report and report[-1].account == "proj_a", report
    job = said("sbatch", "--parsable", "-A", "proj_a", "-o", "/dev/null", "--wrap", "sleep 300")
    assert job in client.list_active_user_jobs("proj_a", "root")
    client.cancel_active_user_jobs("proj_a", "root")
    subprocess.run(["bash", "-c", f'until [ -z "$(squeue -h -j {job} 2> /dev/null)" ]; do sleep 0.1; done'], timeout=30)
    client.delete_association("daemon", "proj_a")
    client.delete_all_users_from_account("proj_a")
    assert not client.account_has_users("proj_a")
    for name in ("proj_a", "other", "org"):
        client.delete_resource(name)
    for name in ("fast", "slow"):
        client.delete_qos(name)


walk(None)
walk("spur")
