#!/usr/bin/env bash
# Tests TCP Libra and TCP-Real in the running kernel, where it is root with BTF: loads the BPF
# programs, sends with them, and removes them. A controller that is loaded already is unloaded.
#
#   SKIP_REASON   a file to write to why it was not tested
#
# Ends with 77 where the kernel cannot have it.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "kernel.sh: nothing was tested in the kernel: $1"
    if [ -n "${SKIP_REASON-}" ]; then
        echo "$1" >"$SKIP_REASON"
    fi
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "BPF needs root"
[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
for need in clang=clang make=make pkg-config=pkg-config ip=iproute2 /usr/include/libelf.h=libelf-dev /usr/include/zlib.h=zlib1g-dev; do
    scripts/need.sh "${need%%=*}" "apt:${need##*=}" || skip "there is no ${need%%=*}"
done

# What skips is a failure here.
export COMITY_NEED_KERNEL=1
scripts/progress.py cargo clippy --package comity-kernel --features bpf --all-targets -- -D warnings
scripts/progress.py cargo test --package comity-kernel --features bpf
scripts/progress.py cargo test --package comity-cli --features kernel --test command kernel
scripts/progress.py cargo build --package comity-cli --features kernel
# nginx serves a video with Libra; what is missing for that is printed.
benches/kernel/video.py --comity target/debug/comity --controllers libra --seeds 1 --seconds 25 || [ $? -eq 77 ]
echo "kernel.sh: TCP Libra and TCP-Real ran in Linux $(uname -r)"
