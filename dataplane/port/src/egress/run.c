/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the application go into the scheduler, and what is due goes to the link. */
#include "egress.h"

#include "../send.h"

#define SPARE_MOST 256 /* buffers that are kept for what the application allocates next */

/* The application may still allocate while all queues are full. */
static uint32_t room_of(const struct generation *gen)
{
	uint32_t spare = gen->packet_slots / 2;

	return gen->packet_slots - (spare < SPARE_MOST ? spare : SPARE_MOST);
}

/* A new link has other buffers. */
static void follow_room(struct egress *e)
{
	const struct generation *gen = e->dir->generation;

	if (likely(gen == e->generation))
		return;
	e->generation = gen;
	if (gen)
		scheduler_set_room(e->scheduler, room_of(gen));
}

void egress_drop(void *context, struct dray_pkt *pkt)
{
	struct egress *e = context;
	struct dray_owner *owner = pkt->owner;

	count(&e->dir->counters, COUNT_TX_DROPPED, 1);
	if (owner == e->dir->owner)
		owner->ops->give_back(owner, pkt, 1);
	else
		dray_release(pkt, 1);
}

/* The port's classes have changed. */
static void follow_classes(struct egress *e)
{
	struct scheduler *next, *before = e->scheduler;

	if (likely(!atomic_load_explicit(&e->next, memory_order_relaxed)))
		return;
	pthread_mutex_lock(&e->port->lock); /* telemetry reads it */
	next = atomic_exchange(&e->next, NULL);
	if (next)
		e->scheduler = next;
	pthread_mutex_unlock(&e->port->lock);
	if (!next)
		return;
	e->generation = NULL; /* follow_room tells the new one */
	scheduler_free(before);
}

void egress_run(struct egress *e, uint64_t now)
{
	follow_classes(e);
	follow_room(e);
	for (;;) {
		unsigned used;

		if (!egress_is_pending(e)) {
			e->pending_at = 0;
			e->pending_end =
				scheduler_take(e->scheduler, e->pending, EGRESS_BATCH, now);
			if (e->pending_end == 0)
				return;
		}
		used = direction_send(e->dir, &e->pending[e->pending_at],
				      e->pending_end - e->pending_at);
		if (used == 0)
			return; /* the device has no room now */
		e->pending_at += used;
	}
}

uint64_t egress_due(struct egress *e, uint64_t now)
{
	uint64_t due = egress_is_pending(e) ? now : scheduler_due(e->scheduler, now);

	/* relaxed: a poll that sees it late looks again at the next. */
	atomic_store_explicit(&e->due, due, memory_order_relaxed);
	return due;
}

void egress_poll(struct egress *e)
{
	uint64_t due = atomic_load_explicit(&e->due, memory_order_relaxed), now;

	if (due == UINT64_MAX)
		return;
	now = clock_ns();
	if (now < due || pthread_mutex_trylock(&e->lock))
		return;
	direction_follow(e->port, 0, e->dir, true);
	egress_run(e, now);
	(void)egress_due(e, now);
	pthread_mutex_unlock(&e->lock);
}

/* It has to wake sooner than it knows, unless nothing waits. */
static void wake_pacer(struct egress *e, uint64_t due, uint64_t now)
{
	if (due != UINT64_MAX && egress_wakes(due, now) < e->pacer_until)
		pthread_cond_signal(&e->wake);
}

unsigned egress_alloc(struct egress *e, struct dray_pkt *pkts, unsigned n, uint32_t size)
{
	struct dray_owner *owner = e->dir->owner;

	if (!owner || size > owner->generation->packet_max || !scheduler_shed(e->scheduler, n))
		return 0;
	return owner->ops->alloc(owner, pkts, n, size);
}

/* Send at once what need not wait; what the device has no room for is pending. */
static unsigned pass(struct egress *e, const struct dray_pkt *pkts, unsigned n, uint64_t now)
{
	unsigned k;

	if (egress_is_pending(e))
		return 0;
	k = scheduler_pass(e->scheduler, pkts, n, now);
	if (k == 0)
		return 0;
	memcpy(e->pending, pkts, k * sizeof(*pkts));
	e->pending_end = k;
	e->pending_at = direction_send(e->dir, e->pending, k);
	return k;
}

/* Up to EGRESS_BATCH packets of this direction's owner. */
static void take_in(struct egress *e, const struct dray_pkt *pkts, unsigned n, uint64_t now)
{
	unsigned k = pass(e, pkts, n, now);

	if (k < n)
		scheduler_put(e->scheduler, &pkts[k], n - k, now);
}

/* How many packets, from the first, are of this direction's owner, and can be sent. */
static unsigned own_packets(const struct direction *dir, const struct dray_pkt *pkts, unsigned n)
{
	unsigned k;

	for (k = 0; k < n && k < EGRESS_BATCH && pkts[k].owner == dir->owner &&
		    direction_can_send(dir, &pkts[k]);
	     k++)
		;
	return k;
}

/*
 * A packet of another owner waits as a copy: its own buffer is the peer's of another link, say.
 * False: there is no buffer to copy to.
 */
static bool take_in_copy(struct egress *e, struct dray_pkt *pkt, uint64_t now)
{
	struct dray_pkt copy;

	if (!direction_can_send(e->dir, pkt)) {
		direction_drop(e->dir, pkt);
		return true;
	}
	if (!direction_copy(e->dir, &copy, pkt))
		return false;
	dray_release(pkt, 1);
	take_in(e, &copy, 1, now);
	return true;
}

unsigned egress_burst(struct egress *e, struct dray_pkt *pkts, unsigned n)
{
	uint64_t now = clock_ns();
	unsigned i = 0;

	egress_run(e, now);
	while (i < n) {
		unsigned k = own_packets(e->dir, &pkts[i], n - i);

		if (k)
			take_in(e, &pkts[i], k, now);
		else if (take_in_copy(e, &pkts[i], now))
			k = 1;
		if (k == 0)
			break;
		i += k;
	}
	egress_run(e, now);
	wake_pacer(e, egress_due(e, now), now);
	return i;
}
