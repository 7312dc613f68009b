#!/usr/bin/env bash
# Checks the dependencies against the RustSec advisories, where their database can be had: on a machine
# without that network, a failing download says nothing about the dependencies.
#
# Ends with 77 where the database cannot be fetched: nothing was checked.
#
#   SKIP_REASON   a file to write to why nothing was checked
set -euo pipefail
cd "$(dirname "$0")/.."

echo "advisories: fetching the database of RustSec (2 minutes at most)"
if message=$(timeout 120 cargo deny fetch db 2>&1 </dev/null); then
    cargo deny check advisories
else
    echo "advisories: SKIPPED: the database cannot be fetched here:" >&2
    tail -n 1 <<<"$message" >&2
    if [ -n "${SKIP_REASON-}" ]; then
        echo "no dependency was checked for advisories: their database cannot be fetched here" >"$SKIP_REASON"
    fi
    exit 77
fi
