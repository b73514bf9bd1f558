/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoDel (RFC 8289): if packets have waited for longer than the target throughout an interval, one
 * is dropped, then the next ever sooner, until the wait is short again.
 */
#include "class.h"
#include "classify.h"

#define ONE_PACKET 1514 /* bytes: with no more than that waiting, the queue is not standing */

static uint64_t square_root(uint64_t n)
{
	uint64_t root = 0;

	for (uint64_t bit = 1ull << 62; bit; bit >>= 2) {
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

/* interval / sqrt(count) after t. */
static uint64_t control_law(uint64_t t, uint32_t interval, uint32_t count)
{
	return t + square_root((uint64_t)interval * interval / count);
}

/* Whether the wait has been too long for an interval. */
static bool stands(struct codel *codel, const struct wire_class *plan, uint64_t now, uint64_t since,
		   uint64_t left)
{
	if (now - since < plan->target_ns || now < since || left <= ONE_PACKET) {
		codel->first_above = 0;
		return false;
	}
	if (codel->first_above == 0) {
		codel->first_above = now + plan->interval_ns;
		return false;
	}
	return now >= codel->first_above;
}

/* Begin to drop: about where it ended, if that was not long ago. */
static void begin(struct codel *codel, uint32_t interval, uint64_t now)
{
	uint32_t delta = codel->count - codel->last_count;

	codel->dropping = true;
	codel->count = 1;
	if (delta > 1 && now - codel->drop_next < 16ull * interval)
		codel->count = delta;
	codel->drop_next = control_law(now, interval, codel->count);
	codel->last_count = codel->count;
}

bool codel_passes(struct codel *codel, const struct wire_class *plan, uint64_t now, uint64_t since,
		  uint64_t left)
{
	bool standing = stands(codel, plan, now, since, left);

	if (!standing) {
		codel->dropping = false;
		return true;
	}
	if (!codel->dropping) {
		begin(codel, plan->interval_ns, now);
		return false;
	}
	if (now < codel->drop_next)
		return true;
	codel->count++;
	codel->drop_next = control_law(codel->drop_next, plan->interval_ns, codel->count);
	return false;
}

static bool marked(struct class *c, uint32_t item)
{
	if (!(c->plan->flags & CLASS_ECN) || !packet_mark(&class_item(c, item)->pkt))
		return false;
	class_count_marked(c);
	return true;
}

uint32_t codel_take(struct class *c, struct codel *codel, struct list *list, uint64_t now)
{
	for (;;) {
		uint32_t item = list_take(c, list);

		if (item == ITEM_NONE) {
			codel->first_above = 0;
			codel->dropping = false;
			return item;
		}
		if (codel_passes(codel, c->plan, now, class_item(c, item)->since, list->bytes) ||
		    marked(c, item))
			return item;
		class_drop(c, item, false);
	}
}
