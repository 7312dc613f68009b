#!/bin/sh
# Runs every script of this folder in ns-2.35 and writes the vectors beside them. Takes about three minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seeds() { seq 1 "$1"; }

for variant in tahoe reno newreno sack vegas; do
    for era in 2000 modern; do
        for careful in false true; do
            for drops in none 14 14+28 14+26+28 14+24+26+28; do
                ns "$here/drops.tcl" variant=$variant drops=$drops careful=$careful era=$era
            done
        done > "$here/drops_${variant}_$era.txt"
    done
done

# Random lists of packets to drop, each a share of the first 400: an ordinary generator, so that they stay the same.
lists() {
    awk 'BEGIN {
        state = 20011
        for (run = 0; run < 9; run++) {
            share = run % 3 == 0 ? 0.03 : run % 3 == 1 ? 0.1 : 0.25
            list = ""
            for (packet = 1; packet < 400; packet++) {
                state = (state * 16807) % 2147483647
                if (state / 2147483647 < share) list = list (list == "" ? "" : "+") packet
            }
            print list
        }
    }'
}
for variant in tahoe reno newreno sack; do
    for drops in $(lists); do
        ns "$here/drops.tcl" variant=$variant drops=$drops
    done > "$here/drops_${variant}_random.txt"
done

dumbbell() { # name count options..
    name=$1 count=$2
    shift 2
    for seed in $(seeds "$count"); do ns "$here/dumbbell.tcl" name="$name" seed="$seed" "$@"; done
}
{
    echo "# name seed drops drops_after_warm sent sent_again delivered.."
    for variant in tahoe reno newreno sack; do
        dumbbell "$variant-50-10" 8 variant=$variant flows=50 window=10
        dumbbell "$variant-30-20" 8 variant=$variant flows=30 window=20
        dumbbell "$variant-30-80" 8 variant=$variant flows=30 window=80
    done
    dumbbell reno-2-10 3 flows=2
    dumbbell reno-40-10 3 flows=40
    dumbbell reno-30-5 3 window=5
    dumbbell reno-30-10-1ms 3 delay=1ms
    dumbbell reno-30-10-100ms 3 delay=100ms
} > "$here/dumbbell.txt"
{
    echo "# name seed drops drops_after_warm sent sent_again delivered.."
    for buffer in 20 100 150; do
        dumbbell "buffer-$buffer" 16 flows=4 window=50 rate=1Mb access_delay=5ms buffer=$buffer seconds=120 warm=0 wire=1000
    done
} > "$here/four_flows.txt"
{
    echo "# seed acknowledged of 2 long, 2 medium, 4 short; drops at the 4 links"
    for seed in $(seeds 8); do ns "$here/parking_lot.tcl" seed="$seed"; done
} > "$here/parking_lot.txt"
{
    echo "# name seed passed dropped constant-rate.. tcp.."
    for tcp in 0 16; do
        for gap in 0 200 1000 2000 5000; do
            for seed in $(seeds 6); do
                ns "$here/packet_spacing.tcl" name=gap-$gap-tcp-$tcp gap=$gap tcp=$tcp seed="$seed"
            done
        done
    done
    for seed in $(seeds 3); do
        ns "$here/packet_spacing.tcl" name=periodic-1000-tcp-0 gap=1000 random=0 seed="$seed"
    done
} > "$here/packet_spacing.txt"
{
    echo "# variant way loss seed seconds sent sent_again timeouts drops"
    for variant in tahoe reno newreno; do
        for loss in 0.05 0.2 0.5; do
            for seed in $(seeds 40); do ns "$here/on_off.tcl" variant=$variant loss=$loss seed="$seed"; done
        done
        ns "$here/on_off.tcl" variant=$variant loss=0
    done
    for loss in 0.2 0.5; do
        for seed in $(seeds 40); do ns "$here/on_off.tcl" variant=reno way=back loss=$loss seed="$seed"; done
    done
} > "$here/on_off.txt"
# Three loss events, found by later packets; 264 and 270 are of the cluster of 260.
ns "$here/rap.tcl" drops=150+260+264+270+400 seconds=12 > "$here/rap.txt"
{
    echo "# name seed packets_per_second"
    for law in rap tfrc; do
        for loss in 0.001 0.003 0.01 0.03 0.1 0.2; do
            for seed in $(seeds 4); do
                ns "$here/random_loss.tcl" name=$law-$loss law=$law loss=$loss seed="$seed"
            done
        done
    done
} > "$here/random_loss.txt"
{
    echo "# name seed tcp_bps others_bps drops"
    for seed in $(seeds 16); do
        ns "$here/peers.tcl" name=rap-400 law=rap seed="$seed"
        ns "$here/peers.tcl" name=rap-50 law=rap buffer=50 seed="$seed"
        # Four round trips, as RFC 5348 has t_RTO: the queue holds 3 s, or 0.37 s.
        ns "$here/peers.tcl" name=tfrc-400 law=tfrc timeout=12 seed="$seed"
        ns "$here/peers.tcl" name=tfrc-50 law=tfrc timeout=1.7 buffer=50 seed="$seed"
    done
} > "$here/peers.txt"
