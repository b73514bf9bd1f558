/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear histogram of ns: README.md, "HISTOGRAM". */
#ifndef GEN_HISTOGRAM_H
#define GEN_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_LINEAR 128u /* values below have a bucket each */
#define HISTOGRAM_SIZE (57u * 64 + 128)

struct histogram {
	uint64_t n, min, max, sum; /* exact; min and max are undefined while n is 0 */
	uint64_t counts[HISTOGRAM_SIZE];
};

static inline uint32_t histogram_index(uint64_t value)
{
	uint32_t shift;

	if (value < HISTOGRAM_LINEAR)
		return (uint32_t)value;
	shift = 63u - 6 - (uint32_t)__builtin_clzll(value);
	return shift * 64 + (uint32_t)(value >> shift);
}

/* Add a value that was seen that many times, at least once. */
static inline void histogram_add(struct histogram *h, uint64_t value, uint64_t times)
{
	if (h->n == 0 || value < h->min)
		h->min = value;
	if (h->n == 0 || value > h->max)
		h->max = value;
	h->n += times;
	h->sum += value * times;
	h->counts[histogram_index(value)] += times;
}

/* The lowest and the highest value of a bucket. */
uint64_t histogram_lowest(uint32_t index);
uint64_t histogram_highest(uint32_t index);

/*
 * The smallest value that at least a share q (0 to 1) of the values do not exceed. false: fewer
 * than ten values exceed it.
 */
bool histogram_quantile(const struct histogram *h, double q, uint64_t *value);

void histogram_clear(struct histogram *h);

#endif
