/* SPDX-License-Identifier: Apache-2.0 */
/* The data path above the transports: receiving in order, asking to be woken, sending. */
#include "burst.h"

#include <errno.h>

#include "egress/egress.h"
#include "send.h"
#include "watch.h"

#define POLLED_NS 1000000000u /* a queue that was polled in this time keeps all packets */

static bool is_shm(const struct dray_owner *h)
{
	return h->generation->kind == DRAY_LINK_SHM;
}

/* An owner that its direction had left gets no more packets. */
static void end_draining(struct dray_port *port, unsigned queue, struct dray_owner **link)
{
	struct dray_owner *h = *link;

	*link = h->draining;
	unwatch_bell(port, h->generation, queue);
	owner_orphan(h);
}

/*
 * Whether the peer publishes nothing more in an owner that was left: the tail that is read next is
 * final.
 */
static bool draining_final(const struct dray_owner *h)
{
	/* acquire: pairs with the releases in bell_drain, note_death and generation_hang_up. */
	return atomic_load_explicit(&h->generation->peer_gone, memory_order_acquire) ||
	       clock_coarse_ns() - h->generation->left_ns > DRAIN_NS;
}

void direction_retire(struct dray_port *port, unsigned queue)
{
	struct direction *dir = &port->queues[queue].rx;
	bool polled = clock_coarse_ns() - dir->polled_ns <= POLLED_NS;
	struct dray_owner **link = &dir->draining;

	while (*link) {
		struct dray_owner *h = *link;
		/* relaxed: a mark that is seen late only keeps the memory for longer. */
		bool drop = !polled &&
			    atomic_load_explicit(&h->generation->surplus, memory_order_relaxed);

		if (drop || (draining_final(h) && !h->ops->ready(h)))
			end_draining(port, queue, link);
		else
			link = &h->draining;
	}
}

/*
 * Take packets of generations that this direction has left, oldest first. A sender moves from one
 * lane to the next and never back: once a newer lane has a packet (`newer`, which was read before),
 * an older one gets no more. Until then the newer ones wait: *held.
 */
static unsigned drain_from(struct dray_port *port, unsigned queue, struct dray_owner **link,
			   struct dray_pkt *pkts, unsigned n, bool newer, bool *held)
{
	struct direction *dir = &port->queues[queue].rx;
	struct dray_owner *h = *link;
	unsigned got;
	bool final;

	if (!h) {
		/* once per call of dray_rx_burst; here, so that recv_any stays short */
		dir->polled_ns = clock_coarse_ns();
		return 0;
	}
	got = drain_from(port, queue, &h->draining, pkts, n,
			 newer || (is_shm(h) && h->ops->ready(h)), held);
	if (got || (*held && is_shm(h)))
		return got;
	final = draining_final(h) || (is_shm(h) && newer);
	got = h->ops->recv(h, pkts, n);
	if (got)
		return got;
	if (bell_drain(h, queue, &dir->counters) && h->ops->arm(h))
		return h->ops->recv(h, pkts, n);
	if (final && !h->ops->ready(h))
		end_draining(port, queue, link);
	else
		*held |= is_shm(h);
	return 0;
}

/* Take packets in the order in which they were published. */
static unsigned recv_any(struct dray_port *port, unsigned queue, struct direction *dir,
			 struct dray_pkt *pkts, unsigned n)
{
	struct dray_owner *h = dir->owner;
	bool held = false;

	if (unlikely(dir->draining)) {
		unsigned got = drain_from(port, queue, &dir->draining, pkts, n,
					  h && is_shm(h) && h->ops->ready(h), &held);

		if (got)
			return got;
	}
	return likely(h && !(held && is_shm(h))) ? h->ops->recv(h, pkts, n) : 0;
}

/*
 * Ask for a ring of every lane that packets may be in. Returns whether there are some by now. The
 * descriptor of a network device is the application's to watch: nobody takes a ring from there.
 */
static bool lanes_arm(struct direction *dir)
{
	bool ready = dir->owner && dir->owner->ops->arm && dir->owner->ops->arm(dir->owner);

	for (struct dray_owner *h = dir->draining; h; h = h->draining)
		ready |= h->ops->arm && h->ops->arm(h);
	return ready;
}

static void recv_awake(struct queue *q)
{
	direction_disarm(&q->rx);
	waker_awake(&q->waker);
}

