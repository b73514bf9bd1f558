/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slot deadlines: a packet leaves whole before the slot ends in which it was handed over, or not at
 * all. So what is late in one slot takes no time from the next.
 */
#include <time.h>

#include "scheduler.h"

#define SECOND 1000000000ull

/* ns by which the slots' clock is ahead of CLOCK_MONOTONIC. */
static uint64_t clock_ahead(const struct class *c, uint64_t now)
{
	struct timespec t;

	if (!(c->plan->flags & CLASS_REALTIME))
		return 0;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec - now;
}

/* The end of the slot of `now`. target_ns is the length of a slot, interval_ns when they begin. */
static uint64_t slot_end(const struct class *c, uint64_t now)
{
	uint64_t length = c->plan->target_ns;
	uint64_t into = (now + clock_ahead(c, now) + length - c->plan->interval_ns) % length;

	return now + length - into;
}

/* The bucket of the slowest limit that the class's packets pass. */
static const struct bucket *limit_of(const struct class *c)
{
	return c->plan->ceil ? &c->ceil : &c->scheduler->root;
}

/* ns until a packet has left that comes after so many bytes of its class. */
static uint64_t time_for(const struct class *c, uint64_t bytes)
{
	const struct bucket *b = limit_of(c);
	int64_t debt = bucket_price(b, bytes) + (b->debt > 0 ? b->debt : 0);

	return (uint64_t)debt >> BUCKET_SHIFT;
}

static void slot_put(struct class *c, uint32_t item, uint64_t now)
{
	uint64_t end = slot_end(c, now), waits = c->queue.bytes;

	if (c->held != ITEM_NONE)
		waits += item_length(c, c->held);
	class_item(c, item)->since = end;
	if (now + time_for(c, waits + item_length(c, item)) > end)
		class_drop(c, item, true);
	else if (c->queue.packets >= c->plan->limit)
		class_drop(c, item, false);
	else
		list_put(c, &c->queue, item);
}

static bool slot_late(const struct class *c, uint32_t item, uint64_t now)
{
	return now + time_for(c, item_length(c, item)) > class_item(c, item)->since;
}

static uint32_t slot_take(struct class *c, uint64_t now)
{
	for (;;) {
		uint32_t item = list_take(c, &c->queue);

		if (item == ITEM_NONE || !slot_late(c, item, now))
			return item;
		class_drop(c, item, true);
	}
}

static void slot_shed(struct class *c)
{
	class_drop(c, list_take(c, &c->queue), false);
}

const struct discipline slot_discipline = {
	.put = slot_put,
	.take = slot_take,
	.shed = slot_shed,
	.late = slot_late,
};
