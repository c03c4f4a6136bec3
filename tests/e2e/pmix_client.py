"""A task that speaks PMIx through the system's libpmix, without MPI: puts where it is, fences, and asks for the others.

    srun --mpi=pmix python3 pmix_client.py all|direct|abort|die"""
import ctypes
import os
import sys

pmix = ctypes.CDLL("libpmix.so.2")
GLOBAL, WILDCARD = 3, 2**32 - 2


class Process(ctypes.Structure):
    _fields_ = [("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32)]


class Data(ctypes.Union):
    _fields_ = [("flag", ctypes.c_bool), ("string", ctypes.c_char_p), ("uint32", ctypes.c_uint32), ("room", ctypes.c_uint64 * 3)]


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint16), ("data", Data)]


class Info(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char * 512), ("flags", ctypes.c_uint32), ("value", Value)]


def check(what, status):
    if status != 0:
        pmix.PMIx_Error_string.restype = ctypes.c_char_p
        sys.exit(f"{what}: {pmix.PMIx_Error_string(status).decode()}")


def get(rank, key):
    value = ctypes.POINTER(Value)()
    check(f"get {key} of {rank}", pmix.PMIx_Get(ctypes.byref(Process(me.namespace, rank)), key, None, 0, ctypes.byref(value)))
    return value.contents.data


me = Process()
check("init", pmix.PMIx_Init(ctypes.byref(me), None, 0))
size = get(WILDCARD, b"pmix.job.size").uint32
place = Value(kind=3)
place.data.string = f"on {os.environ['SLURMD_NODENAME']}".encode()
check("put", pmix.PMIx_Put(GLOBAL, b"place", ctypes.byref(place)))
check("commit", pmix.PMIx_Commit())
how = sys.argv[1]
collect = Info(key=b"pmix.collect", value=Value(kind=1))
collect.value.data.flag = how != "direct"
for _ in range(3):
    check("fence", pmix.PMIx_Fence(None, 0, ctypes.byref(collect), 1))
if how == "abort" and me.rank == size - 1:
    pmix.PMIx_Abort(7, b"enough of this", None, 0)
    os._exit(7)
if how == "die" and me.rank == size - 1:
    os.kill(os.getpid(), 9)
if how in ("abort", "die"):
    import time
    time.sleep(600)
others = [get(rank, b"place").string.decode() for rank in range(size)]
host, local = get(me.rank, b"pmix.hname").string.decode(), get(WILDCARD, b"pmix.local.size").uint32
print(f"{me.rank} of {size} in {me.namespace.decode()} at {host} with {local}: {', '.join(others)}")
# As MPI programs do: whoever leaves earlier takes what it has put with it.
check("fence", pmix.PMIx_Fence(None, 0, None, 0))
check("finalize", pmix.PMIx_Finalize(None, 0))
