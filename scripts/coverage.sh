#!/usr/bin/env bash
# Runs the tests with counters in the code and prints a table: of each crate, how many of its lines, functions
# and regions (a region is a piece of code without a branch) some test has reached.
#
#   coverage.sh            the tests of the whole workspace
#   coverage.sh CRATE...   those of these crates alone, such as "transport comity"
set -euo pipefail
cd "$(dirname "$0")/.."

tests=(--workspace)
if [ $# -gt 0 ]; then
    tests=("${@/#/--package=comity-}")
    # The library has the plain name.
    tests=("${tests[@]/%=comity-comity/=comity}")
fi
export PROPTEST_RNG_SEED=${SEED:-1}
cargo llvm-cov clean --workspace
# The table is of use when a test fails, too.
code=0
scripts/progress.py cargo llvm-cov test --no-report --no-fail-fast "${tests[@]}" || code=$?
# Tests kill programs, whose counters are then unreadable.
cargo llvm-cov report --failure-mode all --json --summary-only --output-path target/coverage.json
python3 scripts/coverage.py target/coverage.json
exit $code
