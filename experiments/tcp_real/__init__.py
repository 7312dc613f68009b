"""TCP-Real: C. Zhang and V. Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over
Heterogeneous Networks", NOSSDAV 2001.

All checks are judged for two queues at the sender's interface, which the paper does not name: 50
packets, as BSD had, and 10 packets, which fit the loss-free rows of Reno and Tahoe best. One flow
is alone on its link, so no other flow's phase decides which packets it loses. With one-way delays
of 17 and 51 ms instead of 15 and 50 ms each verdict of the quick form is the same.

Goodput is that of whole transfers. A transfer that did not end within its run of 5,000 s or 20,000
s counts as 0.
"""
