"""TCP-Real: C. Zhang and V. Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over
Heterogeneous Networks", NOSSDAV 2001.

Packets are lost in both directions where the paper does not say "reverse": section 4.1 calls table 2
the case in which the virtual protocol is "only configured in the reverse direction", and its rates
are 1 - (1 - p)^2 of those of table 1, the loss of a round trip. What the paper leaves open is
crossed, and each reading is judged: losses both ways at once (one state of both directions, as one
virtual protocol has), both ways apart (a state of each) or forward alone; an ACK for every segment,
or delayed ACKs (2 segments, 200 ms); the timers of ns-2 in 2000, or BSD's (500 ms, 1 s), which the
full form adds; the receive window at 15 ms, since 8 segments carry what the paper's transfers have
without losses. docs/results/tcp-real-search.md says which reading is nearest to each table.

Goodput is that of whole transfers. A transfer that did not end within its run of 5,000 s or 20,000
s counts as 0.
"""
