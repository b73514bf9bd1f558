/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hierarchical token buckets, of one level (tc-htb(8)): a class sends by its granted rate, then
 * borrows what the root has left, up to its ceil. Classes of the same priority send in turns, of
 * bytes in proportion to their rates.
 */
#include "scheduler.h"

#define TURN_LEAST 1514u     /* bytes, of the class with the lowest rate */
#define TURN_MOST (1u << 30) /* bytes */

static uint64_t lowest_rate(const struct scheduler *s)
{
	uint64_t lowest = UINT64_MAX;

	for (uint32_t i = 0; i < s->plan.classes; i++)
		if (s->plan.class[i].rate < lowest)
			lowest = s->plan.class[i].rate;
	return lowest;
}

static void htb_init(struct scheduler *s)
{
	uint64_t lowest = lowest_rate(s);

	for (uint32_t i = 0; i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];
		double turn = TURN_LEAST * ((double)c->plan->rate / (double)lowest);

		bucket_init(&c->granted, c->plan->rate, c->plan->peak);
		bucket_init(&c->ceil, c->plan->ceil, c->plan->peak);
		c->quantum = turn < TURN_MOST ? (int64_t)turn : TURN_MOST;
	}
}

static void htb_waiting(struct class *c, uint64_t now)
{
	(void)now;
	c->deficit[0] = c->deficit[1] = 0;
}

/* ns until a class may send by its granted rate, or by borrowing. */
static uint64_t own_wait(const struct class *c)
{
	uint64_t granted = bucket_wait(&c->granted), ceil = bucket_wait(&c->ceil);

	return granted > ceil ? granted : ceil;
}

static uint64_t borrow_wait(const struct class *c)
{
	uint64_t root = bucket_wait(&c->scheduler->root), ceil = bucket_wait(&c->ceil);

	return root > ceil ? root : ceil;
}

/* The lowest priority number of classes that may send; CLASS_NONE: none may. */
static uint32_t first_priority(struct scheduler *s, uint64_t (*wait)(const struct class *))
{
	uint32_t first = CLASS_NONE;

	for (uint32_t i = 0; i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];

		if (class_waits(c) && c->plan->priority < first && wait(c) == 0)
			first = c->plan->priority;
	}
	return first;
}

/* The next in turn of a priority. One of them may send, so this ends. */
static uint32_t next_turn(struct scheduler *s, uint32_t priority,
			  uint64_t (*wait)(const struct class *))
{
	uint32_t *turn = &s->turn[s->borrowed];

	for (;; *turn = (*turn + 1) % s->plan.classes) {
		struct class *c = &s->classes[*turn];
		int64_t *deficit = &c->deficit[s->borrowed];

		if (!class_waits(c) || c->plan->priority != priority || wait(c))
			continue;
		if (*deficit > 0)
			return *turn;
		*deficit += c->quantum;
	}
}

static uint32_t htb_pick(struct scheduler *s, uint64_t now, uint64_t *wait)
{
	uint32_t priority;

	*wait = UINT64_MAX;
	for (uint32_t i = 0; i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];
		uint64_t own, borrow;

		if (!class_waits(c))
			continue;
		bucket_update(&c->granted, now);
		bucket_update(&c->ceil, now);
		own = own_wait(c);
		borrow = borrow_wait(c);
		*wait = own < *wait ? own : *wait;
		*wait = borrow < *wait ? borrow : *wait;
	}
	if (*wait)
		return CLASS_NONE;
	priority = first_priority(s, own_wait);
	s->borrowed = priority == CLASS_NONE;
	if (!s->borrowed)
		return next_turn(s, priority, own_wait);
	return next_turn(s, first_priority(s, borrow_wait), borrow_wait);
}

static void htb_charge(struct class *c, uint32_t bytes, uint64_t now)
{
	struct scheduler *s = c->scheduler;

	(void)now;
	c->deficit[s->borrowed] -= bytes;
	if (c->deficit[s->borrowed] <= 0)
		s->turn[s->borrowed] = (s->turn[s->borrowed] + 1) % s->plan.classes;
	if (!s->borrowed)
		bucket_charge(&c->granted, bytes);
	bucket_charge(&c->ceil, bytes);
	bucket_charge(&s->root, bytes);
}

const struct sharing htb_sharing = {
	.init = htb_init,
	.waiting = htb_waiting,
	.pick = htb_pick,
	.charge = htb_charge,
};
