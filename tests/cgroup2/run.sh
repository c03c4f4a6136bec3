#!/bin/bash
# The tests of what the kernel holds runs to, on a kernel that keeps everything in the unified hierarchy (cgroup version 2):
# Debian's, in an emulated machine that sees this one's files and keeps its own changes in memory.
#   tests/cgroup2/run.sh [--patience SECONDS] [NAME…]      names of end-to-end tests; without: bounds::
# As root, after `cargo build --workspace --tests`. Not part of `cargo test`: it needs qemu-system-x86, busybox-static and cpio, and
# fetches the kernel's package with apt-get. Exit code 77 where something of that is missing. Needs no KVM, and is slow without.
patience=900
[ "$1" = --patience ] && { patience=$2; shift 2; }
names=("$@"); [ ${#names[@]} = 0 ] && names=(bounds::)
root=$(cd "$(dirname "$0")/../.." && pwd)
for tool in qemu-system-x86_64 busybox cpio dpkg apt-get; do
  command -v $tool > /dev/null || { echo "SKIPPED: no $tool here"; exit 77; }
done
dir=${TMPDIR:-/tmp}/spur-cgroup2; mkdir -p "$dir/initrd/bin" "$dir/initrd/modules"; cd "$dir" || exit 1
if [ ! -d kernel ]; then
  package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')
  apt-get -q download "$package" > apt.log 2>&1 && dpkg -x "$package"_*.deb kernel || { cat apt.log; echo "SKIPPED: no kernel"; exit 77; }
fi
for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache 9pnet 9pnet_virtio 9p overlay; do
  find kernel -name $module.ko -exec cp {} initrd/modules/ \;
done
cp "$(command -v busybox)" initrd/bin/busybox
# From the initial files to a root that is this machine's, with a layer of memory above it.
cat > initrd/init <<'X'
#!/bin/busybox sh
B=/bin/busybox
$B mkdir -p /proc /sys /dev /low /up /new
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
# Some need others: whoever could not be loaded is tried again.
for round in 1 2 3; do for module in /modules/*.ko; do $B insmod $module 2> /dev/null; done; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro host /low
$B mount -t tmpfs tmpfs /up; $B mkdir /up/changes /up/work
$B mount -t overlay overlay -o lowerdir=/low,upperdir=/up/changes,workdir=/up/work /new
for part in proc sys dev; do $B mount --move /$part /new/$part; done
$B mkdir -p /new/dev/pts /new/dev/shm; $B mount -t devpts devpts /new/dev/pts; $B mount -t tmpfs tmpfs /new/dev/shm
$B mount -t tmpfs tmpfs /new/run; $B mount -t tmpfs -o mode=1777 tmpfs /new/var/tmp
$B mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
$B ip link set lo up; $B hostname head
exec $B switch_root /new /bin/bash ORDERS
X
sed -i "s|ORDERS|$dir/orders.sh|" initrd/init; chmod +x initrd/init
newest() { find "$root/target/debug/deps" -maxdepth 1 -name "$1-*" -perm -u+x -type f ! -name '*.so' -printf '%T@ %p\n' | sort -rn | while read -r _ file; do
  "$file" --list 2> /dev/null | grep -q "$2" && echo "$file" && break; done; }
agent=$(newest agent bounds::) e2e=$(newest e2e bounds::)
[ -n "$agent" ] && [ -n "$e2e" ] || { echo "no test programs in $root/target/debug/deps: cargo build --workspace --tests"; exit 1; }
cat > orders.sh <<X
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root TMPDIR=/var/tmp RUST_TEST_THREADS=1
cd $root/crates/agent && $agent bounds:: devices:: 2>&1
ok=\$?
cd $root/crates/spur && $e2e ${names[*]} 2>&1 && [ \$ok = 0 ] && echo "ALL IS WELL"
sync; echo o > /proc/sysrq-trigger
/bin/busybox sleep 60
X
(cd initrd && find . | cpio -o -H newc 2> /dev/null | gzip -1) > initrd.gz
timeout "$patience" qemu-system-x86_64 -accel "${ACCEL:-tcg}" -cpu max -smp 2 -m 2048 -nographic -no-reboot -kernel kernel/boot/vmlinuz-* \
  -initrd initrd.gz -append "console=ttyS0 quiet no_timer_check panic=-1" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap < /dev/null 2>&1 | tee log | grep --line-buffered -aE '^test |SKIPPED|panicked'
grep -aq 'ALL IS WELL' log || { echo "not all passed; all that was said: $dir/log"; exit 1; }
