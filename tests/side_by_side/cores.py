"""The two systems with nodes of two sockets, two cores each, of two threads: what is handed out are whole cores."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from clusters import Slurm, Spur  # noqa: E402


class CoresSlurm(Slurm):
    selection, shape = "CR_Core_Memory", "Sockets=2 CoresPerSocket=2 ThreadsPerCore=2"


class CoresSpur(Spur):
    shape = "sockets = 2\ncores_per_socket = 2\nthreads_per_core = 2"
    scheduler = "[scheduler]\nhand_out = 'cores'\n"
