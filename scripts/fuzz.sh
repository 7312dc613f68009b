#!/usr/bin/env bash
# Looks for inputs that break things: every fuzz target for a while, where a nightly compiler is installed
# (libFuzzer's instrumentation needs one), and the property tests with many more cases.
#
#   fuzz.sh           both; installs cargo-fuzz where it is missing
#   fuzz.sh --short   builds the targets and runs each for 5 s, where the nightly compiler and cargo-fuzz are there
#                     already
#   fuzz.sh --ci      as --short, and installs what is missing
#
# Ends with 77 where the fuzz targets were not run: without a nightly compiler, and with --short without cargo-fuzz.
# The same targets run as property tests in `cargo test`, on any compiler.
#
# The fuzzer keeps every input that reaches new code in fuzz/corpus, and begins with those the next time.
#
#   SKIP_REASON   a file to write to why they were not run
#   MINUTES       how long all fuzz targets run together (30); not with --short
#   TARGETS       the fuzz targets to run (all)
#   CASES         how many cases each property test gets (2000; `make test` gives most of them 256; 0: not run)
#   SEED          what the cases are drawn from (a new one each time; `make test` has the same one every time)
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1-}
skip() {
    echo "fuzz: SKIPPED: $1" >&2
    if [ -n "${SKIP_REASON-}" ]; then
        echo "$1" >"$SKIP_REASON"
    fi
    exit 77
}

cases=${CASES:-2000}
if [ -z "$mode" ] && [ "$cases" -gt 0 ]; then
    # New cases each time; the seed is told, so that a run can be repeated.
    seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    echo "fuzz: the property tests with SEED=$seed"
    PROPTEST_RNG_SEED=$seed PROPTEST_CASES=$cases scripts/progress.py cargo test --workspace --no-fail-fast
fi

if [ "$mode" = --ci ] && ! cargo +nightly --version >/dev/null 2>&1; then
    timeout 300 rustup toolchain install nightly --profile minimal ||
        skip "there is no nightly compiler, and it could not be fetched"
fi
cargo +nightly --version >/dev/null 2>&1 ||
    skip "there is no nightly compiler (rustup toolchain install nightly)"
if [ "$mode" = --short ] && ! command -v cargo-fuzz >/dev/null; then
    skip "there is no cargo-fuzz (make fuzz installs it)"
fi
scripts/need.sh cargo-fuzz cargo:cargo-fuzz@0.13.2
read -ra targets <<<"${TARGETS:-$(cargo +nightly fuzz list | tr '\n' ' ')}"
if [ -n "$mode" ]; then
    seconds=5
else
    seconds=$((${MINUTES:-30} * 60 / ${#targets[@]}))
fi
scripts/progress.py cargo +nightly fuzz build
for target in "${targets[@]}"; do
    echo "fuzz: $target, $seconds s"
    # New inputs go to fuzz/corpus; what broke something is to be copied from fuzz/artifacts to the seeds.
    mkdir -p "fuzz/corpus/$target"
    seeds=test/harness/corpus/$target
    # Up to the largest datagram: 65,507 bytes. The fuzzer begins with short inputs.
    scripts/progress.py cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "$seeds" -- \
        -verbosity=0 -print_final_stats=1 -max_total_time="$seconds" -max_len=65507 -timeout=20 -rss_limit_mb=2048
    echo "fuzz: $target: $(find "fuzz/corpus/$target" -type f | wc -l) inputs in fuzz/corpus"
done
