/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TCP-Real in fixed point: the options of both halves, the waves of the sender, and the receiver's
 * meter with figure 1 and the wave-decision timer.
 *
 * A suffix _qN is a number times 2^N. tests/arithmetic compiles this file for user space and
 * compares it with the simulator's TCP-Real.
 *
 * Source: Zhang and Tsaoussidis, NOSSDAV 2001, sections 2 and 3 and figure 1.
 */
#ifndef COMITY_REAL_H
#define COMITY_REAL_H

#include "fixed.h"

/* The experimental kind of both options, which differ in length. */
#define REAL_KIND 254
#define REAL_LEVEL_BYTES 4
#define REAL_WAVE_BYTES 8
#define REAL_MAX_OPTION_BYTES 40
/* The option that pads. */
#define REAL_PADDING 1
/* No level is higher; a wave of so many segments has a number of 16 bits. */
#define REAL_MAX_LEVEL 10000
/* Longer waves count as this one (18 minutes), which keeps every product below 2^64. */
#define REAL_MAX_WAVE_NS (1ULL << 40)
/* The most waves that losses can skip. A larger step means a new path. */
#define REAL_MAX_SKIPPED 8192
/* After this many acknowledged waves without a level, the peer has no other half. */
#define REAL_MAX_UNANSWERED 3

enum {
	REAL_OPENING_SLOW_START,
	REAL_OPENING_FIGURE,
	REAL_OPENING_JUMP,
	REAL_OPENING_SENDER,
};

enum {
	REAL_FRACTIONS_KEPT,
	REAL_FRACTIONS_NEAREST,
	REAL_FRACTIONS_UP,
	REAL_FRACTIONS_DOWN,
};

/* The parameters, as the loader writes them (src/real/parameters.rs has the same layout). */
struct real_parameters {
	u32 max_level;
	/* The first threshold as a share of the highest level. */
	u32 threshold_share_q16;
	u32 opening;
	u32 fractions;
	u32 compare_with_timeouts;
	u32 level_of_wave;
	u32 fixed_waves;
	/* Whether every timeout reduces the window. */
	u32 always_reduce;
	/* Whether the weights are those of the text of section 2.2, figure 1's exchanged. */
	u32 text_weights;
};

/* The wave option of a segment. */
struct real_wave {
	u16 number;
	u16 segments;
	u16 position;
};

/* Both options of a segment. */
struct real_options {
	struct real_wave wave;
	/* 0 where the segment has none. */
	u16 level;
	u8 has_wave;
	u8 is_malformed;
};

/* What a measured wave changes. */
struct real_decision {
	/* The level; 0 before the first measured wave. */
	u64 level_q32;
	u64 threshold_q32;
	/* The last rate: segments in a time; no segments before the first. */
	u64 rate_ns;
	u32 rate_segments;
	u32 is_opening;
};

/* The receiver's half. */
struct real_meter {
	struct real_decision now;
	/* The decision before the last wave, which ends again if its last packet goes on. */
	struct real_decision before;
	/* The wave that is being collected, or the last one. */
	u64 first_ns;
	u32 segments;
	/* How many segments arrived together with its first one: they took no time. */
	u32 together;
	u16 number;
	/* The newest wave with an arrival. */
	u16 newest;
	u8 has_begun;
	u8 has_wave;
	u8 is_measured;
	/* Whether the wave ended with its last position, not with the timer or with another wave. */
	u8 is_whole;
};

/* The sender's half. */
struct real_sender {
	/* The window of the sender's own Slow Start in bytes; 0 before the first ACK. */
	u32 opening_bytes;
	/* The level of the window; 0 before the first ACK. */
	u16 level;
	u16 wave;
	u16 segments;
	/* How many segments of the wave were sent. */
	u16 position;
	/* The end of a whole wave that the peer must answer with a level, in sequence numbers. */
	u32 awaited;
	u8 is_awaiting;
	u8 unanswered;
	/* Whether a level arrived, ever and since the last timeout. */
	u8 has_peer;
	u8 is_reported;
	/* Whether a duplicate acknowledgement arrived since the last advance or timeout. */
	u8 is_duplicate_seen;
	/* Whether the sender's own Slow Start lasts: levels arrive, and the window does not obey yet. */
	u8 is_opening;
};

INLINE u16 real_be16(const u8 *at)
{
	return (at[0] << 8) | at[1];
}

