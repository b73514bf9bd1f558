/* SPDX-License-Identifier: Apache-2.0 */
/* dray_wait: spin, then sleep, until there is something to do. */
#include <errno.h>
#include <poll.h>

#include "burst.h"
#include "egress/egress.h"
#include "siblings.h"

#define MS 1000000ull
#define DRAINING_MS 5  /* while an old generation may still have packets */
#define DRAINING_MAX 8 /* of which the bells are listened to */
#define SPIN_SERVICE 1024
#define SERVE_NS 10000000u /* between two services by a thread that sleeps for packets only */
#define SENDING (unsigned)(DRAY_WAIT_TX | DRAY_WAIT_MESSAGE)

/* One call: what it waits for, and which sides of the queue it serves. */
struct call {
	struct dray_port *port;
	struct queue *q;
	unsigned queue, what;
	bool rx, tx;
	struct waker *waker; /* of this thread */
	struct waker *other; /* of the thread that serves the other side; NULL: this one does */
};

/* The side whose thread this is. */
static struct direction *side(const struct call *c)
{
	return c->rx ? &c->q->rx : &c->q->tx;
}

/* Whether there is something; `arm`: ask for a ring, and look once more. */
static bool look(struct dray_owner *owner, bool arm)
{
	return arm && owner->ops->arm ? owner->ops->arm(owner) : owner->ops->ready(owner);
}

static bool direction_look(struct direction *dir, bool arm)
{
	if (!dir->owner)
		return false;
	dir->armed |= arm;
	return look(dir->owner, arm);
}

static unsigned rx_holds(const struct call *c, bool arm)
{
	struct direction *rx = &c->q->rx;
	const bool wanted = c->what & DRAY_WAIT_RX;
	bool holds = false;

	direction_follow(c->port, c->queue, rx, false);
	if (rx->draining)
		direction_retire(c->port, c->queue);
	for (struct dray_owner *h = rx->draining; h; h = h->draining)
		holds |= look(h, arm && wanted);
	if (rx->owner)
		owner_drain(rx->owner); /* the peer may wait for it, whatever this side waits for */
	if (wanted)
		holds |= direction_look(rx, arm);
	return holds ? DRAY_WAIT_RX : 0;
}

/* One bell is for buffers of both kinds, so the second look is after it was armed, as the first. */
static unsigned tx_holds_locked(const struct call *c, bool arm)
{
	struct direction *tx = &c->q->tx;
	unsigned holds = 0;

	direction_follow(c->port, c->queue, tx, true);
	if (!(c->what & SENDING))
		return 0;
	if (direction_look(tx, arm))
		holds = DRAY_WAIT_TX;
	if (tx->owner && tx->owner->ops->message_ready && tx->owner->ops->message_ready(tx->owner))
		holds |= DRAY_WAIT_MESSAGE;
	return holds;
}

static unsigned tx_holds(const struct call *c, bool arm)
{
	unsigned holds;

	egress_lock(&c->q->tx);
	holds = tx_holds_locked(c, arm);
	egress_unlock(&c->q->tx);
	return holds;
}

static unsigned what_holds(const struct call *c, bool arm)
{
	unsigned holds = 0;

	if (c->rx)
		holds = rx_holds(c, arm);
	if (c->tx)
		holds |= tx_holds(c, arm);
	return holds & c->what;
}

/* The same for a thread that is about to sleep, and events: any thread may have posted them. */
static unsigned holds_before_sleep(const struct call *c)
{
	unsigned holds = what_holds(c, true);

	if ((c->what & DRAY_WAIT_EVENT) && dray_service(c->port) > 0)
		holds |= DRAY_WAIT_EVENT;
	return holds;
}

/* Sleep until a bell, the broker, another thread, the death of the peer, or for `ms`. */
static int sleep_on(const struct call *c, int ms)
{
	const struct direction *dir = side(c);
	struct dray_owner *draining = c->rx ? dir->draining : NULL;
	struct generation *gen = dir->generation;
	struct pollfd p[3 + DRAINING_MAX] = {{.fd = -1},
					     {.fd = c->port->control.fd, .events = POLLIN},
					     {.fd = c->waker->fd, .events = POLLIN}};
	unsigned n = 3;
	bool netdev = gen && gen->kind == DRAY_LINK_NETDEV;

	if (gen && c->queue < gen->queues) {
		p[0].fd = gen->bells[c->queue];
		p[0].events = !netdev || (c->what & DRAY_WAIT_RX) ? POLLIN : 0;
		if (netdev && (c->what & DRAY_WAIT_TX))
			p[0].events |= POLLOUT;
	}
	if (draining && ms > DRAINING_MS)
		ms = DRAINING_MS;
	for (struct dray_owner *h = draining; h && n < 3 + DRAINING_MAX; h = h->draining)
		if (!atomic_load_explicit(&h->generation->peer_gone, memory_order_relaxed))
			p[n++] = (struct pollfd){.fd = h->generation->bells[c->queue],
						 .events = POLLIN};
	if (poll(p, n, ms) < 0)
		return -errno;
	if ((p[0].revents & ~(POLLIN | POLLOUT)) || p[1].revents)
		side(c)->served_ns = 0;
	return 0;
}

/*
 * Whether an adaptive port polls on. Only the arrival of packets is learned: a wait for anything
 * else polls for the longest time.
 */
static bool polls_on(const struct call *c, uint64_t start)
{
	uint64_t now = clock_ticks();

	if (c->rx && (c->what & DRAY_WAIT_RX) && !(c->what & SENDING))
		return idle_polls(&c->q->rx.idle, now);
	return now - start < c->port->spin_ticks;
}

