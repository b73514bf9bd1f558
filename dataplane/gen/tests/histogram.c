/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: bounds of buckets, error, exact figures, percentiles, and when there is none. */
#include "histogram.h"

#include "support.h"

static struct histogram h;

static void bounds(void)
{
	CHECK_EQ(histogram_index(0), 0);
	CHECK_EQ(histogram_index(127), 127);
	CHECK_EQ(histogram_index(128), 128);
	CHECK_EQ(histogram_index(129), 128);
	CHECK_EQ(histogram_index(130), 129);
	CHECK_EQ(histogram_index(255), 191);
	CHECK_EQ(histogram_index(256), 192);
	CHECK_EQ(histogram_index(1000000), 954); /* e = 19: 13 * 64 + (1000000 >> 13) */
}

static void every_bucket(void)
{
	for (uint32_t i = 0; i < HISTOGRAM_SIZE; i++) {
		uint64_t low = histogram_lowest(i), high = histogram_highest(i);

		CHECK_EQ(histogram_index(low), i);
		CHECK_EQ(histogram_index(high), i);
		CHECK(high - low <= low / 64);
		CHECK(i == 0 || histogram_highest(i - 1) + 1 == low);
	}
	CHECK(histogram_highest(HISTOGRAM_SIZE - 1) == UINT64_MAX);
}

static void percentiles(void)
{
	uint64_t v;

	histogram_clear(&h);
	CHECK(!histogram_quantile(&h, 0.5, &v));
	for (uint64_t i = 1; i <= 100; i++)
		histogram_add(&h, i, 1);
	CHECK(h.n == 100 && h.min == 1 && h.max == 100 && h.sum == 5050);
	CHECK(histogram_quantile(&h, 0.5, &v) && v == 50);
	CHECK(histogram_quantile(&h, 0.9, &v) && v == 90);
	CHECK(!histogram_quantile(&h, 0.91, &v)); /* nine are beyond it */
	histogram_clear(&h);
	histogram_add(&h, 1000003, 100000);
	CHECK(histogram_quantile(&h, 0.9999, &v) && v == 1000003); /* at most the maximum */
	CHECK(histogram_quantile(&h, 0.5, &v) && v == 1000003);
}

int main(void)
{
	bounds();
	every_bucket();
	percentiles();
	return 0;
}
