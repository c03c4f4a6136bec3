"""b2luigi: luigi tasks, each as a Slurm job."""
# packages: b2luigi setuptools<81
import pathlib
import subprocess
import sys
import textwrap

pathlib.Path("flow.py").write_text(textwrap.dedent("""
    import b2luigi

    class Square(b2luigi.Task):
        number = b2luigi.IntParameter()
        batch_system = "slurm"
        slurm_settings = {"time": "00:03:00", "mem": "500", "job-name": "b2"}

        def output(self):
            yield self.add_to_output("square.txt")

        def run(self):
            with open(self.get_output_file_name("square.txt"), "w") as out:
                out.write(str(self.number ** 2))

    class Sum(b2luigi.Task):
        batch_system = "slurm"

        def requires(self):
            for number in (1, 2, 3):
                yield self.clone(Square, number=number)

        def output(self):
            yield self.add_to_output("sum.txt")

        def run(self):
            total = sum(int(open(name).read()) for name in self.get_input_file_names("square.txt"))
            with open(self.get_output_file_name("sum.txt"), "w") as out:
                out.write(str(total))

    if __name__ == "__main__":
        b2luigi.set_setting("result_dir", "results")
        b2luigi.set_setting("batch_system", "slurm")
        # It believes what it has heard for two minutes otherwise.
        b2luigi.set_setting("batch_status_cache_ttl", 3)
        b2luigi.process(Sum(), batch=True, workers=3)
"""))
subprocess.run([sys.executable, "flow.py", "--batch"], timeout=200, check=True)
(total,) = pathlib.Path("results").rglob("sum.txt")
assert total.read_text() == "14", total.read_text()
print("ok")
