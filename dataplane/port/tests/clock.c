/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of the counter is right also where the thread is held up between its two clocks. */
#include <sys/syscall.h>

#include "test.h"

#define NAP_US 5000
#define TRIES 20 /* another thread may have the CPU at the one moment that is not spoilt here */

static bool spoil;
static unsigned calls;

/* The library's: the first of four calls is slow to return. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int ret = (int)syscall(SYS_clock_gettime, id, t);

	if (spoil && calls++ % 4 == 0)
		usleep(NAP_US);
	return ret;
}

/* Spoil the beginning, and not the end: what spoils both alike does no harm. */
static uint64_t rate(bool begin_badly, unsigned us)
{
	struct clock_rate r;

	spoil = begin_badly;
	calls = 0;
	clock_rate_begin(&r);
	spoil = false;
	usleep(us);
	return clock_rate_hz(&r);
}

int main(void)
{
	uint64_t right = rate(false, 100000), got = 0;
	unsigned good = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		got = rate(true, 0);
		good += got > right - right / 10 && got < right + right / 10;
	}
	if (good < TRIES / 2)
		fprintf(stderr, "%llu ticks a second, and the last of the others %llu\n", (unsigned long long)right, (unsigned long long)got);
	CHECK(good >= TRIES / 2);
	return 0;
}
