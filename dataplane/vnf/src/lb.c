/* SPDX-License-Identifier: Apache-2.0 */
/* Load balancer: which workers are up, and which gets a flow. */
#include "lb.h"

#include <stdlib.h>

#include "announce.h"
#include "flow.h"

int lb_open(struct lb *lb, bool announced, uint64_t silence_ns)
{
	*lb = (struct lb){.announced = announced,
			  .silence_ns = silence_ns,
			  .news = calloc(1, sizeof(struct lb_news))};
	return lb->news ? 0 : -1;
}

void lb_close(struct lb *lb)
{
	free(lb->news);
	lb->news = NULL;
}

unsigned lb_pick(uint32_t up, uint64_t hash)
{
	uint64_t largest = 0;
	unsigned best = 0;

	for (; up; up &= up - 1) {
		unsigned worker = (unsigned)__builtin_ctz(up);
		uint64_t weight = flow_mix(hash + worker * 0x9e3779b97f4a7c15u);

		if (!best || weight > largest) {
			largest = weight;
			best = worker;
		}
	}
	return best;
}

/*
 * Needs no order with anything else: a packet may see the set of workers from shortly before.
 */
void lb_first(struct lb *lb, uint32_t up)
{
	atomic_store_explicit(&lb->up, up, memory_order_relaxed);
}

void lb_change(struct lb *lb, uint32_t up)
{
	if (atomic_load_explicit(&lb->up, memory_order_relaxed) == up)
		return;
	lb_first(lb, up);
	atomic_fetch_add_explicit(&lb->rebalances, 1, memory_order_relaxed);
}

/* Another worker may have the port next: forget what this one announced. */
static void forget(struct lb *lb, unsigned port)
{
	lb->known &= ~(1u << port);
	atomic_fetch_and_explicit(&lb->news->leaving, ~(1u << port), memory_order_relaxed);
	lb->counted[port] = atomic_load_explicit(&lb->news->heard[port], memory_order_relaxed);
}

static void listen(struct lb *lb, unsigned port, uint64_t now_ns)
{
	uint32_t heard = atomic_load_explicit(&lb->news->heard[port], memory_order_relaxed);

	if (heard == lb->counted[port])
		return;
	lb->counted[port] = heard;
	lb->at[port] = now_ns;
	lb->known |= 1u << port;
}

uint32_t lb_members(struct lb *lb, uint32_t links, uint64_t now_ns)
{
	uint32_t members = 0, silent = 0, staying;

	for (unsigned i = 1; i < PORTS_MAX; i++) {
		uint32_t bit = 1u << i;

		if (!(links & bit)) {
			forget(lb, i);
			continue;
		}
		listen(lb, i, now_ns);
		if (!(lb->known & bit))
			members |= lb->announced ? 0 : bit;
		else if (now_ns - lb->at[i] < lb->silence_ns)
			members |= bit;
		else
			silent |= bit;
	}
	staying = ~atomic_load_explicit(&lb->news->leaving, memory_order_relaxed);
	return members & staying ? members & staying : silent & staying;
}

/*
 * A worker that leaves gets nothing from now on. Its announcement goes back to it behind what was
 * sent before: when it comes, the worker has everything. Those who are behind port 0 must not speak
 * for a worker or for the balancer.
 */
static enum reason announced(const struct lb *lb, unsigned in, enum announcement what,
			     struct change *c)
{
	if (in == 0)
		return DROP_ANNOUNCEMENT;
	atomic_fetch_add_explicit(&lb->news->heard[in], 1, memory_order_relaxed);
	if (what == ANNOUNCES_HERE) {
		atomic_fetch_and_explicit(&lb->news->leaving, ~(1u << in), memory_order_relaxed);
		return DROP_ANNOUNCEMENT;
	}
	atomic_fetch_or_explicit(&lb->news->leaving, 1u << in, memory_order_relaxed);
	c->out = (uint8_t)in;
	return PASS;
}

enum reason lb_handle(const struct lb *lb, const struct packet *p, struct change *c)
{
	enum announcement what;
	uint64_t number;
	uint32_t up;

	if (p->length < ETHERNET)
		return DROP_SHORT;
	c->push = c->strip = c->l2 = 0;
	c->keep = p->length;
	c->out = 0;
	what = announce_read(p, &number);
	if (what)
		return announced(lb, p->in, what, c);
	if (p->in != 0)
		return PASS;
	up = atomic_load_explicit(&lb->up, memory_order_relaxed) &
	     ~atomic_load_explicit(&lb->news->leaving, memory_order_relaxed);
	if (!up)
		return DROP_WORKER;
	c->out = (uint8_t)lb_pick(up, flow_hash(p));
	return PASS;
}
