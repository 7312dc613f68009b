#!/usr/bin/env bash
# Looks for inputs that break things: every fuzz target for a while, where a nightly compiler is installed
# (libFuzzer's instrumentation needs one), and the property tests with many more cases.
#
#   fuzz.sh           both; installs cargo-fuzz where it is missing
#   fuzz.sh --short   builds the targets and runs each for 5 s, where the nightly compiler and cargo-fuzz are there
#                     already; elsewhere it says so and ends well. What CI runs.
#
#   SECONDS_EACH  how long each fuzz target runs (60; 5 with --short)
#   CASES         how many cases each property test gets (20000; `cargo test` alone gives it 256)
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1-}" = --short ]; then
    seconds=${SECONDS_EACH:-5}
else
    seconds=${SECONDS_EACH:-60}
    PROPTEST_CASES=${CASES:-20000} cargo test --workspace
fi

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: the fuzz targets were not run: they need a nightly compiler (rustup toolchain install nightly)"
    exit 0
fi
if [ "${1-}" = --short ] && ! command -v cargo-fuzz >/dev/null; then
    echo "fuzz: the fuzz targets were not run: they need cargo-fuzz (make fuzz installs it)"
    exit 0
fi
scripts/need.sh cargo-fuzz cargo:cargo-fuzz@0.13.2
targets=$(cargo +nightly fuzz list)
cargo +nightly fuzz build
for target in $targets; do
    echo "fuzz: $target"
    # New inputs go to fuzz/corpus; what broke something is to be copied from fuzz/artifacts to the seeds.
    mkdir -p "fuzz/corpus/$target"
    seeds=crates/harness/corpus/$target
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "$seeds" -- \
        -max_total_time="$seconds" -len_control=0 -max_len=4096 -timeout=20 -rss_limit_mb=2048
done
