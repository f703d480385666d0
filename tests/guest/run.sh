#!/usr/bin/env bash
# Runs graphmill on memory that most machines have not: several NUMA nodes, one of them without processors as CXL memory is; a file
# system on persistent memory (DAX, MAP_SYNC); a DAX device. All of it is emulated by a virtual machine, in a minute or two; answers
# have to be the same bytes as in plain memory.
#
#   tests/guest/run.sh            prints what was tried and PASS or FAIL; exits with 0 or 1
#
# Needs Rust, and on Debian root to install what is missing. Functions only: an emulated processor says nothing about speed.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=()
command -v qemu-system-x86_64 > /dev/null || missing+=(qemu-system-x86)
command -v busybox > /dev/null || missing+=(busybox-static)
command -v cpio > /dev/null || missing+=(cpio)
compgen -G '/boot/vmlinuz-*-cloud-amd64' > /dev/null || missing+=(linux-image-cloud-amd64)
if [ ${#missing[@]} -gt 0 ]; then
    apt-get update > /dev/null
    apt-get install -y --no-install-recommends "${missing[@]}" > /dev/null
fi
kernel=$(compgen -G '/boot/vmlinuz-*-cloud-amd64' | sort -V | tail -n 1)
modules=/lib/modules/${kernel#/boot/vmlinuz-}/kernel/drivers

cargo build --locked -p graphmill-cli
graphmill=${CARGO_TARGET_DIR:-target}/debug/graphmill
# The tests of raw that look where a page lies find more than one node there.
raw=$(cargo test --locked -p graphmill-raw --lib --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,opt,lib64,modules}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$graphmill" "$root/opt/graphmill"
cp "$raw" "$root/opt/raw-tests"
cp "$(command -v mke2fs || echo /sbin/mke2fs)" "$root/opt/mke2fs"
cp tests/guest/init.sh "$root/init"
for program in graphmill raw-tests mke2fs; do
    ldd "$root/opt/$program" | sed -n 's|.* => \(/[^ ]*\).*|\1|p; s|^[[:space:]]*\(/[^ ]*\) (.*|\1|p'
done | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
for module in nvdimm/libnvdimm nvdimm/nd_btt nvdimm/nd_pmem nvdimm/nd_e820 dax/device_dax dax/dax_pmem; do
    cp "$modules/$module.ko" "$root/modules/"
done
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$work/initramfs.gz"

node() { echo "-object memory-backend-ram,size=$2,id=m$1 -numa node,nodeid=$1,memdev=m$1${3:-}"; }
# shellcheck disable=SC2046
timeout 600 qemu-system-x86_64 -machine q35,accel=tcg -cpu max -smp 2 -m 2560M \
    $(node 0 1G ,cpus=0) $(node 1 1G ,cpus=1) $(node 2 448M) $(node 3 64M) \
    -kernel "$kernel" -initrd "$work/initramfs.gz" \
    -append "console=ttyS0 quiet panic=-1 memmap=256M!1024M memmap=128M!1280M" \
    -nographic -no-reboot -nic none < /dev/null > "$work/console" 2>&1 || true
tr -d '\r' < "$work/console" | sed -n 's/^guest: //p'
if grep -q '^guest: PASS' "$work/console"; then exit 0; fi
echo "the guest did not pass; the end of its console:"
tail -n 40 "$work/console"
exit 1
