#!/usr/bin/env bash
# Makes sure that a command is there, or says why it cannot be. An absolute path is a file, such as a header.
#
#   need.sh COMMAND apt:PACKAGE           from Debian's packages
#   need.sh COMMAND cargo:CRATE@VERSION   built from its published source
#   need.sh COMMAND none                  only checked
set -euo pipefail
if [ $# -ne 2 ]; then
    echo "usage: need.sh COMMAND apt:PACKAGE|cargo:CRATE@VERSION|none" >&2
    exit 2
fi
command=$1 origin=$2

is_there() {
    case $command in
    /*) [ -e "$command" ] ;;
    *) command -v "$command" >/dev/null ;;
    esac
}
if is_there; then
    exit 0
fi
give_up() {
    echo "need.sh: '$command' is missing, and $1" >&2
    exit 1
}

case $origin in
apt:*)
    package=${origin#apt:}
    command -v apt-get >/dev/null ||
        give_up "this is no Debian: install what Debian calls '$package'"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            give_up "installing '$package' takes root: run 'apt-get install $package' as root"
        as_root=(sudo)
    fi
    echo "need.sh: installing the Debian package '$package' for '$command'"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends -q "$package" ||
        give_up "apt-get could not install '$package'"
    ;;
cargo:*)
    crate=${origin#cargo:}
    echo "need.sh: building '$crate' for '$command' (once, some minutes)"
    # A tool that runs for a second need not be optimised for a quarter of an hour.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 CARGO_PROFILE_RELEASE_DEBUG=0 \
        "$(dirname "$0")/progress.py" cargo install --locked "$crate" || give_up "cargo could not build '$crate'"
    ;;
*)
    give_up "nothing here installs it"
    ;;
esac

is_there || give_up "installing '$origin' did not put it on the PATH"
