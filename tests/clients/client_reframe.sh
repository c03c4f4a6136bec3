# reframe: a regression test in a job, with both of its Slurm schedulers.
# packages: reframe-hpc
set -e
cat > settings.py <<'S'
site_configuration = {
    "systems": [{"name": "spur", "hostnames": [".*"], "partitions": [
        {"name": name, "scheduler": name, "launcher": "srun", "environs": ["builtin"], "access": ["-p main"]}
        for name in ("slurm", "squeue")]}],
    "environments": [{"name": "builtin", "cc": "cc"}],
}
S
cat > check.py <<'S'
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Hello(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["hello"]

    @sanity_function
    def check(self):
        return sn.assert_found("hello", self.stdout)
S
reframe -C settings.py -c check.py -r
