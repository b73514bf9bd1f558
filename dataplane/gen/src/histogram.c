/* SPDX-License-Identifier: Apache-2.0 */
/* Reading histograms. */
#include "histogram.h"

#include <string.h>

#define BEYOND 10 /* samples that a percentile needs beyond it */

uint64_t histogram_lowest(uint32_t index)
{
	uint32_t shift;

	if (index < HISTOGRAM_LINEAR)
		return index;
	shift = index / 64 - 1;
	return (uint64_t)(index - shift * 64) << shift;
}

uint64_t histogram_highest(uint32_t index)
{
	return index + 1 < HISTOGRAM_SIZE ? histogram_lowest(index + 1) - 1 : UINT64_MAX;
}

bool histogram_quantile(const struct histogram *h, double q, uint64_t *value)
{
	/* 0.9 * 100 may come out a little above 90 */
	double place = q * (double)h->n * (1 - 1e-12);
	uint64_t rank = (uint64_t)place + 1, seen = 0;

	if (h->n < rank + BEYOND)
		return false;
	for (uint32_t i = 0; i < HISTOGRAM_SIZE; i++) {
		seen += h->counts[i];
		if (seen >= rank) {
			*value = histogram_highest(i) < h->max ? histogram_highest(i) : h->max;
			return true;
		}
	}
	return false;
}

void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
}
