#!/bin/sh
# The kernel's settings for packet scripts: ./setup.sh [KEY=VALUE ...], with keys of net.ipv4.
set -e
# One packet for each segment, as scripts show them.
ip link set dev tun0 gso_max_segs 1
# The receive buffer of the host, and with it the window scale.
set -- "tcp_rmem=4096 131072 6291456" tcp_congestion_control=reno "$@"
for setting; do
    echo "${setting#*=}" > "/proc/sys/net/ipv4/${setting%%=*}"
done
