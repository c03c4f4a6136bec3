"""experimaestro: what it finds out about a cluster, most of it from documents."""
# packages: experimaestro setuptools
from experimaestro.launchers.slurm.cli import detect_cluster_info

told = detect_cluster_info()
partitions = {one if isinstance(one, str) else one.name for one in (told.partitions.keys() if isinstance(told.partitions, dict) else told.partitions)}
assert "main" in partitions, told
assert "spur" in repr(told), told
