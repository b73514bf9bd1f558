/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows that share a class: SFQ (McKenney 1990) and FQ-CoDel (RFC 8290). Flows send in turns, each
 * up to a quantum of bytes. In FQ-CoDel new flows send first, and each flow has a CoDel.
 */
#include <errno.h>
#include <stdlib.h>

#include "classify.h"

#define SFQ_FLOWS 128u
#define FQ_CODEL_FLOWS 1024u
#define QUANTUM 1514 /* bytes */
#define SHED_MOST 64 /* packets that FQ-CoDel drops at once */

enum flow_state { FLOW_IDLE, FLOW_NEW, FLOW_OLD };

struct flow {
	struct list list;
	struct codel codel;
	int32_t deficit;
	uint32_t next; /* of the flows that have a turn */
	enum flow_state state;
};

/* Flows in turn. */
struct turns {
	uint32_t head, tail;
};

struct fair {
	struct turns fresh, old;
	uint32_t count; /* a power of two */
	/* of each flow: what is searched for the longest one. SFQ: packets; FQ-CoDel: bytes */
	uint32_t *backlog;
	struct flow flows[];
};

static bool is_sfq(const struct class *c)
{
	return c->plan->discipline == DISCIPLINE_SFQ;
}

static void turns_put(struct fair *f, struct turns *turns, uint32_t flow)
{
	f->flows[flow].next = ITEM_NONE;
	if (turns->head == ITEM_NONE)
		turns->head = flow;
	else
		f->flows[turns->tail].next = flow;
	turns->tail = flow;
}

static uint32_t turns_take(struct fair *f, struct turns *turns)
{
	uint32_t flow = turns->head;

	turns->head = f->flows[flow].next;
	return flow;
}

static int fair_init(struct class *c)
{
	uint32_t count = is_sfq(c) ? SFQ_FLOWS : FQ_CODEL_FLOWS;
	struct fair *f = calloc(1, sizeof(*f) + count * sizeof(f->flows[0]));

	if (!f)
		return -ENOMEM;
	c->fair = f;
	f->count = count;
	f->fresh.head = f->old.head = ITEM_NONE;
	for (uint32_t i = 0; i < count; i++)
		f->flows[i].list.head = ITEM_NONE;
	f->backlog = calloc(count, sizeof(*f->backlog));
	return f->backlog ? 0 : -ENOMEM;
}

static void fair_end(struct class *c)
{
	if (c->fair)
		free(c->fair->backlog);
	free(c->fair);
	c->fair = NULL;
}

/* A packet has come to a flow or gone from it. */
static void flow_counts(struct class *c, uint32_t flow)
{
	const struct list *list = &c->fair->flows[flow].list;

	c->fair->backlog[flow] = is_sfq(c) ? list->packets : (uint32_t)list->bytes;
}

static uint32_t longest(const struct fair *f)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < f->count; i++)
		if (f->backlog[i] > f->backlog[most])
			most = i;
	return most;
}

/* The class's own list is not used: it counts the packets of all flows. */
static void class_lost(struct class *c, uint32_t item)
{
	c->queue.packets--;
	c->queue.bytes -= item_length(c, item);
}

/* Drop the first packet of the longest flow; FQ-CoDel up to half of that flow. */
static void fair_shed(struct class *c)
{
	uint32_t flow = longest(c->fair);
	struct list *list = &c->fair->flows[flow].list;
	uint32_t n = is_sfq(c) || list->packets < 2 ? 1 : list->packets / 2;

	for (n = n < SHED_MOST ? n : SHED_MOST; n > 0 && list->packets; n--) {
		uint32_t item = list_take(c, list);

		class_lost(c, item);
		class_drop(c, item, false);
	}
	flow_counts(c, flow);
}

static void fair_put(struct class *c, uint32_t item, uint64_t now)
{
	struct fair *f = c->fair;
	uint32_t flow = packet_flow(&class_item(c, item)->pkt, c->scheduler->seed) & (f->count - 1);
	struct flow *fl = &f->flows[flow];

	(void)now;
	list_put(c, &fl->list, item);
	c->queue.packets++;
	c->queue.bytes += item_length(c, item);
	flow_counts(c, flow);
	if (fl->state == FLOW_IDLE) {
		fl->deficit = QUANTUM;
		fl->state = is_sfq(c) ? FLOW_OLD : FLOW_NEW;
		turns_put(f, is_sfq(c) ? &f->old : &f->fresh, flow);
	}
	if (c->queue.packets > c->plan->limit)
		fair_shed(c);
}

/* The next packet of a flow. CoDel may drop some, which the class then counts out. */
static uint32_t flow_take(struct class *c, uint32_t flow, uint64_t now)
{
	struct flow *fl = &c->fair->flows[flow];
	uint32_t packets = fl->list.packets, item;
	uint64_t bytes = fl->list.bytes;

	if (is_sfq(c))
		item = list_take(c, &fl->list);
	else
		item = codel_take(c, &fl->codel, &fl->list, now);
	c->queue.packets -= packets - fl->list.packets;
	c->queue.bytes -= bytes - fl->list.bytes;
	flow_counts(c, flow);
	return item;
}

/* An empty flow leaves. A new one first waits for its turn as an old one, or it would be new again.
 */
static void flow_is_empty(struct fair *f, uint32_t flow)
{
	if (f->flows[flow].state == FLOW_NEW && f->old.head != ITEM_NONE) {
		f->flows[flow].state = FLOW_OLD;
		turns_put(f, &f->old, flow);
	} else {
		f->flows[flow].state = FLOW_IDLE;
	}
}

static uint32_t fair_take(struct class *c, uint64_t now)
{
	struct fair *f = c->fair;

	for (;;) {
		struct turns *turns = f->fresh.head != ITEM_NONE ? &f->fresh : &f->old;
		uint32_t flow = turns->head, item;
		struct flow *fl;

		if (flow == ITEM_NONE)
			return ITEM_NONE;
		fl = &f->flows[flow];
		if (fl->deficit <= 0) {
			fl->deficit += QUANTUM;
			fl->state = FLOW_OLD;
			turns_put(f, &f->old, turns_take(f, turns));
			continue;
		}
		item = flow_take(c, flow, now);
		if (item != ITEM_NONE) {
			fl->deficit -= (int32_t)item_length(c, item);
			return item;
		}
		flow_is_empty(f, turns_take(f, turns));
	}
}

const struct discipline fair_discipline = {
	.init = fair_init,
	.put = fair_put,
	.take = fair_take,
	.shed = fair_shed,
	.end = fair_end,
};
