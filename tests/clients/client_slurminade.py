"""slurminade: functions of a script as jobs, waited for."""
# packages: slurminade
import os
import pathlib

import slurminade

slurminade.update_default_configuration(partition="main", time="00:05:00")


@slurminade.slurmify()
def write(path, text):
    pathlib.Path(path).write_text(text)


if __name__ == "__main__":
    here = os.getcwd()
    jobs = [write.distribute(f"{here}/out-{n}", str(n * n)) for n in range(3)]
    slurminade.join()
    write.distribute_and_wait(f"{here}/last", "after all of them")
    assert pathlib.Path("last").read_text() == "after all of them"
    assert [pathlib.Path(f"out-{n}").read_text() for n in range(3)] == ["0", "1", "4"]
    slurminade.srun(["touch", f"{here}/touched"])
    assert os.path.exists("touched")
