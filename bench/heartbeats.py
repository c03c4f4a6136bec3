#!/usr/bin/env python3
"""What many agents cost three controllers that have nothing to do, and one job on all of them.

    cargo build --release -p spur -p wire --bins --example agents
    python3 bench/heartbeats.py [--spur target/release/spur] [--agents target/release/examples/agents] [--nodes 1000]

Measures the controllers' CPU time over --seconds, first without agents (the members' own heartbeats), then with all of them connected
(one process plays them; each says that it lives every 5 s); the difference is what agents cost. Then a job on all nodes: until it runs,
until it has ended by itself, and whether every node is idle again.
"""
import time

from played import Played, arguments

parser = arguments(controllers=3)
parser.add_argument("--seconds", type=float, default=30)
options = parser.parse_args()


def cost(cluster):
    """Of each controller, in percent of a core."""
    before, begin = cluster.cpu_seconds(), time.perf_counter()
    time.sleep(options.seconds)
    took = time.perf_counter() - begin
    return [(after - used) / took * 100 for after, used in zip(cluster.cpu_seconds(), before)]


with Played(options) as cluster:
    alone = cost(cluster)
    print(f"{options.nodes} agents are there after {cluster.start_agents():.1f} s")
    time.sleep(2)
    with_agents = cost(cluster)
    shown = lambda costs: " + ".join(f"{one:.1f}" for one in costs)
    print(f"controllers alone: {shown(alone)} % of a core; with {options.nodes} agents: {shown(with_agents)} %; "
          f"the agents cost {sum(with_agents) - sum(alone):.1f} % of a core")
    begin = time.perf_counter()
    job = cluster.run("sbatch", "--parsable", "-o", "/dev/null", "-N", str(options.nodes), "--exclusive", "--wrap", "true\n#PLAY 2")
    cluster.until("the job", lambda: cluster.state(job) == "R")
    running = time.perf_counter() - begin
    cluster.until("the job's end", lambda: cluster.state(job) == "CD")
    cluster.until("idle nodes", lambda: cluster.count("idle") == options.nodes)
    n_nodes = [word for word in cluster.run("scontrol", "-o", "show", "job", job).split() if word.startswith("NumNodes=")]
    print(f"a job on {options.nodes} nodes ({n_nodes[0]}): runs {running * 1000:.0f} ms after sbatch, has ended and all nodes are idle "
          f"{(time.perf_counter() - begin - 2) * 1000:.0f} ms later than its 2 s")
