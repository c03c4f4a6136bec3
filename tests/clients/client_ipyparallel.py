"""ipyparallel: the controller and the engines are jobs."""
# packages: ipyparallel
import ipyparallel as ipp

cluster = ipp.Cluster(n=2, engines="slurm", controller="slurm", profile_dir="profile", cluster_id="spur", controller_ip="127.0.0.1")
try:
    client = cluster.start_and_connect_sync(activate=False)
    client.wait_for_engines(2, timeout=120)
    assert sorted(client[:].map_sync(lambda x: x * x, range(6))) == [0, 1, 4, 9, 16, 25]
    jobs = client[:].apply_sync(lambda: __import__("os").environ["SLURM_JOB_ID"])
    assert all(jobs), jobs
finally:
    cluster.stop_cluster_sync()
