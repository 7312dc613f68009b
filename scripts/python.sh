#!/usr/bin/env bash
# Tests the Python package with the extension module that `cargo test --workspace` built. With the name of a module and
# arguments it runs that instead, with an optimised build. What Python needs goes into a virtual environment below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
if [ $# -gt 0 ]; then
    module=$target/quick/libcomity_python.so
    scripts/progress.py cargo build --profile quick --package comity-python
else
    module=$target/debug/deps/libcomity_python.so
    [ -e "$module" ] || scripts/progress.py cargo test --package comity-python --no-run
fi
package=$target/python
needed=python/tests/requirements.txt
venv=$target/python-venv
if ! cmp -s "$needed" "$venv/requirements.txt"; then
    rm -rf "$venv"
    # Debian keeps this part of Python in a package of its own.
    scripts/need.sh "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/ensurepip/__init__.py" \
        apt:python3-venv
    echo "python.sh: fetching what Python needs (once: 220 MB, and 0.9 GB on the disk)"
    python3 -m venv "$venv"
    scripts/progress.py "$venv/bin/pip" install --no-compile --disable-pip-version-check --requirement "$needed"
    cp "$needed" "$venv/"
fi
rm -rf "$package"
mkdir -p "$package"
cp -r python/comity "$package/"
cp "$module" "$package/comity/_comity.abi3.so"
PYTHONPATH=$(realpath "$package")
export PYTHONPATH
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -m "$@"
fi
MPLBACKEND=agg "$venv/bin/python" -m pytest --quiet -p no:cacheprovider python/tests
MPLBACKEND=agg "$venv/bin/python" -c 'import doctest, comity._toml, comity.plot._style
for module in comity._toml, comity.plot._style:
    assert doctest.testmod(module).failed == 0, module'
