/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of the counter is right even if the thread is held up between its two clocks. */
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

static uint64_t spoilt_rate(void)
{
	return rate(true, 0);
}

/* As spoilt_rate, but each clock is read once: the nap between the two readings must show. */
static uint64_t naive_rate(void)
{
	uint64_t ns, ticks;

	spoil = true;
	calls = 0;
	ns = clock_ns();
	ticks = clock_ticks();
	spoil = false;
	usleep(200);
	return (uint64_t)((double)(clock_ticks() - ticks) * 1e9 / (double)(clock_ns() - ns));
}

/* How many of TRIES measurements are within a tenth of the right rate. */
static unsigned good(uint64_t right, uint64_t (*measure)(void))
{
	uint64_t got = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		got = measure();
		n += got > right - right / 10 && got < right + right / 10;
	}
	printf("%u of %u within a tenth of %llu ticks a second; the last: %llu\n", n, TRIES,
	       (unsigned long long)right, (unsigned long long)got);
	return n;
}

int main(void)
{
	uint64_t right = rate(false, 100000);

	CHECK(good(right, spoilt_rate) >= TRIES / 2);
	CHECK(good(right, naive_rate) < TRIES / 2);
	return 0;
}
