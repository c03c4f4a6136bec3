"""sciluigi: a command in an allocation of its own, through salloc and srun; its time asked from sacct."""
# packages: sciluigi luigi setuptools<81
import sciluigi


class Hello(sciluigi.SlurmTask):
    def out_said(self):
        return sciluigi.TargetInfo(self, "said.txt")

    def run(self):
        self.ex(f"echo hello > {self.out_said().path}")


class Flow(sciluigi.WorkflowTask):
    def workflow(self):
        return self.new_task("hello", Hello, slurminfo=sciluigi.SlurmInfo(
            runmode=sciluigi.RUNMODE_HPC, project="default", partition="main", cores="1", time="0:02:00", jobname="hello", threads="1"))


if __name__ == "__main__":
    sciluigi.run_local(main_task_cls=Flow)
    assert open("said.txt").read() == "hello\n"