/* Takes one option of kind 254; `length` bytes begin at `at`. */
INLINE void real_take_option(struct real_options *found, const u8 *at, u32 length)
{
	if (length == REAL_LEVEL_BYTES) {
		u16 level = real_be16(at + 2);

		found->is_malformed |= found->level || !level;
		found->level = level;
	} else if (length == REAL_WAVE_BYTES) {
		found->is_malformed |= found->has_wave;
		found->wave.number = real_be16(at + 2);
		found->wave.segments = real_be16(at + 4);
		found->wave.position = real_be16(at + 6);
		found->is_malformed |= !found->wave.position ||
				       found->wave.position > found->wave.segments;
		found->has_wave = 1;
	} else {
		found->is_malformed = 1;
	}
}

/* The options of a segment, and how far they are read. */
struct real_reading {
	/* Zeros behind the options end them; one more of Real's fits, so its reads need no bounds. */
	u8 bytes[64];
	u32 at;
	struct real_options found;
};

/* Reads the next option; not 0 behind the last. At most REAL_MAX_OPTION_BYTES calls read all. */
static long real_read_option(u64 index, void *context)
{
	struct real_reading *reading = context;
	u32 at = reading->at;
	u8 *option, length;

	(void)index;
	if (at > REAL_MAX_OPTION_BYTES - 2)
		return 1;
	option = &reading->bytes[at];
	length = option[1];
	if (option[0] == REAL_PADDING) {
		reading->at++;
		return 0;
	}
	if (!option[0])
		return 1;
	if (length < 2 || at + length > REAL_MAX_OPTION_BYTES) {
		reading->found.is_malformed |= option[0] == REAL_KIND;
		return 1;
	}
	if (option[0] == REAL_KIND)
		real_take_option(&reading->found, option, length);
	reading->at += length;
	return 0;
}

INLINE u64 real_first_threshold_q32(const struct real_parameters *of)
{
	return ((u64)of->max_level * of->threshold_share_q16) << 16;
}

/*
 * Figure 1: the factor on the level when the rate has changed by the factor `ratio`, with the
 * weights of its first case (above the threshold) or of its second one.
 */
INLINE u64 real_factor_q20(u64 ratio_q20, int is_first)
{
	u64 preserve_q20, adjust_q20;

	if (ratio_q20 < 1 << 20) {
		preserve_q20 = is_first ? 648020 : 400556;
		adjust_q20 = is_first ? 400556 : 648020;
	} else {
		preserve_q20 = is_first ? 400556 : 524288;
		adjust_q20 = is_first ? 648020 : 524288;
	}
	return preserve_q20 + ((adjust_q20 * ratio_q20) >> 20);
}

/* The rate of a wave over that of the wave before, at most 2^16, which gives every level. */
INLINE u64 real_ratio_q20(const struct real_meter *meter, u64 segments, u64 took_ns)
{
	u64 above = segments * meter->now.rate_ns;
	u64 below = meter->now.rate_segments * took_ns;
	u64 whole, rest;

	if (!below)
		return 1ULL << 36;
	whole = above / below;
	rest = above % below;
	if (whole >> 16)
		return 1ULL << 36;
	if (below >> 44) {
		below >>= 12;
		rest >>= 12;
	}
	return (whole << 20) + (rest << 20) / below;
}

INLINE u64 real_rounded_q32(const struct real_parameters *of, u64 level_q32)
{
	const u64 whole = ~(ONE_Q32 - 1);
	u64 highest_q32 = (u64)of->max_level << 32;

	if (level_q32 > highest_q32)
		return highest_q32;
	if (of->fractions == REAL_FRACTIONS_NEAREST)
		level_q32 = (level_q32 + ONE_Q32 / 2) & whole;
	else if (of->fractions == REAL_FRACTIONS_UP)
		level_q32 = (level_q32 + ONE_Q32 - 1) & whole;
	else if (of->fractions == REAL_FRACTIONS_DOWN)
		level_q32 &= whole;
	return level_q32 < ONE_Q32 ? ONE_Q32 : level_q32;
}

