/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the benches. */
#include "bench.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double ns_per_tick = 1;
static cpu_set_t usable;

void bench_begin(void)
{
	struct clock_rate rate;
	uint64_t end;

	sched_getaffinity(0, sizeof(usable), &usable);
	clock_rate_begin(&rate);
	for (end = clock_ns() + 20000000; clock_ns() < end;)
		clock_relax();
	ns_per_tick = 1e9 / (double)clock_rate_hz(&rate);
}

double bench_ns_per_tick(void)
{
	return ns_per_tick;
}

uint32_t bench_ns(uint64_t ticks)
{
	double ns = (double)ticks * ns_per_tick;

	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

void bench_pin(unsigned which)
{
	cpu_set_t one;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &usable) || which-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
		return;
	}
}

void bench_unpin(void)
{
	pthread_setaffinity_np(pthread_self(), sizeof(usable), &usable);
}

uint64_t bench_starved_ns(void)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	unsigned long long ran, waited = 0;
	char text[96] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	close(fd);
	return waited;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

double bench_quantile(uint32_t *values, unsigned n, double q)
{
	qsort(values, n, sizeof(*values), compare);
	return values[(unsigned)(q * (n - 1))];
}

void bench_window_end(struct windows *w)
{
	uint64_t now = clock_ticks();

	if (w->next && w->n < MAX_WINDOWS)
		w->ns[w->n++] = bench_ns(now - w->began);
	w->next += WINDOW;
	w->began = now;
}

double bench_rate(struct windows *w)
{
	return w->n ? WINDOW * 1e9 / bench_quantile(w->ns, w->n, 0.5) : 0;
}

void bench_keep(uint64_t value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}
