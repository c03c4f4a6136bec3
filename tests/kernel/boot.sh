# To be sourced. Debian's kernel in an emulated machine that sees this one's files and keeps its own changes in memory.
#   boot NAME PATIENCE ORDERS MODULE…     runs the text ORDERS in it, as root, with bash; what it says goes to $dir/log.
# It is well when the orders say ALL IS WELL. Needs qemu-system-x86, and apt-get for the packages of the kernel, busybox-static and
# cpio, which are unpacked, not installed; exit code 77 where something of that is missing. Emulated by default, which is slow; ACCEL=kvm CPU=host where there is KVM.
fetch() { # a folder, and the package that it is to hold
  [ -d "$1" ] && return
  apt-get -q download "$2" > apt.log 2>&1 && dpkg -x "$2"_*.deb "$1" || { cat apt.log; echo "SKIPPED: no $2"; exit 77; }
}

boot() {
  local name=$1 patience=$2 orders=$3 module; shift 3
  for tool in qemu-system-x86_64 dpkg apt-get; do
    command -v $tool > /dev/null || { echo "SKIPPED: no $tool here"; exit 77; }
  done
  shared=${SPUR_KERNEL:-${TMPDIR:-/tmp}/spur-kernel}; mkdir -p "$shared"; cd "$shared" || exit 1
  fetch kernel "$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')"
  fetch busybox busybox-static
  fetch cpio cpio
  dir=$shared/$name; mkdir -p "$dir/initrd/bin" "$dir/initrd/modules"; cd "$dir" || exit 1
  # Some need others, and are loaded in this order.
  : > initrd/modules/order
  for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache 9pnet 9pnet_virtio 9p overlay "$@"; do
    find ../kernel -name $module.ko -exec cp {} initrd/modules/ \;
    echo $module >> initrd/modules/order
  done
  cp ../busybox/bin/busybox initrd/bin/busybox
  # From the initial files to a root that is this machine's, with a layer of memory above it.
  cat > initrd/init <<'Y'
#!/bin/busybox sh
B=/bin/busybox
$B mkdir -p /proc /sys /dev /low /up /new
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
# Whoever could not be loaded is tried again.
for round in 1 2 3; do for module in $($B cat /modules/order); do $B insmod /modules/$module.ko 2> /dev/null; done; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro host /low
$B mount -t tmpfs tmpfs /up; $B mkdir /up/changes /up/work
$B mount -t overlay overlay -o lowerdir=/low,upperdir=/up/changes,workdir=/up/work /new
for part in proc sys dev; do $B mount --move /$part /new/$part; done
$B mkdir -p /new/dev/pts /new/dev/shm; $B mount -t devpts devpts /new/dev/pts; $B mount -t tmpfs tmpfs /new/dev/shm
$B mount -t tmpfs tmpfs /new/run; $B mount -t tmpfs -o mode=1777 tmpfs /new/var/tmp
$B mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
$B ip link set lo up; $B hostname head
exec $B switch_root /new /bin/bash ORDERS
Y
  sed -i "s|ORDERS|$dir/orders.sh|" initrd/init; chmod +x initrd/init
  cat > orders.sh <<Y
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LOGNAME=root TMPDIR=/var/tmp RUST_TEST_THREADS=1
$orders
sync; echo o > /proc/sysrq-trigger
$shared/busybox/bin/busybox sleep 60
Y
  (cd initrd && find . | ../../cpio/bin/cpio -o -H newc 2> /dev/null | gzip -1) > initrd.gz
  timeout "$patience" qemu-system-x86_64 -accel "${ACCEL:-tcg}" -cpu "${CPU:-max}" -smp 2 -m "${MEMORY_MIB:-2048}" -nographic -no-reboot -kernel ../kernel/boot/vmlinuz-* \
    -initrd initrd.gz -append "console=ttyS0 quiet no_timer_check panic=-1" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap < /dev/null 2>&1 | tee log | grep --line-buffered -aE '^test |SKIPPED|panicked|^== '
  grep -aq 'ALL IS WELL' log || { echo "not all passed; all that was said: $dir/log"; exit 1; }
}

# The newest test program of a crate (first word) that has a test of this name (second word).
newest() { find "$root/target/debug/deps" -maxdepth 1 -name "$1-*" -perm -u+x -type f ! -name '*.so' -printf '%T@ %p\n' | sort -rn | while read -r _ file; do
  "$file" --list 2> /dev/null | grep -q "$2" && echo "$file" && break; done; }
