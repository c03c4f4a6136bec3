#!/bin/bash
# Burst buffers on file systems that keep quotas of projects (ext4 and XFS), which many kernels are built without: on Debian's, emulated.
#   tests/quota/run.sh [--patience SECONDS]
# 1. The agent's own tests of quotas: limit, exact fit, several buffers of one user, persistent ones, removal, death half way.
# 2. All of its tests of staging (orders, movers, kills, removal) with every buffer on such a file system.
# XFS without clones there: they take no time, and those tests look at copies that do.
# As root, after `cargo build -p agent --tests`. Not part of `cargo test`: tests/kernel/boot.sh says what it needs.
patience=1800
[ "$1" = --patience ] && { patience=$2; shift 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/kernel/boot.sh"
agent=$(newest agent staging::quota) staging=$(newest staging a_removal_ends_the_mover)
[ -n "$agent" ] && [ -n "$staging" ] || { echo "no test programs in $root/target/debug/deps: cargo build -p agent --tests"; exit 1; }
MEMORY_MIB=3072 boot quota "$patience" "ok=yes
echo '== quotas'
cd $root/crates/agent; $agent staging::quota --nocapture 2>&1 | tee /run/said || true
grep -q '^test result: ok' /run/said && ! grep -q SKIPPED /run/said || ok=no
for kind in ext4 xfs; do
  mkdir -p /run/\$kind; truncate -s 600M /run/\$kind.image
  case \$kind in ext4) mkfs.ext4 -q -O quota,project -E quotatype=prjquota /run/ext4.image ;; xfs) mkfs.xfs -q -m reflink=0 /run/xfs.image ;; esac
  mount -o loop,prjquota /run/\$kind.image /run/\$kind || ok=no
  chmod 1777 /run/\$kind
  echo \"== staging on \$kind\"
  TMPDIR=/run/\$kind $staging 2>&1 | tee /run/said
  grep -q '^test result: ok' /run/said || ok=no
  repquota -P /run/\$kind | tail -n +5
done
[ \$ok = yes ] && echo 'ALL IS WELL'" crc32c_generic crc16 libcrc32c mbcache jbd2 ext4 quota_tree quota_v2 xfs loop
