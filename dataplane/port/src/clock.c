/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the rate of the counter against CLOCK_MONOTONIC. */
#include "clock.h"

#define FIRST_NS 200000u /* gives 1 in 1,000 at once */

void clock_rate_begin(struct clock_rate *rate)
{
	rate->ns0 = clock_ns();
	rate->ticks0 = clock_ticks();
	while (clock_ns() - rate->ns0 < FIRST_NS)
		clock_relax();
}

uint64_t clock_rate_hz(const struct clock_rate *rate)
{
	uint64_t ns = clock_ns() - rate->ns0;
	uint64_t ticks = clock_ticks() - rate->ticks0;

	return ns ? (uint64_t)((double)ticks * 1e9 / (double)ns) : 0;
}
