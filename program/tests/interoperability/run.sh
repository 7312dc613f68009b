#!/usr/bin/env bash
# Runs the interoperability peer against the built program, or pytest with the arguments. What it
# needs goes into a virtual environment below target/. Without these packages it is skipped.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
cd "$here/../../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/interoperability-venv
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    if ! { python3 -m venv "$venv" \
        && "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"; }; then
        rm -rf "$venv"
        echo "interoperability peer: skipped, since its packages cannot be had" | tee -a "${SKIP_REASON:-/dev/null}"
        exit 0
    fi
    cp "$here/requirements.txt" "$venv/"
fi
export COMITY=${COMITY:-$target/debug/comity}
exec "$venv/bin/python" -m pytest --quiet -p no:cacheprovider "${@:-$here}"
