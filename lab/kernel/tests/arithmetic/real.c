// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the arithmetic of TCP-Real in user space: events on the standard input, answers on the
 * standard output. real.rs writes and reads them.
 */
#include <stdio.h>

#include "real.h"

#define MSS 1000

int main(void)
{
	struct real_parameters of = {};
	struct real_meter meter = {};
	struct real_sender sender;
	struct real_wave wave;
	unsigned int number, segments, position, count, window, ends;
	u64 now;
	char event;

	if (scanf("%u %u %u %u %u %u %u %u %u", &of.max_level, &of.threshold_share_q16, &of.opening,
		  &of.fractions, &of.compare_with_timeouts, &of.level_of_wave, &of.fixed_waves,
		  &of.always_reduce, &of.text_weights) != 9)
		return 1;
	sender = real_sender_of(&of);
	while (scanf(" %c", &event) == 1) {
		switch (event) {
		/* An arrival: its time, its option, and the segments that were merged. */
		case 'a':
			if (scanf("%llu %u %u %u %u", &now, &number, &segments, &position, &count) != 5)
				return 1;
			wave.number = number;
			wave.segments = segments;
			wave.position = position;
			real_on_arrival(&meter, &of, now, wave, count);
			printf("%llu %llu %u\n", meter.now.level_q32, meter.now.threshold_q32,
			       real_report(&meter));
			break;
		/* A departure: the window, the segments of the packet, and whether nothing follows. */
		case 't':
			if (scanf("%u %u %u", &window, &count, &ends) != 3)
				return 1;
			wave = real_tag(&sender, &of, window, count, ends);
			printf("%u %u %u\n", wave.number, wave.segments, wave.position);
			break;
		/* The first ACK, and the window so far. */
		case 'b':
			if (scanf("%u", &window) != 1)
				return 1;
			real_begin(&sender, &of, window, MSS);
			printf("%u\n", real_window(&sender, MSS));
			break;
		/* An ACK while the window limits the flow: the bytes. */
		case 'g':
			if (scanf("%u", &number) != 1)
				return 1;
			real_on_growth(&sender, &of, number, MSS);
			printf("%u\n", real_window(&sender, MSS));
			break;
		/* A loss. */
		case 'l':
			real_end_opening(&sender, &of, MSS);
			printf("%u\n", real_window(&sender, MSS));
			break;
		/* A report of a level. */
		case 'r':
			if (scanf("%u", &number) != 1)
				return 1;
			real_on_report(&sender, &of, number);
			printf("%u\n", real_window(&sender, MSS));
			break;
		/* A timeout, and whether a duplicate acknowledgement came before it. */
		case 'x':
			if (scanf("%u", &number) != 1)
				return 1;
			sender.is_duplicate_seen = number;
			real_on_timeout(&sender, &of, MSS);
			printf("%u\n", real_window(&sender, MSS));
			break;
		/* The options of a header: how many bytes, and the bytes. */
		case 'o': {
			struct real_reading reading = {};
			struct real_options *found = &reading.found;

			if (scanf("%u", &count) != 1 || count > REAL_MAX_OPTION_BYTES)
				return 1;
			for (unsigned int at = 0; at < count; at++) {
				if (scanf("%u", &number) != 1)
					return 1;
				reading.bytes[at] = number;
			}
			for (unsigned int at = 0; at < REAL_MAX_OPTION_BYTES; at++)
				if (real_read_option(at, &reading))
					break;
			printf("%u %u %u %u %u %u\n", found->is_malformed, found->level,
			       found->has_wave, found->wave.number, found->wave.segments,
			       found->wave.position);
			break;
		}
		default:
			return 1;
		}
	}
	return 0;
}
