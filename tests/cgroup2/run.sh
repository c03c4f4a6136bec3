#!/bin/bash
# The tests of what the kernel holds runs to, on a kernel that keeps everything in the unified hierarchy (cgroup version 2), emulated.
#   tests/cgroup2/run.sh [--patience SECONDS] [NAME…]      names of end-to-end tests; without: bounds::
# As root, after `cargo build --workspace --tests`. Not part of `cargo test`: tests/kernel/boot.sh says what it needs.
patience=900
[ "$1" = --patience ] && { patience=$2; shift 2; }
names=("$@"); [ ${#names[@]} = 0 ] && names=(bounds::)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/kernel/boot.sh"
agent=$(newest agent bounds::) e2e=$(newest e2e bounds::)
[ -n "$agent" ] && [ -n "$e2e" ] || { echo "no test programs in $root/target/debug/deps: cargo build --workspace --tests"; exit 1; }
boot cgroup2 "$patience" "cd $root/crates/agent && $agent bounds:: devices:: 2>&1
ok=\$?
cd $root/crates/spur && $e2e ${names[*]} 2>&1 && [ \$ok = 0 ] && echo 'ALL IS WELL'"
