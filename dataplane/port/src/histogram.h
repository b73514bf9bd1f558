/* SPDX-License-Identifier: Apache-2.0 */
/* The log-linear histogram of PROTOCOL.md, section 9: 32 buckets to each power of two. */
#ifndef DRAY_HISTOGRAM_H
#define DRAY_HISTOGRAM_H

#include "layout.h"

/* Where a value below 2^(HISTOGRAM_MAX_BIT + 1) is counted. */
static inline uint32_t histogram_index(uint64_t value)
{
	uint32_t e;

	if (value < 32)
		return (uint32_t)value;
	e = 63 - (uint32_t)__builtin_clzll(value);
	return (e - 5) * 32 + (uint32_t)(value >> (e - 5));
}

#endif