/* Ends the collected wave with an arrival. */
INLINE void real_measure(struct real_meter *meter, const struct real_parameters *of, u64 now_ns,
			 int is_expired)
{
	struct real_decision *now = &meter->now;
	u64 of_wave_q32 = (u64)meter->segments << 31;
	u64 level_q32 = now->level_q32 && !of->level_of_wave ? now->level_q32 : of_wave_q32;
	u64 took_ns = now_ns - meter->first_ns;
	u32 counted = meter->segments > meter->together ? meter->segments - meter->together : 0;
	int has_rate = took_ns && counted;
	u64 next_q32 = level_q32;

	if (took_ns > REAL_MAX_WAVE_NS)
		took_ns = REAL_MAX_WAVE_NS;
	meter->before = *now;
	meter->is_measured = 1;
	if (is_expired) {
		now->threshold_q32 = level_q32 / 2;
		now->is_opening = 0;
	}
	/* The sender's window grows with every wave while its Slow Start lasts. */
	if (of->opening == REAL_OPENING_SENDER && now->level_q32 && of_wave_q32 <= now->level_q32)
		now->is_opening = 0;
	if (now->is_opening && of->opening == REAL_OPENING_SENDER) {
		next_q32 = of_wave_q32;
	} else if (now->is_opening) {
		next_q32 = 2 * of_wave_q32;
		if (next_q32 > now->threshold_q32)
			next_q32 = now->threshold_q32;
		if (next_q32 < level_q32)
			next_q32 = level_q32;
		now->is_opening = next_q32 < now->threshold_q32;
	} else if (has_rate && now->rate_segments) {
		u64 ratio_q20 = real_ratio_q20(meter, counted, took_ns);
		int is_first = (level_q32 > now->threshold_q32) != !!of->text_weights;

		next_q32 = mul_shift(level_q32, real_factor_q20(ratio_q20, is_first), 20);
	} else if (!now->rate_segments && of->opening == REAL_OPENING_JUMP) {
		next_q32 = (u64)of->max_level << 32;
	}
	now->level_q32 = real_rounded_q32(of, next_q32);
	if (has_rate && (!is_expired || of->compare_with_timeouts)) {
		now->rate_segments = counted;
		now->rate_ns = took_ns;
	}
}

/* Whether the wave-decision timer has expired: twice the expected time of the wave has passed. */
INLINE int real_is_expired(const struct real_meter *meter, const struct real_decision *decision,
			   u64 now_ns)
{
	if (!decision->rate_segments)
		return 0;
	return now_ns - meter->first_ns >
	       2 * (u64)meter->segments * decision->rate_ns / decision->rate_segments;
}

/*
 * Takes the arrival of `count` segments with one option: the kernel merges segments with equal
 * options (GRO).
 *
 * A sender with segmentation offload (GSO) gives all segments of a packet the position of its last.
 * Merged again, they arrive at one time. Otherwise several segments have the last position of a
 * wave, and each ends the wave again.
 */
INLINE void real_on_arrival(struct real_meter *meter, const struct real_parameters *of, u64 now_ns,
			    struct real_wave wave, u32 count)
{
	int is_first, has_last = wave.position == wave.segments;
	short ahead;

	if (!meter->has_begun ||
	    (meter->has_wave && (short)(wave.number - meter->newest) > REAL_MAX_SKIPPED)) {
		const struct real_meter fresh = {
			.now = {
				.threshold_q32 = real_first_threshold_q32(of),
				.is_opening = of->opening == REAL_OPENING_SLOW_START ||
					      of->opening == REAL_OPENING_SENDER,
			},
			.has_begun = 1,
		};
		*meter = fresh;
	}
	ahead = meter->has_wave ? (short)(wave.number - meter->number) : 1;
	is_first = !meter->has_wave || (short)(wave.number - meter->newest) > 0;
	if (is_first)
		meter->newest = wave.number;
	if (meter->has_wave && !meter->is_measured) {
		int is_expired = real_is_expired(meter, &meter->now, now_ns);
		int is_last = !ahead && has_last;

		if (is_last || (!ahead && wave.segments > meter->segments))
			meter->segments = wave.segments;
		if (is_expired || is_last || (ahead > 1 && meter->now.rate_segments))
			real_measure(meter, of, now_ns, is_expired);
		meter->is_whole = is_last && !is_expired;
	} else if (meter->has_wave && meter->is_whole && !ahead && has_last && wave.segments > 1 &&
		   !real_is_expired(meter, &meter->before, now_ns)) {
		meter->now = meter->before;
		real_measure(meter, of, now_ns, 0);
	}
	/*
	 * Without a rate the timer never expires, so a wave whose last segment is lost would block
	 * the meter.
	 */
	if (is_first && (!meter->has_wave || meter->is_measured || !meter->now.rate_segments)) {
		meter->has_wave = 1;
		meter->number = wave.number;
		meter->segments = wave.segments;
		meter->together = count - 1;
		meter->first_ns = now_ns;
		/* A single segment has no duration. */
		meter->is_measured = has_last;
		meter->is_whole = has_last;
		meter->before = meter->now;
		if (has_last && count > 1)
			real_measure(meter, of, now_ns, 0);
	}
}

