// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the arithmetic of TCP Libra in user space: events on the standard input, the state behind
 * each on the standard output. libra.rs writes and reads it.
 */
#include <stdio.h>

#include "libra.h"

int main(void)
{
	struct libra_parameters of = {};
	struct libra_flow flow = {};
	struct libra_capacity capacity;
	u64 window_q32, now, rtt, number;
	u32 packets, wire;
	int may_be_timer;
	char event;

	if (scanf("%llu %llu %llu %u %u %u %u %llu", &of.x_q16, &of.capacity_kbps, &of.memory_us,
		  &of.a_us, &of.b_us, &of.y_q16, &of.pairs, &window_q32) != 8)
		return 1;
	flow.configured_kbps = of.capacity_kbps;
	flow.covered_q8 = 1 << 8;
	flow.place_q16 = 1 << 15;
	while (scanf(" %c", &event) == 1) {
		switch (event) {
		/* An ACK: its time, round trip, packets and their size on the wire. */
		case 'a':
			if (scanf("%llu %llu %u %u", &now, &rtt, &packets, &wire) != 4)
				return 1;
			libra_on_rtt(&flow, &of, now, rtt);
			may_be_timer = libra_on_covered(&flow, packets);
			libra_on_pair(&flow, now, packets, wire, may_be_timer);
			window_q32 = libra_raised_q32(window_q32, libra_growth_q32(&flow, &of), packets);
			break;
		/* A delivery sample: packets, their size and the time. */
		case 'd':
			if (scanf("%u %u %llu", &packets, &wire, &now) != 3)
				return 1;
			libra_on_delivered(&flow, packets, wire, now);
			break;
		case 'l':
			window_q32 = libra_reduced_q32(&flow, &of, window_q32);
			break;
		/* e^−x, with x times 2^16. */
		case 'e':
			if (scanf("%llu", &number) != 1)
				return 1;
			printf("%llu\n", exp_minus_q32(number));
			continue;
		/* The pacing rate from a mean and a random number. */
		case 'p':
			if (scanf("%llu %u", &number, &packets) != 2)
				return 1;
			printf("%llu\n", libra_pacing(&flow, number, packets));
			continue;
		default:
			return 1;
		}
		capacity = libra_capacity(&flow);
		printf("%llu %llu %u %u %u\n", window_q32, capacity.kbps, capacity.is_exact,
		       flow.beta_q16, libra_group(&flow, window_q32 >> 32));
	}
	return 0;
}
