"""srun --pty through a real terminal: its size, another size while it runs, Ctrl-C for the program in it, its exit code."""
# packages: pexpect
import time

import pexpect

shell = pexpect.spawn("srun --pty bash --norc -i", dimensions=(30, 90), timeout=60, encoding="utf-8")
shell.sendline("stty size; echo A$((40+2))")
shell.expect("30 90")
shell.expect("A42")
shell.setwinsize(50, 132)
for _ in range(20):
    shell.sendline("stty size; echo B$((40+2))")
    shell.expect("B42")
    if "50 132" in shell.before:
        break
    time.sleep(0.2)
else:
    raise SystemExit(f"the terminal has kept its size: {shell.before}")
shell.sendline("sleep 100")
time.sleep(0.5)
shell.sendintr()
shell.sendline("echo C$((40+2))")
shell.expect("C42")
shell.sendline("exit 7")
shell.expect(pexpect.EOF)
shell.close()
assert shell.exitstatus == 7, shell.exitstatus
