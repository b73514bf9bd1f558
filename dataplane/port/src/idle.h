/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a receiver that finds nothing polls before it sleeps: always, for a fixed time, or only
 * if it has learned that polling pays.
 *
 * An idle period begins when a queue is found empty, and ends when packets are taken. A wake-up is
 * taken to cost as much as polling for the longest time. So polling pays if, on average, the time
 * polled in a period and the wake-up that may still follow cost less than a wake-up alone.
 *
 * A receiver that slept cannot tell how late the packet was, since waking up takes time. So while
 * polling does not pay, it is tried now and then: the more rarely, the longer it has not paid.
 */
#ifndef DRAY_IDLE_H
#define DRAY_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct idle {
	uint64_t began;	  /* ticks, when the queue was found empty; 0: it was not */
	uint64_t seen;	  /* ticks, when dray_wait found packets that are not taken yet; 0: none */
	uint64_t poll;	  /* ticks of polling in this period, from `began` */
	uint64_t longest; /* ticks: what a wake-up costs */
	uint64_t cost;	  /* ticks: of polling in recent periods, on average */
	uint32_t turn;	  /* decides when polling is tried */
	uint8_t rarity;	  /* it is tried in one of 2^rarity periods */
	uint8_t missed;	  /* periods in a row in which it was not, and might have paid */
	bool learns;
};

/* learns: poll for `longest` ticks if that pays, otherwise not at all. */
void idle_init(struct idle *idle, uint64_t longest, bool learns);

/* A period begins. */
void idle_begin(struct idle *idle, uint64_t now);

/* The period ends: n packets are taken. */
void idle_end(struct idle *idle, uint64_t now, unsigned n);

/* Packets are there, and may be taken later: the time until then is not idle. */
static inline void idle_see(struct idle *idle, uint64_t now)
{
	if (!idle->seen)
		idle->seen = now;
}

/*
 * The queue is empty: whether to look again before sleeping. A clock that jumps, forwards or back,
 * ends the polling of this period.
 */
static inline bool idle_polls(struct idle *idle, uint64_t now)
{
	if (!idle->began)
		idle_begin(idle, now);
	return now - idle->began < idle->poll;
}

#endif
