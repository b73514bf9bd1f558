/* SPDX-License-Identifier: Apache-2.0 */
/* First in, first out, limited in packets or bytes: a packet that finds the queue full is dropped.
 */
#include "class.h"

static bool fifo_full(const struct class *c, uint32_t item)
{
	if (c->plan->discipline == DISCIPLINE_BFIFO)
		return c->queue.bytes + item_length(c, item) > c->plan->limit;
	return c->queue.packets >= c->plan->limit;
}

static void fifo_put(struct class *c, uint32_t item, uint64_t now)
{
	(void)now;
	if (fifo_full(c, item))
		class_drop(c, item, false);
	else
		list_put(c, &c->queue, item);
}

static uint32_t fifo_take(struct class *c, uint64_t now)
{
	(void)now;
	return list_take(c, &c->queue);
}

static void fifo_shed(struct class *c)
{
	class_drop(c, list_take(c, &c->queue), false);
}

const struct discipline fifo_discipline = {
	.put = fifo_put,
	.take = fifo_take,
	.shed = fifo_shed,
};

/* CoDel queues like a FIFO. */
static uint32_t codel_first(struct class *c, uint64_t now)
{
	return codel_take(c, &c->codel, &c->queue, now);
}

const struct discipline codel_discipline = {
	.put = fifo_put,
	.take = codel_first,
	.shed = fifo_shed,
};
