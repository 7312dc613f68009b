"""Time-lined TCP: B. Mukherjee and T. Brecht, "Time-lined TCP for the TCP-friendly Delivery of
Streaming Media", ICNP 2000.

F is the friendliness ratio of section 6.2: the mean throughput of the TLTCP flows over that of the
TCP flows. S is the separation index: the largest throughput over the least. F_worst and F_best are
such ratios of two halves of all flows.
"""
