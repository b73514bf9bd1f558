/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of all classes: taking them in, letting them out, and counting. */
#include "scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../owner.h"
#include "classify.h"

#define ITEMS_MOST 65536u
#define BYTES_LEAST 64u /* of a packet, in a queue limited by bytes */

static const struct discipline *const disciplines[DISCIPLINES] = {
	[DISCIPLINE_PFIFO] = &fifo_discipline,	  [DISCIPLINE_BFIFO] = &fifo_discipline,
	[DISCIPLINE_SFQ] = &fair_discipline,	  [DISCIPLINE_CODEL] = &codel_discipline,
	[DISCIPLINE_FQ_CODEL] = &fair_discipline, [DISCIPLINE_SLOT] = &slot_discipline,
};

static const struct sharing *const sharings[] = {
	[SCHEDULER_NONE] = &strict_sharing,
	[SCHEDULER_STRICT] = &strict_sharing,
	[SCHEDULER_HTB] = &htb_sharing,
	[SCHEDULER_HFSC] = &hfsc_sharing,
};

/* The queue's length, after it has changed. */
static void report_queue(struct class *c)
{
	struct telemetry_class *r = c->report;
	uint32_t packets = c->queue.packets + (c->held != ITEM_NONE);

	atomic_store_explicit(&r->queued, packets, memory_order_relaxed);
	atomic_store_explicit(&r->queued_bytes, c->queue.bytes, memory_order_relaxed);
	if (packets > atomic_load_explicit(&r->queued_most, memory_order_relaxed))
		atomic_store_explicit(&r->queued_most, packets, memory_order_relaxed);
}

static void report_sent(struct class *c, uint32_t packets, uint64_t bytes)
{
	count_add(&c->report->packets, packets);
	count_add(&c->report->bytes, bytes);
}

static void report_wait(struct class *c, uint32_t item, uint64_t now)
{
	uint64_t since = class_item(c, item)->since, wait = now - since;

	if (c->plan->discipline == DISCIPLINE_SLOT || now < since)
		return; /* it is when the slot ends */
	if (wait > atomic_load_explicit(&c->report->longest_ns, memory_order_relaxed))
		atomic_store_explicit(&c->report->longest_ns, wait, memory_order_relaxed);
}

/* Make room: drop from the class with most packets. False: none has any. */
static bool shed(struct scheduler *s)
{
	struct class *most = &s->classes[0];

	for (uint32_t i = 1; i < s->plan.classes; i++)
		if (s->classes[i].queue.packets > most->queue.packets)
			most = &s->classes[i];
	if (most->queue.packets == 0)
		return false;
	most->discipline->shed(most);
	report_queue(most);
	return true;
}

bool scheduler_shed(struct scheduler *s, unsigned n)
{
	unsigned dropped = 0;

	while (s->plan.classes > 1 && dropped < n && shed(s))
		dropped++;
	return dropped > 0;
}

/* The first packet of a class that had none. */
static void class_begins(struct class *c, uint64_t now)
{
	if (!class_waits(c))
		return;
	if (c->scheduler->sharing->peeks)
		c->held = c->discipline->take(c, now);
	if (class_waits(c) && c->scheduler->sharing->waiting)
		c->scheduler->sharing->waiting(c, now);
}

static void put_one(struct scheduler *s, const struct dray_pkt *pkt, uint64_t now)
{
	struct class *c = &s->classes[classify(s, pkt)];
	bool waited = class_waits(c);
	uint32_t item = item_new(s);

	s->items[item].pkt = *pkt;
	s->items[item].since = now;
	c->discipline->put(c, item, now);
	if (!waited)
		class_begins(c, now);
	report_queue(c);
}

void scheduler_put(struct scheduler *s, const struct dray_pkt *pkts, unsigned n, uint64_t now)
{
	bucket_update(&s->root, now);
	for (unsigned i = 0; i < n; i++) {
		if (s->waiting >= s->room && !shed(s)) {
			struct dray_pkt pkt = pkts[i];

			count_add(&s->classes[classify(s, &pkt)].report->dropped, 1);
			s->drop(s->drop_context, &pkt);
			continue;
		}
		put_one(s, &pkts[i], now);
	}
}

unsigned scheduler_pass(struct scheduler *s, const struct dray_pkt *pkts, unsigned n, uint64_t now)
{
	uint64_t bytes = 0;
	unsigned i;

	if (s->waiting || s->plan.classes > 1)
		return 0;
	bucket_update(&s->root, now);
	for (i = 0; i < n && bucket_open(&s->root); i++) {
		bucket_charge(&s->root, pkts[i].length);
		bytes += pkts[i].length;
	}
	report_sent(&s->classes[0], i, bytes);
	return i;
}

