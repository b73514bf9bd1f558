/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the rate of the counter against CLOCK_MONOTONIC. */
#include "clock.h"

#define FIRST_NS 200000u /* gives an error of at most 1 in 1,000 at once */

/*
 * Read both clocks at the same time: of several tries, keep the fastest, since a thread may be
 * preempted between them.
 */
static void read_both(uint64_t *ns, uint64_t *ticks)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = clock_ticks(), now = clock_ns(), after = clock_ticks();

		if (after - before >= least)
			continue;
		least = after - before;
		*ns = now;
		*ticks = before + least / 2;
	}
}

void clock_rate_begin(struct clock_rate *rate)
{
	read_both(&rate->ns0, &rate->ticks0);
	while (clock_ns() - rate->ns0 < FIRST_NS)
		clock_relax();
}

uint64_t clock_rate_hz(const struct clock_rate *rate)
{
	uint64_t ns = 0, ticks = 0;

	read_both(&ns, &ticks);
	return ns > rate->ns0
		       ? (uint64_t)((double)(ticks - rate->ticks0) * 1e9 / (double)(ns - rate->ns0))
		       : 0;
}
