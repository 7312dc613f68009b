/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of TCP Libra in fixed point: the window law of figure 2, equations 1 and 2, the
 * memory of the extremes, and the capacity from packet pairs.
 *
 * A suffix _qN is a number times 2^N.
 * tests/arithmetic compiles this file for user space and compares it with the simulator's Libra.
 *
 * Source: Marfia, Palazzi, Pau, Gerla, Sanadidi and Roccetti, Mobimedia 2007, sections 3 and 4.
 */
#ifndef COMITY_LIBRA_H
#define COMITY_LIBRA_H

#include "fixed.h"

#define SECOND_US 1000000ULL
/* Longer round trips count as this one, which keeps every product below 2^64. */
#define MAX_RTT_US (120 * SECOND_US)
/* An ACK of more packets follows lost ACKs; it does not show how many are acknowledged at once. */
#define MAX_COVERED 8
/* The shortest timer of delayed ACKs; Linux has 40 ms. */
#define MIN_TIMER_US 20000
/* After this many pairs the mean dispersion is exponentially weighted. */
#define MAX_AVERAGED 64
/* With fewer pairs, all may have other packets between them. */
#define MIN_PAIRS 4
/* After this many packets the mean of all dispersions is exponentially weighted. */
#define MAX_IN_MEAN (1 << 24)
/* Pairs are believed up to this multiple of the flow's own rate: ACKs of 40 bytes for packets of
 * 1500, compressed on a reverse path of the same rate, show 37.5 times the capacity. */
#define MAX_MULTIPLE 24

/* The parameters, as the loader writes them (src/libra/parameters.rs has the same layout). */
struct libra_parameters {
	/* X in segments per second for each Mb/s. */
	u64 x_q16;
	/* C for destinations without their own; 0 to estimate it. */
	u64 capacity_kbps;
	/* Round trips and pairs expire after one to two of these times; 0 for never. */
	u64 memory_us;
	u32 a_us;
	u32 b_us;
	u32 y_q16;
	/* Whether packets leave in pairs at random times. */
	u32 pairs;
};

struct libra_extremes {
	/* 0 where no round trip was measured. */
	u32 min_us;
	u32 max_us;
};

/* The pairs with the smallest sum of round trips. */
struct libra_pair {
	u64 sum_us;
	/* The mean time of one packet at the bottleneck; 0 where no pair was measured. */
	u64 packet_ns;
	u32 pairs;
	/* The size of a packet on the wire. */
	u32 wire;
};

/* The times between ACKs of packets that the kernel sent as one. */
struct libra_mean {
	u64 apart_us;
	/* The packets in these times. */
	u32 packets;
	/* At most MIN_PAIRS. */
	u32 pairs;
};

/* What a window of `memory_us` saw. */
struct libra_seen {
	struct libra_extremes rtt;
	struct libra_pair best;
	struct libra_mean mean;
	/* The maximum of the kernel's delivery samples. */
	u64 delivered_kbps;
};

/* The state of a flow beside the kernel's own: window and threshold are the kernel's. */
struct libra_flow {
	struct libra_seen current;
	struct libra_seen before;
	u64 began_us;
	/* C of the destination; 0 to estimate it. */
	u64 configured_kbps;
	/* The last ACK with a round trip, and the departure of the packet that it acknowledges. */
	u64 acked_us;
	u64 sent_us;
	/* The window before the last reduction, in segments. */
	u64 reduced_q32;
	/* The last α, in segments per second, and β. */
	u64 alpha_q16;
	u32 beta_q16;
	/* The last round trip; 0 before the first. */
	u32 rtt_us;
	/* The fraction of a segment that the kernel's window does not hold. */
	u32 fraction_q32;
	/* The numbers of packets that the last eight ACKs covered, one in each byte. */
	u64 recent_covered;
	/* The mean number of packets that an ACK covers. */
	u32 covered_q8;
	/* Where the last group left in its interval. */
	u32 place_q16;
};

struct libra_capacity {
	/* 0 where none is known. */
	u64 kbps;
	/* Whether it is configured or known by pairs; otherwise it is the flow's own rate. */
	u32 is_exact;
};

