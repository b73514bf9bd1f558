/* SPDX-License-Identifier: Apache-2.0 */
/* dray_wait: spin, then sleep, until there is something to do. */
#include <errno.h>
#include <poll.h>

#include "burst.h"
#include "siblings.h"

#define MS 1000000ull
#define DRAINING_MS 5  /* while an old generation may still have packets */
#define DRAINING_MAX 8 /* of which the bells are listened to */
#define SPIN_SERVICE 1024

static bool direction_ready(struct direction *dir)
{
	return dir->owner && dir->owner->ops->ready(dir->owner);
}

/* Ask for a ring, and look once more. */
static bool direction_arm(struct direction *dir)
{
	if (!dir->owner)
		return false;
	if (!dir->owner->ops->arm)
		return direction_ready(dir);
	dir->armed = true;
	return dir->owner->ops->arm(dir->owner);
}

static void direction_disarm(struct direction *dir)
{
	if (dir->owner && dir->armed && dir->owner->ops->disarm)
		dir->owner->ops->disarm(dir->owner);
	dir->armed = false;
}

/* One bell is for buffers of both kinds, so the second look is after it was armed, as the first. */
static unsigned tx_holds(struct direction *dir, bool (*look)(struct direction *))
{
	unsigned holds = look(dir) ? DRAY_WAIT_TX : 0;

	if (dir->owner && dir->owner->ops->message_ready &&
	    dir->owner->ops->message_ready(dir->owner))
		holds |= DRAY_WAIT_MESSAGE;
	return holds;
}

static unsigned what_holds(struct dray_port *port, unsigned queue, unsigned what,
			   bool (*look)(struct direction *))
{
	struct queue *q = &port->queues[queue];
	unsigned holds = 0;

	direction_follow(port, queue, &q->rx, false);
	direction_follow(port, queue, &q->tx, true);
	if (q->rx.draining)
		direction_retire(port, queue);
	for (struct dray_owner *h = q->rx.draining; h; h = h->draining)
		if (h->ops->ready(h))
			holds |= DRAY_WAIT_RX;
	if (q->rx.owner)
		owner_drain(
			q->rx.owner); /* the peer may wait for it, whatever this side waits for */
	if ((what & DRAY_WAIT_RX) && look(&q->rx))
		holds |= DRAY_WAIT_RX;
	if (what & (DRAY_WAIT_TX | DRAY_WAIT_MESSAGE))
		holds |= tx_holds(&q->tx, look);
	if ((what & DRAY_WAIT_EVENT) && dray_service(port) > 0)
		holds |= DRAY_WAIT_EVENT;
	return holds & what;
}

/* Sleep until a bell, the broker, the death of the peer, or for `ms`. */
static int sleep_on(struct dray_port *port, unsigned queue, unsigned what, int ms)
{
	struct queue *q = &port->queues[queue];
	struct generation *gen = q->rx.generation;
	struct pollfd p[4 + DRAINING_MAX] = {{.fd = -1},
					     {.fd = port->control.fd, .events = POLLIN},
					     {.fd = q->wake, .events = POLLIN},
					     {.fd = q->waker.fd, .events = POLLIN}};
	unsigned n = 4;
	bool netdev = gen && gen->kind == DRAY_LINK_NETDEV;

	if (gen && queue < gen->queues) {
		p[0].fd = gen->bells[queue];
		p[0].events = !netdev || (what & DRAY_WAIT_RX) ? POLLIN : 0;
		if (netdev && (what & DRAY_WAIT_TX))
			p[0].events |= POLLOUT;
	}
	if (q->rx.draining && ms > DRAINING_MS)
		ms = DRAINING_MS;
	for (struct dray_owner *h = q->rx.draining; h && n < 4 + DRAINING_MAX; h = h->draining)
		if (!atomic_load_explicit(&h->generation->peer_gone, memory_order_relaxed))
			p[n++] = (struct pollfd){.fd = h->generation->bells[queue],
						 .events = POLLIN};
	return poll(p, n, ms) < 0 ? -errno : 0;
}

/* Spin for as long as the mode says. */
static unsigned spin(struct dray_port *port, unsigned queue, unsigned what, uint64_t end_ns)
{
	uint64_t start = clock_ticks();
	unsigned holds, turns = 0;

	for (;;) {
		holds = what_holds(port, queue, what & ~(unsigned)DRAY_WAIT_EVENT, direction_ready);
		if (holds || port->mode == DRAY_MODE_SLEEPING)
			return holds;
		if (port->mode == DRAY_MODE_ADAPTIVE && clock_ticks() - start > port->spin_ticks)
			return 0;
		if (++turns % SPIN_SERVICE == 0) {
			(void)siblings_serve(port);
			if (dray_service(port) > 0 && (what & DRAY_WAIT_EVENT))
				return DRAY_WAIT_EVENT;
			if (clock_ns() >= end_ns)
				return 0;
		}
		clock_relax();
	}
}

/* Read all bells that rang; wait_here checks for packets once more before it sleeps. */
static void drain_bells(struct queue *q, unsigned queue)
{
	if (q->rx.owner && q->rx.owner->ops->arm)
		(void)bell_drain(q->rx.generation, queue, &q->rx.counters);
	for (struct dray_owner *h = q->rx.draining; h; h = h->draining)
		if (h->ops->arm && bell_drain(h->generation, queue, &q->rx.counters))
			(void)h->ops->arm(h);
}

static int wait_here(struct dray_port *port, unsigned queue, unsigned what, uint64_t end_ns)
{
	struct queue *q = &port->queues[queue];
	unsigned holds;
	int ret = 0;

	for (;;) {
		uint64_t now, left_ms;
		int most_ms;

		holds = spin(port, queue, what, end_ns);
		if (holds)
			return (int)holds;
		if (dray_service(port) > 0 && (what & DRAY_WAIT_EVENT))
			return DRAY_WAIT_EVENT;
		most_ms = siblings_serve(port);
		now = clock_ns();
		if (now >= end_ns || ret)
			return ret;
		if (port->mode == DRAY_MODE_BUSY)
			continue;
		drain_bells(q, queue);
		waker_sleep(&q->waker);
		holds = what_holds(port, queue, what, direction_arm);
		if (holds)
			return (int)holds;
		left_ms = (end_ns - now) / MS + 1;
		ret = sleep_on(port, queue, what,
			       left_ms < (uint64_t)most_ms ? (int)left_ms : most_ms);
		waker_awake(&q->waker);
	}
}

EXPORT int dray_wait(struct dray_port *port, unsigned queue, unsigned what, int timeout_ms)
{
	struct queue *q;
	int ret = 0;

	if (!port_valid(port))
		return -EBADF;
	if (queue >= port->queue_count || what == 0 ||
	    (what & ~(unsigned)(DRAY_WAIT_RX | DRAY_WAIT_TX | DRAY_WAIT_EVENT | DRAY_WAIT_MESSAGE)))
		return -EINVAL;
	q = &port->queues[queue];
	if (!direction_enter(q, &q->rx))
		return 0;
	if (direction_enter(q, &q->tx)) {
		ret = wait_here(port, queue, what,
				timeout_ms < 0 ? UINT64_MAX
					       : clock_ns() + (uint64_t)timeout_ms * MS);
		direction_disarm(&q->tx);
		direction_disarm(&q->rx);
		waker_awake(&q->waker);
		direction_leave(&q->tx);
	}
	direction_leave(&q->rx);
	return ret;
}
