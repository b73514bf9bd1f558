/* SPDX-License-Identifier: Apache-2.0 */
/* What the benches have in common: pinning, touching memory, quantiles. */
#ifndef DRAY_BENCH_H
#define DRAY_BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"

/* Pin this thread to the first or the second CPU that the process may use. */
void bench_pin(unsigned which);

/* Back to every CPU that the process may use. */
void bench_unpin(void);

/* Nanoseconds that this thread was ready to run and had no CPU, so far; 0 if the kernel does not say. */
uint64_t bench_starved_ns(void);

/* Ticks in nanoseconds; bench_begin measures the rate. */
void bench_begin(void);
uint32_t bench_ns(uint64_t ticks);
double bench_ns_per_tick(void);

/*
 * The rate of a load: the receiver's median over windows of packets. A window during which a thread was taken off its CPU, by other work on the machine,
 * is an outlier among them; it would spoil a mean.
 */
#define WINDOW 65536u
#define MAX_WINDOWS 256
struct windows {
	uint64_t began; /* ticks */
	uint64_t next;	/* packets at which this one ends */
	uint32_t ns[MAX_WINDOWS];
	unsigned n;
};

void bench_window_end(struct windows *windows);

/* Called by the receiver with how many packets came so far. */
static inline void bench_window(struct windows *windows, uint64_t packets)
{
	if (packets >= windows->next)
		bench_window_end(windows);
}

/* Packets a second; 0: no window was complete. */
double bench_rate(struct windows *windows);

/* Sorts. q from 0 to 1. */
double bench_quantile(uint32_t *values, unsigned n, double q);

/* Keep a result from being optimised away. */
void bench_keep(uint64_t value);

/* Write, and read, all of 64 bytes. */
static inline void bench_write64(uint8_t *to, uint64_t value)
{
	uint64_t words[8] = {value, value, value, value, value, value, value, value};

	memcpy(to, words, sizeof(words));
}

static inline uint64_t bench_read64(const uint8_t *from)
{
	uint64_t words[8];

	memcpy(words, from, sizeof(words));
	return words[0] + words[1] + words[2] + words[3] + words[4] + words[5] + words[6] + words[7];
}

#endif
