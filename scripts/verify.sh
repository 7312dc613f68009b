#!/usr/bin/env bash
# Checks all cases of a small domain, every interleaving, every step or another implementation, where `make test` draws
# cases. Each part runs also after the failure of another, and its last lines say what came of it.
#
#   PARTS    models: the exhaustive models, which are in `make test` too
#            codec:  the codec beside the one in Python, on many more inputs
#            loom:   what the endpoint's threads share, under every interleaving
#            miri:   the unit tests of the pure crates in an interpreter (`miri.sh`, which CRATES is for)
#            (all)
#   INPUTS   how many inputs of each format the two codecs get (100000)
#   MINUTES  how long Miri runs at most (60)
#
# Ends with 77 where nothing failed and a part could not run.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
skipped=()
said=()
part() {
    local name=$1 began=$SECONDS result=passed code=0
    shift
    [[ " ${PARTS:-models codec loom miri} " == *" $name "* ]] || return 0
    echo "verify: $name"
    "$@" || code=$?
    case $code in
    0) ;;
    77) result=SKIPPED skipped+=("$name") ;;
    *) result=FAILED failed+=("$name") ;;
    esac
    said+=("$(printf 'verify: %-6s %-7s %5d s' "$name" "$result" $((SECONDS - began)))")
}

models() {
    # Each is named after what it has every one of.
    scripts/progress.py cargo test --package comity-units --package comity-transport --package comity --lib --test it -- every_
}

codec() {
    COMITY_CODEC_CASES=${INPUTS:-100000} \
        scripts/progress.py cargo test --package comity-transport --test it -- differential --nocapture
}

loom() {
    (cd loom && ../scripts/progress.py cargo test --release)
}

# One crate after the other, the quickest first, while there is time.
miri() {
    local crate code until=$((SECONDS + ${MINUTES:-60} * 60))
    for crate in ${CRATES:-units frames congestion link transport tcp}; do
        code=0
        CASES=2 CRATES=$crate timeout $((until > SECONDS ? until - SECONDS : 1)) scripts/miri.sh || code=$?
        case $code in
        0) echo "verify: miri: $crate passed" ;;
        124) echo "verify: miri: no time for $crate or those behind it (MINUTES)" >&2 && return 77 ;;
        *) return $code ;;
        esac
    done
}

part models models
part codec codec
part loom loom
part miri miri
printf '%s\n' "${said[@]}"
if [ ${#failed[@]} -gt 0 ]; then
    exit 1
fi
[ ${#skipped[@]} -eq 0 ] || exit 77
