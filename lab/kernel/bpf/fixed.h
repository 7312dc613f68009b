/* SPDX-License-Identifier: GPL-2.0-only */
/* Fixed-point arithmetic. BPF has no floating point and no 128-bit products. */
#ifndef COMITY_FIXED_H
#define COMITY_FIXED_H

#include "types.h"

#define INLINE static inline __attribute__((always_inline))
#define MAX_U64 0xffffffffffffffffULL
/* One, in a number with 32 bits behind the point. */
#define ONE_Q32 (1ULL << 32)

/* a · b / 2^shift, at most MAX_U64; 0 < shift < 64. */
INLINE u64 mul_shift(u64 a, u64 b, u32 shift)
{
	u64 a1 = a >> 32, a0 = a & 0xffffffff, b1 = b >> 32, b0 = b & 0xffffffff;
	u64 low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & 0xffffffff);
	u64 high = a1 * b1 + (middle >> 32) + (other >> 32);

	low = (other << 32) | (low & 0xffffffff);
	if (high >> shift)
		return MAX_U64;
	return (high << (64 - shift)) | (low >> shift);
}

#endif
