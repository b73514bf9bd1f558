/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make generations current, notice that a peer is gone, and free generations and captures that are
 * no longer used.
 */
#include "rebind.h"

#include <poll.h>

#include "events.h"
#include "watch.h"

static void last_put(struct generation *gen)
{
	struct dray_port *port = gen->context;

	generation_free(gen);
	port_put(port);
}

void port_adopt(struct dray_port *port, struct generation *gen)
{
	gen->context = port;
	gen->last_put = last_put;
	port_get(port);
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		if (gen->tx[q])
			generation_get(gen);
		if (gen->rx[q])
			generation_get(gen);
	}
	gen->next = port->generations;
	port->generations = gen;
}

void port_switch(struct dray_port *port, struct generation *to)
{
	struct generation *from = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (from == to)
		return;
	if (from) {
		from->left_ns = clock_coarse_ns();
		/*
		 * When the link moves, the peer may still ring on the old bells: until they are
		 * drained.
		 */
		if (!to || from->kind != DRAY_LINK_SHM)
			unwatch_bells(port, from);
		else
			unwatch_death(port, from);
	}
	if (to)
		watch_bells(port, to);
	atomic_store_explicit(&port->current, to, memory_order_relaxed);
	/* release: pairs with the acquire in direction_follow. */
	atomic_fetch_add_explicit(&port->switches, 1, memory_order_release);
	/* The event wakes those who sleep, to follow. */
	if (to)
		port_event(port, from ? DRAY_EVENT_REBIND : DRAY_EVENT_PEER_UP, to->number,
			   to->kind, 0);
	else
		port_event(port, DRAY_EVENT_PEER_DOWN, from->number, from->kind, 0);
}

/*
 * Its bells stay readable from now on, so stop watching them: they would wake the application again
 * and again.
 */
static void note_death(struct dray_port *port, struct generation *gen)
{
	/* release: pairs with the acquires in draining_final and retire_untaken. */
	atomic_store_explicit(&gen->peer_gone, true, memory_order_release);
	unwatch_bells(port, gen);
}

/* A bell that hung up means that the peer is gone. */
void port_look_for_death(struct dray_port *port)
{
	struct generation *current = atomic_load_explicit(&port->current, memory_order_relaxed);

	for (struct generation *gen = port->generations; gen; gen = gen->next) {
		struct pollfd p[DRAY_MAX_QUEUES];

		if (gen->kind != DRAY_LINK_SHM)
			continue;
		for (unsigned q = 0; q < gen->queues; q++)
			p[q] = (struct pollfd){.fd = gen->bells[q], .events = POLLRDHUP};
		if (poll(p, gen->queues, 0) > 0)
			note_death(port, gen);
		if (gen == current && atomic_load_explicit(&gen->peer_gone, memory_order_relaxed))
			port_switch(port, NULL);
	}
}

/*
 * Generations whose packets wait for a queue that is not polled. Without a bound, a peer that sends
 * one packet and dies, again and again, would fill the memory.
 */
#define UNTAKEN_MAX 4

/* Retire an owner that no direction has used. Packets in it wait for their queue, unless `drop`. */
static void retire_untaken(const struct generation *gen, struct dray_owner *owner, bool drop)
{
	/*
	 * acquire: pairs with the releases in bell_drain and note_death; the tail that is read next
	 * is final.
	 */
	bool final = atomic_load_explicit(&gen->peer_gone, memory_order_acquire) ||
		     clock_coarse_ns() - gen->left_ns > DRAIN_NS;

	if (!owner || owner->adopted || owner->retired)
		return;
	if (!owner->ops->recv || drop || (final && !owner->ops->ready(owner)))
		owner_retire(owner);
}

void port_reap(struct dray_port *port)
{
	struct generation **link = &port->generations;
	struct generation *current = atomic_load_explicit(&port->current, memory_order_relaxed);
	unsigned left = 0; /* the newest come first */

	while (*link) {
		struct generation *gen = *link;

		left += gen != current && gen->kind != DRAY_LINK_NONE;
		/* relaxed: direction_retire may see it late. */
		atomic_store_explicit(&gen->surplus, left > UNTAKEN_MAX, memory_order_relaxed);
		for (unsigned q = 0; gen != current && q < DRAY_MAX_QUEUES; q++) {
			retire_untaken(gen, gen->tx[q], false);
			retire_untaken(gen, gen->rx[q], left > UNTAKEN_MAX);
		}
		/*
		 * Only the list refers to it, and only those who refer to it can make more
		 * references. acquire: pairs with the release in generation_put.
		 */
		if (gen != current && atomic_load_explicit(&gen->refs, memory_order_acquire) == 1) {
			*link = gen->next;
			unwatch_bells(port, gen);
			generation_put(gen);
		} else {
			link = &gen->next;
		}
	}
}

void port_capture(struct dray_port *port, struct capture *capture)
{
	if (port->capture == capture)
		return;
	if (capture) {
		capture->next = port->captures;
		port->captures = capture;
	}
	port->capture = capture;
	/* release: pairs with the acquire in direction_follow. */
	atomic_fetch_add_explicit(&port->switches, 1, memory_order_release);
}

void port_reap_captures(struct dray_port *port)
{
	struct capture **link = &port->captures;

	while (*link) {
		struct capture *c = *link;

		if (c != port->capture && capture_unused(c)) {
			*link = c->next;
			capture_free(c);
		} else {
			link = &c->next;
		}
	}
}
