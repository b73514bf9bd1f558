/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of time stamps: the CPU's constant counter, which all processes of a host share and no
 * time namespace shifts.
 */
#ifndef DRAY_CLOCK_H
#define DRAY_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "layout.h"

static inline uint64_t clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ns(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* Accurate to a few ms, and cheap. */
static inline uint64_t clock_coarse_ns(void)
{
	return clock_of(CLOCK_MONOTONIC_COARSE);
}

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	return clock_ns();
#endif
}

#if defined(__x86_64__) || defined(__aarch64__)
#define CLOCK_KIND_HERE CLOCK_KIND_COUNTER
#else
#define CLOCK_KIND_HERE CLOCK_KIND_NS
#endif

/* Tell the CPU that this thread spins. */
static inline void clock_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Tick-rate estimate; it improves with the time since clock_rate_begin(). */
struct clock_rate {
	uint64_t ns0, ticks0;
};

void clock_rate_begin(struct clock_rate *rate);
uint64_t clock_rate_hz(const struct clock_rate *rate);

#endif