/* e^−x in Q32 for x < 2^11, by 2^−x·log2(e) and eight terms of the series of e^−z, z < ln 2. */
INLINE u64 exp_minus_q32(u64 x_q16)
{
	const u64 log2e_q30 = 1549082005, ln2_q32 = 2977044472, one_q30 = 1 << 30;
	u64 power_q32 = (x_q16 * log2e_q30) >> 14;
	u64 halvings = power_q32 >> 32;
	u64 z = mul_shift(power_q32 & 0xffffffff, ln2_q32, 34);
	u64 sum = one_q30;

	if (halvings >= 32)
		return 0;
#define LIBRA_TERM(n) sum = one_q30 - ((z * sum) >> 30) / n
	LIBRA_TERM(8);
	LIBRA_TERM(7);
	LIBRA_TERM(6);
	LIBRA_TERM(5);
	LIBRA_TERM(4);
	LIBRA_TERM(3);
	LIBRA_TERM(2);
	LIBRA_TERM(1);
#undef LIBRA_TERM
	return (sum << 2) >> halvings;
}

INLINE u32 lesser_known(u32 a, u32 b)
{
	return !a || (b && b < a) ? b : a;
}

/* Begins a new window if the current one has lasted longer than the memory. */
INLINE void libra_turn(struct libra_flow *flow, const struct libra_parameters *of, u64 now_us)
{
	const struct libra_seen nothing = {};
	u64 age = now_us - flow->began_us;

	if (!of->memory_us || age <= of->memory_us)
		return;
	if (age > 2 * of->memory_us)
		flow->before = nothing;
	else
		flow->before = flow->current;
	flow->current = nothing;
	flow->began_us = now_us;
}

INLINE struct libra_extremes libra_range(const struct libra_flow *flow)
{
	struct libra_extremes now = flow->current.rtt, before = flow->before.rtt;
	struct libra_extremes both = {
		.min_us = lesser_known(now.min_us, before.min_us),
		.max_us = now.max_us > before.max_us ? now.max_us : before.max_us,
	};
	return both;
}

/* β = (RTT − RTT_min) / (RTT_max − RTT_min); 0 where RTT_max = RTT_min (2) */
INLINE u32 libra_beta_q16(const struct libra_flow *flow)
{
	struct libra_extremes range = libra_range(flow);

	if (!range.min_us || range.max_us <= range.min_us || flow->rtt_us <= range.min_us)
		return 0;
	return ((u64)(flow->rtt_us - range.min_us) << 16) / (range.max_us - range.min_us);
}

/* Takes a round trip. */
INLINE void libra_on_rtt(struct libra_flow *flow, const struct libra_parameters *of, u64 now_us,
			 u64 rtt_us)
{
	struct libra_extremes *seen = &flow->current.rtt;
	u32 rtt = rtt_us > MAX_RTT_US ? MAX_RTT_US : rtt_us < 1 ? 1 : rtt_us;

	libra_turn(flow, of, now_us);
	flow->rtt_us = rtt;
	seen->min_us = lesser_known(seen->min_us, rtt);
	if (rtt > seen->max_us)
		seen->max_us = rtt;
	flow->beta_q16 = libra_beta_q16(flow);
}

INLINE void libra_on_dispersion(struct libra_mean *mean, u64 apart_us, u32 packets)
{
	if (mean->packets >= MAX_IN_MEAN) {
		mean->apart_us /= 2;
		mean->packets /= 2;
	}
	mean->apart_us += apart_us;
	mean->packets += packets;
	mean->pairs += mean->pairs < MIN_PAIRS;
}

/*
 * Takes the ACK of `packets` packets. If the last of them left together with the last one of the
 * ACK before, both ACKs are `packets` times the bottleneck's time for a packet apart.
 *
 * Other traffic makes a pair longer or shorter, but delays one of its packets. So the pair with the
 * smallest sum of round trips counts, as in CapProbe (SIGCOMM 2004); sums that differ by less than
 * a sixteenth of the dispersion count as equal, and their dispersions are averaged.
 *
 * An ACK that the receiver's timer may have sent is late by up to that timer, so it makes no pair if
 * it is that far behind the ACK before.
 *
 * All packets of one buffer of the kernel have the same departure. Their ACKs count in the mean.
 */
