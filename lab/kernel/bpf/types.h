/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COMITY_TYPES_H
#define COMITY_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#endif
