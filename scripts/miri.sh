#!/usr/bin/env bash
# Runs the unit tests of the pure crates in Miri, which finds undefined behaviour, leaks, and arithmetic that
# differs between machines. The property tests draw a few cases each: an interpreter is a thousand times slower.
#
# Ends with 77 where Miri cannot be had.
#
#   CASES   how many cases each property test gets (2)
#   CRATES  the crates (units congestion frames link transport tcp)
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    timeout 300 rustup toolchain install nightly --profile minimal --component miri,rust-src || {
        echo "miri: SKIPPED: there is no nightly compiler with miri, and it could not be fetched" >&2
        exit 77
    }
fi
packages=()
for crate in ${CRATES:-units congestion frames link transport tcp}; do
    packages+=(--package "comity-$crate")
done
# The files of regressions are read, and seeds are drawn from the system.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS-}"
export PROPTEST_CASES=${CASES:-2} PROPTEST_RNG_SEED=${SEED:-1}
scripts/progress.py cargo +nightly miri test "${packages[@]}" --lib