INLINE void libra_on_pair(struct libra_flow *flow, u64 now_us, u32 packets, u32 wire,
			  int may_be_timer)
{
	struct libra_pair *best = &flow->current.best;
	u64 sent_us = now_us - flow->rtt_us;
	u64 apart_us = now_us - flow->acked_us;
	u64 left_us = sent_us > flow->sent_us ? sent_us - flow->sent_us : flow->sent_us - sent_us;
	u64 sum_us = flow->rtt_us + (flow->acked_us - flow->sent_us);
	u64 packet_ns, tolerance_us;
	int is_pair = flow->acked_us && left_us * 2 <= apart_us && packets &&
		      packets <= MAX_COVERED && !(may_be_timer && apart_us >= MIN_TIMER_US);

	flow->acked_us = now_us;
	flow->sent_us = sent_us;
	if (is_pair && !left_us)
		libra_on_dispersion(&flow->current.mean, apart_us, packets);
	if (!is_pair || !apart_us)
		return;
	packet_ns = apart_us * 1000 / packets;
	tolerance_us = apart_us / 16;
	if (best->packet_ns && sum_us > best->sum_us + tolerance_us)
		return;
	if (!best->packet_ns || sum_us + tolerance_us < best->sum_us || wire != best->wire) {
		best->sum_us = sum_us;
		best->packet_ns = packet_ns;
		best->pairs = 1;
		best->wire = wire;
		return;
	}
	if (sum_us < best->sum_us)
		best->sum_us = sum_us;
	if (best->pairs < MAX_AVERAGED)
		best->pairs++;
	if (packet_ns > best->packet_ns)
		best->packet_ns += (packet_ns - best->packet_ns) / best->pairs;
	else
		best->packet_ns -= (best->packet_ns - packet_ns) / best->pairs;
}

/*
 * Averages over eight ACKs how many packets one covers. Returns whether the timer of delayed ACKs
 * may have sent this one: it covers fewer packets than one of the last eight.
 */
INLINE int libra_on_covered(struct libra_flow *flow, u32 packets)
{
	u32 covered = packets < MAX_COVERED ? packets : MAX_COVERED;
	u64 recent = flow->recent_covered;
	int is_fewer = 0;

	flow->covered_q8 += (covered << 5) - (flow->covered_q8 >> 3);
	flow->recent_covered = recent << 8 | covered;
	for (int ack = 0; ack < 8; ack++)
		is_fewer |= covered < ((recent >> 8 * ack) & 0xff);
	return is_fewer;
}

/* Takes a delivery sample of the kernel: packets that arrived within a time. */
INLINE void libra_on_delivered(struct libra_flow *flow, u32 packets, u32 wire, u32 interval_us)
{
	u64 kbps;

	if (!interval_us)
		return;
	kbps = (u64)packets * wire * 8000 / interval_us;
	if (kbps > flow->current.delivered_kbps)
		flow->current.delivered_kbps = kbps;
}

/* The mean of both windows. */
INLINE struct libra_mean libra_mean(const struct libra_flow *flow)
{
	struct libra_mean mean = flow->current.mean, before = flow->before.mean;

	mean.apart_us += before.apart_us;
	mean.packets += before.packets;
	mean.pairs += before.pairs;
	return mean;
}

/* The pairs with the smallest sum of round trips of both windows. */
INLINE struct libra_pair libra_best(const struct libra_flow *flow)
{
	struct libra_pair now = flow->current.best, before = flow->before.best;

	return !now.packet_ns || (before.packet_ns && before.sum_us < now.sum_us) ? before : now;
}

INLINE u64 libra_delivered_kbps(const struct libra_flow *flow)
{
	u64 now = flow->current.delivered_kbps, before = flow->before.delivered_kbps;

	return now > before ? now : before;
}

/*
 * Whether the mean m of all dispersions allows the time T of the pairs, as in the simulator:
 *
 *   7/8 · T ≤ m ≤ 2 · T   from at least 4 pairs
 *
 * Behind a FIFO link, other traffic adds to the dispersion of some pairs and shortens none. Links
 * that deliver in time slots fail, and so do flows whose pairs never stay together.
 */
INLINE int libra_agrees(const struct libra_mean *mean, u64 packet_ns)
{
	u64 mean_ns = mean->apart_us * 1000, expected_ns = packet_ns * mean->packets;

	return mean->pairs >= MIN_PAIRS && 8 * mean_ns >= 7 * expected_ns &&
	       mean_ns <= 2 * expected_ns;
}

/*
 * C: configured; or that of the pairs, if their mean and the flow's own rate confirm it; or the
 * highest delivery rate, which is a lower bound. The delivery rate also corrects pairs that other
 * traffic made too long.
 */
INLINE struct libra_capacity libra_capacity(const struct libra_flow *flow)
{
	struct libra_capacity capacity = { .kbps = flow->configured_kbps, .is_exact = 1 };
	struct libra_pair best = libra_best(flow);
	struct libra_mean mean = libra_mean(flow);
	u64 delivered = libra_delivered_kbps(flow), of_pairs = 0;

	if (capacity.kbps)
		return capacity;
	if (best.packet_ns && libra_agrees(&mean, best.packet_ns))
		of_pairs = (u64)best.wire * 8 * SECOND_US / best.packet_ns;
	capacity.is_exact = of_pairs && of_pairs <= MAX_MULTIPLE * delivered;
	capacity.kbps = capacity.is_exact && of_pairs > delivered ? of_pairs : delivered;
	return capacity;
}