/* The level to report; 0 before the first measured wave. */
INLINE u16 real_report(const struct real_meter *meter)
{
	return (meter->now.level_q32 + ONE_Q32 / 2) >> 32;
}

/* The sender of a flow that has sent nothing yet. */
INLINE struct real_sender real_sender_of(const struct real_parameters *of)
{
	const struct real_sender fresh = { .is_opening = of->opening == REAL_OPENING_SENDER };

	return fresh;
}

/* The window of the sender, in segments. */
INLINE u32 real_window(const struct real_sender *sender, u32 mss)
{
	return sender->is_opening && mss ? sender->opening_bytes / mss : 2 * (u32)sender->level;
}

INLINE u16 real_clamped(const struct real_parameters *of, u32 level)
{
	return level < 1 ? 1 : level > of->max_level ? of->max_level : level;
}

INLINE void real_on_report(struct real_sender *sender, const struct real_parameters *of, u16 level)
{
	sender->level = real_clamped(of, level);
	sender->is_reported = 1;
	sender->has_peer = 1;
}

/* The first ACK: the window so far decides the level, if none was reported, and the Slow Start. */
INLINE void real_begin(struct real_sender *sender, const struct real_parameters *of, u32 window,
		       u32 mss)
{
	u16 level = real_clamped(of, window / 2);

	if (!sender->level)
		sender->level = level;
	if (!sender->opening_bytes)
		sender->opening_bytes = 2 * level * mss;
}

/* Ends the sender's own Slow Start. The window does not grow by that: a report may do so. */
INLINE void real_end_opening(struct real_sender *sender, const struct real_parameters *of, u32 mss)
{
	u16 level;

	if (!sender->is_opening)
		return;
	level = real_clamped(of, mss ? sender->opening_bytes / mss / 2 : 1);
	if (sender->level > level)
		sender->level = level;
	sender->is_opening = 0;
}

/* Takes that `bytes` were acknowledged while the window limited the flow. */
INLINE void real_on_growth(struct real_sender *sender, const struct real_parameters *of, u32 bytes,
			   u32 mss)
{
	u32 ends_at = ((u64)of->max_level * of->threshold_share_q16 * 2 + 0x8000) >> 16;

	if (!sender->is_opening)
		return;
	sender->opening_bytes += bytes;
	if (sender->opening_bytes >= (u64)ends_at * mss)
		real_end_opening(sender, of, mss);
}

/* A retransmission timeout. */
INLINE void real_on_timeout(struct real_sender *sender, const struct real_parameters *of, u32 mss)
{
	real_end_opening(sender, of, mss);
	if (of->always_reduce || !sender->is_duplicate_seen) {
		sender->level = 1;
		sender->is_reported = 0;
		/* The next segment begins a wave. */
		sender->position = sender->segments;
	}
	sender->is_duplicate_seen = 0;
}

/*
 * The option of a departing packet of `count` segments: the position of its last. `length` is the
 * window in segments; `ends` says that nothing follows this packet for now.
 */
INLINE struct real_wave real_tag(struct real_sender *sender, const struct real_parameters *of,
				 u32 length, u32 count, int ends)
{
	u32 segments = sender->segments, position = sender->position;
	struct real_wave wave;

	if (position >= segments) {
		sender->wave++;
		segments = length;
		position = 0;
	} else if (!of->fixed_waves && segments < length) {
		segments = length;
	}
	position += count;
	if (ends || segments < position)
		segments = position;
	sender->segments = segments < 0xffff ? segments : 0xffff;
	sender->position = position < 0xffff ? position : 0xffff;
	wave.number = sender->wave;
	wave.segments = sender->segments;
	wave.position = sender->position;
	return wave;
}

/* Takes that everything before `end` was acknowledged; the tag of that wave was its last. */
INLINE void real_on_acknowledged(struct real_sender *sender)
{
	sender->is_awaiting = 0;
	if (!sender->has_peer && sender->unanswered < REAL_MAX_UNANSWERED)
		sender->unanswered++;
}

/* Whether the peer acknowledged whole waves and reported no level. */
INLINE int real_is_alone(const struct real_sender *sender)
{
	return sender->unanswered >= REAL_MAX_UNANSWERED;
}

#endif