/* Nothing came: ask to be woken, if it is time to. Returns packets that came in between. */
static unsigned recv_idle(struct dray_port *port, unsigned queue, struct direction *dir,
			  struct dray_pkt *pkts, unsigned n)
{
	struct queue *q = &port->queues[queue];
	unsigned rings, got;

	if (port->mode == DRAY_MODE_ADAPTIVE && !dir->armed &&
	    idle_polls(&dir->idle, clock_ticks()))
		return 0;
	rings = bell_drain(dir->owner, queue, &dir->counters);
	if (rings)
		waker_wake(&q->tx_waker);
	if (dir->armed && rings == 0 && !waker_rang(&q->waker))
		return 0;
	do {
		dir->armed = true;
		waker_sleep(&q->waker);
		direction_follow(port, queue, dir, false);
	} while (!dir->armed); /* it moved */
	if (!lanes_arm(dir))
		return 0;
	got = recv_any(port, queue, dir, pkts, n);
	if (got)
		recv_awake(q);
	return got;
}

static inline unsigned recv_sleeper(struct dray_port *port, unsigned queue, struct direction *dir,
				    struct dray_pkt *pkts, unsigned n, unsigned got)
{
	if (got == 0)
		got = recv_idle(port, queue, dir, pkts, n);
	else if (dir->armed)
		recv_awake(&port->queues[queue]);
	if (got && dir->idle.began)
		idle_end(&dir->idle, clock_ticks(), got);
	return got;
}

static void capture_received(struct capture_ring *ring, const struct dray_pkt *pkts, unsigned n)
{
	if (n == 0)
		return;
	capture_ring_fill(ring, pkts, n);
	capture_ring_publish(ring, n);
}

/* Enter a direction for one call, in its present generation; NULL: no such queue, or misuse. */
static inline struct direction *begin_burst(struct dray_port *port, unsigned queue, bool sending)
{
	struct direction *dir;

	if (unlikely(!port_valid(port) || queue >= port->queue_count))
		return NULL;
	dir = sending ? &port->queues[queue].tx : &port->queues[queue].rx;
	if (sending)
		egress_lock(dir);
	if (unlikely(!direction_enter(&port->queues[queue], dir))) {
		if (sending)
			egress_unlock(dir);
		return NULL;
	}
	direction_follow(port, queue, dir, sending);
	return dir;
}

static inline void end_burst(struct direction *dir, bool sending)
{
	direction_leave(dir);
	if (sending)
		egress_unlock(dir);
}

EXPORT unsigned dray_rx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts,
			      unsigned n)
{
	struct direction *dir;
	unsigned got;

	dir = begin_burst(port, queue, false);
	if (unlikely(!dir))
		return 0;
	got = recv_any(port, queue, dir, pkts, n);
	if (port->mode != DRAY_MODE_BUSY)
		got = recv_sleeper(port, queue, dir, pkts, n, got);
	if (unlikely(dir->capture))
		capture_received(dir->capture, pkts, got);
	end_burst(dir, false);
	if (unlikely(port_egress(port)))
		egress_poll(port_egress(port));
	return got;
}

EXPORT int dray_may_sleep(struct dray_port *port, unsigned queue)
{
	if (!port_valid(port))
		return -EBADF;
	if (port->mode == DRAY_MODE_BUSY)
		return -ENOTSUP;
	return queue < port->queue_count ? port->queues[queue].rx.armed : -EINVAL;
}

EXPORT unsigned dray_tx_alloc(struct dray_port *port, unsigned queue, struct dray_pkt *pkts,
			      unsigned n, uint32_t size)
{
	struct direction *dir;
	unsigned got = 0;

	dir = begin_burst(port, queue, true);
	if (unlikely(!dir))
		return 0;
	if (likely(dir->owner))
		got = dir->owner->ops->alloc(dir->owner, pkts, n, size);
	if (unlikely(got < n) && egress_of(dir))
		got += egress_alloc(dir->egress, &pkts[got], n - got, size);
	end_burst(dir, true);
	return got;
}

EXPORT unsigned dray_tx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts,
			      unsigned n)
{
	struct direction *dir;
	unsigned sent;

	dir = begin_burst(port, queue, true);
	if (unlikely(!dir))
		return 0;
	if (unlikely(egress_of(dir)))
		sent = egress_burst(dir->egress, pkts, n);
	else
		sent = direction_send(dir, pkts, n);
	end_burst(dir, true);
	return sent;
}