/* The C of the growth. While C is not known, this is the rate of the mean dispersion. */
INLINE u64 libra_growth_kbps(const struct libra_flow *flow, struct libra_capacity capacity)
{
	struct libra_mean mean = libra_mean(flow);
	u64 of_mean;

	if (capacity.is_exact || !mean.apart_us)
		return capacity.kbps;
	of_mean = (u64)libra_best(flow).wire * 8 * mean.packets * 1000 / mean.apart_us;
	return of_mean > capacity.kbps ? of_mean : capacity.kbps;
}

/*
 * The growth of the window in a round trip, in segments, where C and a round trip are known:
 *
 *   α · RTT² / (RTT + A),   α = X · C · e^(−Y · β)                                           (1)
 *
 * Without C the window grows as TCP's, and no faster while C is not known.
 */
INLINE u64 libra_growth_q32(struct libra_flow *flow, const struct libra_parameters *of)
{
	struct libra_capacity capacity = libra_capacity(flow);
	u64 kbps = libra_growth_kbps(flow, capacity);
	u64 rtt_us = flow->rtt_us, whole_us = rtt_us + of->a_us;
	u64 damping_q32 = exp_minus_q32(((u64)of->y_q16 * flow->beta_q16) >> 16);
	u64 slope_q16 = of->x_q16 * kbps / 1000;
	u64 seconds_q42, growth_q32;

	if (!kbps || !whole_us)
		return ONE_Q32;
	flow->alpha_q16 = mul_shift(slope_q16, damping_q32, 32);
	/* As precise as 64 bits allow: a round trip below a second is squared with 22 more bits. */
	if (rtt_us < 1 << 20)
		seconds_q42 = ((((rtt_us * rtt_us) << 22) / whole_us) << 20) / SECOND_US;
	else
		seconds_q42 = (((((rtt_us * rtt_us) << 8) / whole_us) << 20) / SECOND_US) << 14;
	growth_q32 = mul_shift(flow->alpha_q16, seconds_q42, 26);
	return !capacity.is_exact && growth_q32 > ONE_Q32 ? ONE_Q32 : growth_q32;
}

/* window += growth / window for each acknowledged segment, and at most one segment for each. */
INLINE u64 libra_raised_q32(u64 window_q32, u64 growth_q32, u32 acked)
{
	u64 step_q32;

	if (growth_q32 >= window_q32)
		step_q32 = ONE_Q32;
	else if (window_q32 >> 52)
		step_q32 = growth_q32 / (window_q32 >> 32);
	else
		step_q32 = (growth_q32 << 12) / (window_q32 >> 20);
	return window_q32 + step_q32 * acked;
}

/* window −= window · B / (2 · (RTT + A)), at least two segments. */
INLINE u64 libra_reduced_q32(const struct libra_flow *flow, const struct libra_parameters *of,
			     u64 window_q32)
{
	u64 whole_us = (u64)flow->rtt_us + of->a_us, lost_q32, left_q32;

	if (!whole_us)
		return 2 * ONE_Q32;
	lost_q32 = ((u64)of->b_us << 31) / whole_us;
	left_q32 = lost_q32 < ONE_Q32 ? mul_shift(window_q32, ONE_Q32 - lost_q32, 32) : 0;
	return left_q32 < 2 * ONE_Q32 ? 2 * ONE_Q32 : left_q32;
}

/* The packets of a group: a pair, or one more than an ACK covers while pairs give the capacity. */
INLINE u32 libra_group(const struct libra_flow *flow, u32 window)
{
	u32 wanted = flow->configured_kbps ? 2 : 1 + ((flow->covered_q8 + 128) >> 8);

	if (wanted > window / 2)
		wanted = window / 2;
	return wanted < 2 ? 2 : wanted;
}

/*
 * The pacing rate until the next group, in bytes per second.
 *
 * Each group leaves at a random place in the middle half of its interval, so consecutive groups are
 * 1 + (next − last) / 2 intervals apart, on average one.
 */
INLINE u64 libra_pacing(struct libra_flow *flow, u64 mean, u32 random)
{
	u32 place_q16 = random & 0xffff;
	u64 gap_q17 = (1 << 17) + place_q16 - flow->place_q16;

	flow->place_q16 = place_q16;
	if (mean >> 46)
		return mean;
	return (mean << 17) / gap_q17;
}

#endif