/* Take a packet of a class. ITEM_NONE: the discipline has dropped all that there were. */
static uint32_t take_one(struct class *c, uint64_t now)
{
	uint32_t item = c->held;

	c->held = ITEM_NONE;
	if (item != ITEM_NONE && c->discipline->late && c->discipline->late(c, item, now)) {
		class_drop(c, item, true);
		item = ITEM_NONE;
	}
	if (item == ITEM_NONE)
		item = c->discipline->take(c, now);
	if (c->scheduler->sharing->peeks && c->queue.packets)
		c->held = c->discipline->take(c, now);
	if (item != ITEM_NONE) {
		c->scheduler->sharing->charge(c, item_length(c, item), now);
		report_wait(c, item, now);
		report_sent(c, 1, item_length(c, item));
	}
	report_queue(c);
	return item;
}

unsigned scheduler_take(struct scheduler *s, struct dray_pkt *pkts, unsigned n, uint64_t now)
{
	unsigned got = 0;

	bucket_update(&s->root, now);
	while (got < n && s->waiting) {
		uint64_t wait;
		uint32_t class = s->sharing->pick(s, now, &wait), item;

		if (class == CLASS_NONE)
			break;
		item = take_one(&s->classes[class], now);
		if (item == ITEM_NONE)
			continue;
		pkts[got++] = s->items[item].pkt;
		item_free(s, item);
	}
	return got;
}

uint64_t scheduler_due(struct scheduler *s, uint64_t now)
{
	uint64_t wait = 0;

	if (s->waiting == 0)
		return UINT64_MAX;
	bucket_update(&s->root, now);
	(void)s->sharing->pick(s, now, &wait);
	return now + wait;
}

void scheduler_set_room(struct scheduler *s, uint32_t packets)
{
	s->room = packets < s->item_count ? packets : s->item_count;
	while (s->waiting > s->room && shed(s))
		;
}

static uint32_t packets_of(const struct wire_class *c)
{
	return c->discipline == DISCIPLINE_BFIFO ? c->limit / BYTES_LEAST + 1 : c->limit;
}

/* One more packet than all queues take, since some drop only then. */
static uint32_t items_for(const struct wire_classes *plan)
{
	uint32_t n = CLASSES_MAX;

	for (uint32_t i = 0; i < plan->classes; i++) {
		uint32_t packets = packets_of(&plan->class[i]);

		n += packets < ITEMS_MOST ? packets : ITEMS_MOST;
	}
	return n < ITEMS_MOST ? n : ITEMS_MOST;
}

static int class_init(struct scheduler *s, uint32_t i)
{
	struct class *c = &s->classes[i];

	c->plan = &s->plan.class[i];
	c->discipline = disciplines[c->plan->discipline];
	c->scheduler = s;
	c->queue.head = ITEM_NONE;
	c->held = ITEM_NONE;
	c->report = &s->report[i];
	return c->discipline->init ? c->discipline->init(c) : 0;
}

static int classes_init(struct scheduler *s)
{
	int ret = 0;

	s->item_count = items_for(&s->plan);
	s->items = calloc(s->item_count, sizeof(*s->items));
	s->classes = calloc(s->plan.classes, sizeof(*s->classes));
	if (!s->items || !s->classes)
		return -ENOMEM;
	s->free = ITEM_NONE;
	s->waiting = s->item_count;
	for (uint32_t i = s->item_count; i-- > 0;)
		item_free(s, i);
	for (uint32_t i = 0; ret == 0 && i < s->plan.classes; i++)
		ret = class_init(s, i);
	return ret;
}

int scheduler_new(const struct wire_classes *plan, uint64_t seed, drop_fn *drop, void *context,
		  struct scheduler **scheduler)
{
	struct scheduler *s;
	int ret;

	if (!classes_valid(plan))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->plan = *plan;
	s->seed = seed;
	s->drop = drop;
	s->drop_context = context;
	s->sharing = sharings[plan->scheduler];
	bucket_init(&s->root, plan->rate, plan->burst);
	ret = classes_init(s);
	if (ret) {
		scheduler_free(s);
		return ret;
	}
	s->room = s->item_count;
	classify_init(s);
	if (s->sharing->init)
		s->sharing->init(s);
	*scheduler = s;
	return 0;
}

/* Drop what waits. */
static void class_end(struct class *c)
{
	if (c->held != ITEM_NONE)
		class_drop(c, c->held, false);
	while (c->queue.packets)
		c->discipline->shed(c);
	if (c->discipline->end)
		c->discipline->end(c);
}

void scheduler_free(struct scheduler *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->classes && i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];

		if (!c->discipline)
			break;
		class_end(c);
	}
	free(s->classes);
	free(s->items);
	free(s);
}