/* Spin for as long as the mode says. */
static unsigned spin(const struct call *c, uint64_t end_ns)
{
	struct dray_port *port = c->port;
	uint64_t start = clock_ticks();
	unsigned holds, turns = 0;

	for (;;) {
		holds = what_holds(c, false);
		if (holds || port->mode == DRAY_MODE_SLEEPING)
			return holds;
		if (port->mode == DRAY_MODE_ADAPTIVE && !polls_on(c, start))
			return 0;
		if (++turns % SPIN_SERVICE == 0) {
			(void)siblings_serve(port);
			if (dray_service(port) > 0 && (c->what & DRAY_WAIT_EVENT))
				return DRAY_WAIT_EVENT;
			if (clock_ns() >= end_ns)
				return 0;
		}
		clock_relax();
	}
}

/* Read all bells that this thread sleeps on; it looks for packets once more before it sleeps. */
static void drain_bells(const struct call *c)
{
	struct direction *dir = side(c);
	unsigned rings = bell_drain(dir->owner, c->queue, &dir->counters);

	for (struct dray_owner *h = c->rx ? dir->draining : NULL; h; h = h->draining)
		rings += bell_drain(h, c->queue, &dir->counters);
	if (rings && c->other)
		waker_wake(c->other);
}

/*
 * Serve the control plane, unless that was done a moment ago and nothing has happened on its
 * descriptors since: waking up for a packet costs few system calls. Returns whether there are
 * events that the call waits for.
 */
static bool serve(const struct call *c, uint64_t now, bool must)
{
	struct direction *dir = side(c);
	bool events = c->what & DRAY_WAIT_EVENT;

	if (!must && !events && now - dir->served_ns < SERVE_NS)
		return false;
	dir->served_ns = now;
	return dray_service(c->port) > 0 && events;
}

static int wait_here(const struct call *c, uint64_t end_ns)
{
	struct dray_port *port = c->port;
	unsigned holds;
	int ret = 0;

	for (;;) {
		uint64_t now, left_ms;
		int most_ms;

		holds = spin(c, end_ns);
		if (holds)
			return (int)holds;
		now = clock_ns();
		if (serve(c, now, now >= end_ns || ret))
			return DRAY_WAIT_EVENT;
		most_ms = siblings_serve(port);
		if (now >= end_ns || ret)
			return ret;
		if (port->mode == DRAY_MODE_BUSY)
			continue;
		drain_bells(c);
		waker_sleep(c->waker);
		holds = holds_before_sleep(c);
		if (holds)
			return (int)holds;
		if (!waker_asleep(c->waker))
			continue; /* woken already, or moved to another generation */
		left_ms = (end_ns - now) / MS + 1;
		ret = sleep_on(c, left_ms < (uint64_t)most_ms ? (int)left_ms : most_ms);
		waker_awake(c->waker);
	}
}

/* `found`: packets, which the application may take later. */
static void stop_receiving(struct direction *rx, bool found)
{
	if (found && rx->idle.began)
		idle_see(&rx->idle, clock_ticks());
	direction_disarm(rx);
}

static bool enter_tx(struct queue *q)
{
	bool entered;

	egress_lock(&q->tx);
	entered = direction_enter(q, &q->tx);
	egress_unlock(&q->tx);
	return entered;
}

static void leave_tx(struct queue *q)
{
	egress_lock(&q->tx);
	direction_disarm(&q->tx);
	direction_leave(&q->tx);
	egress_unlock(&q->tx);
}

/* Enter the sides that the call serves, wait, and leave them. 0: another call is in one of them. */
static int enter_and_wait(const struct call *c, int timeout_ms)
{
	struct queue *q = c->q;
	int ret = 0;

	if (c->rx && !direction_enter(q, &q->rx))
		return 0;
	if (!c->tx || enter_tx(q)) {
		ret = wait_here(c, timeout_ms < 0 ? UINT64_MAX
						  : clock_ns() + (uint64_t)timeout_ms * MS);
		waker_awake(c->waker);
		if (c->tx)
			leave_tx(q);
		if (c->rx)
			stop_receiving(&q->rx, ret > 0 && (ret & DRAY_WAIT_RX));
	}
	if (c->rx)
		direction_leave(&q->rx);
	return ret;
}

/* Whether the bits go together. */
static bool what_valid(unsigned what)
{
	const unsigned all = SENDING | DRAY_WAIT_RX | DRAY_WAIT_EVENT, bits = what & all;

	return bits && !(what & ~(all | DRAY_WAIT_ONE_SIDE)) &&
	       !((what & DRAY_WAIT_ONE_SIDE) && (bits & DRAY_WAIT_RX) && (bits & SENDING));
}

EXPORT int dray_wait(struct dray_port *port, unsigned queue, unsigned what, int timeout_ms)
{
	const bool one = what & DRAY_WAIT_ONE_SIDE, sending = what & SENDING;
	struct call c = {.port = port, .queue = queue, .what = what};

	if (!port_valid(port))
		return -EBADF;
	if (queue >= port->queue_count || !what_valid(what))
		return -EINVAL;
	c.q = &port->queues[queue];
	c.rx = !one || !sending;
	c.tx = !one || sending;
	c.waker = c.rx ? &c.q->waker : &c.q->tx_waker;
	if (one)
		c.other = c.rx ? &c.q->tx_waker : &c.q->waker;
	return enter_and_wait(&c, timeout_ms);
}
