"""cluster_tools (scalableminds): a concurrent.futures executor whose tasks are array tasks of Slurm."""
# packages: cluster-tools setuptools<81
import os

import cluster_tools

# Jobs find this file again.
os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))


def square(number):
    return number ** 2


def fails():
    raise ValueError("on purpose")


if __name__ == "__main__":
    resources = {"mem": "500", "time": "00:05:00"}
    with cluster_tools.get_executor("slurm", debug=True, job_resources=resources) as executor:
        assert list(executor.map(square, [1, 2, 3])) == [1, 4, 9]
        futures = executor.map_to_futures(square, [4, 5])
        assert sorted(future.result() for future in futures) == [16, 25]
        bad = executor.submit(fails)
        try:
            bad.result()
        except Exception as why:
            assert "on purpose" in str(why), why
        else:
            raise SystemExit("no exception")
    print("ok")
