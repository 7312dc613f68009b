#!/usr/bin/env bash
# Proves that the pure crates (units, congestion, frames, link, transport, tcp) and all that they depend on do without
# `std`, and that the proof would fail if they did not. See test/purity/src/lib.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

build() { scripts/progress.py cargo build --package comity-purity --profile purity --features "$1"; }

build check
echo "purity: units, congestion, frames, link, transport and tcp link without std"

if message=$(build prove-it 2>&1); then
    echo "purity: a crate that uses std went unnoticed, so the check above proves nothing" >&2
    exit 1
fi
if ! grep -q 'duplicate lang item `panic_impl`' <<<"$message"; then
    echo "purity: the counter-check failed for another reason than std:" >&2
    echo "$message" >&2
    exit 1
fi
echo "purity: a crate that uses std is noticed"
