/* SPDX-License-Identifier: Apache-2.0 */
/* The data path above the transports: ownership, switching between generations, copying what is not at home, asking to be woken. */
#include "burst.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "watch.h"

#define COPY_BATCH 32
#define BELL_BATCH 8

static void side_owned_by(struct queue *queue, struct side *side, uintptr_t self)
{
	side->thread = self;
	if (side->home)
		atomic_store_explicit(&side->home->owner, self, memory_order_relaxed);
	for (struct dray_home *h = side->draining; h; h = h->draining)
		atomic_store_explicit(&h->owner, self, memory_order_relaxed);
	if (side == &queue->rx && queue->pool)
		atomic_store_explicit(&queue->pool->home.owner, self, memory_order_relaxed);
}

bool side_enter(struct queue *queue, struct side *side)
{
	uintptr_t self = thread_self();

	if (unlikely(atomic_load_explicit(&side->busy, memory_order_relaxed))) {
		atomic_fetch_add_explicit(&side->counters.n[COUNT_MISUSE], 1, memory_order_relaxed);
		return false;
	}
	atomic_store_explicit(&side->busy, 1, memory_order_relaxed);
	if (unlikely(side->thread != self))
		side_owned_by(queue, side, self);
	return true;
}

void side_leave(struct side *side)
{
	atomic_store_explicit(&side->busy, 0, memory_order_relaxed);
}

unsigned bell_drain(struct attachment *a, unsigned queue, struct counters *counters)
{
	unsigned rings;
	char bytes[2];

	for (rings = 0; rings < BELL_BATCH; rings++) {
		ssize_t n = recv(a->bells[queue], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0)
			break;
		if (n == 0) {
			/* release: pairs with the acquires in drain_from and retire_untaken. */
			atomic_store_explicit(&a->peer_gone, true, memory_order_release);
			break;
		}
		if (n != 1 || bytes[0] != 1)
			violation(counters, DRAY_BAD_BELL);
	}
	return rings;
}

/* What is left to be drained stays armed: its packets ring like all others. The caller looks at it next. */
static void drain_later(struct side *side, struct dray_home *h)
{
	h->draining = side->draining;
	side->draining = h;
	if (h->ops->arm)
		(void)h->ops->arm(h);
}

/* Leave the present home: sending, at once; receiving, when it is empty. */
static void side_abandon(struct queue *queue, struct side *side)
{
	struct dray_home *old = side->home;

	if (!old)
		return;
	side->home = NULL;
	side->armed = false;
	if (side == &queue->tx) {
		home_orphan(old);
		return;
	}
	waker_awake(&queue->waker);
	drain_later(side, old);
}

/* Generations that came and went while the receiving side was elsewhere may have packets too; oldest first. */
static void collect_missed(struct queue *q, unsigned queue, struct attachment *a, const struct attachment *current)
{
	struct dray_home *h;

	if (!a)
		return;
	collect_missed(q, queue, a->next, current);
	h = a->rx[queue];
	if (a == current || a->kind == DRAY_LINK_NONE || !h || h->adopted || h->retired)
		return;
	h->adopted = true;
	h->waker = &q->waker;
	atomic_store_explicit(&h->owner, q->rx.thread, memory_order_relaxed);
	drain_later(&q->rx, h);
}

void side_leave_tap(struct side *side)
{
	if (side->tap)
		capture_put(side->tap->capture);
	side->tap = NULL;
}

static void follow_capture(struct dray_port *port, unsigned queue, struct side *side, bool sending)
{
	side_leave_tap(side);
	if (port->capture) {
		capture_get(port->capture);
		side->tap = capture_tap(port->capture, queue, sending);
	}
}

static void move_to(struct dray_port *port, unsigned queue, struct side *side, struct attachment *a, struct dray_home *home)
{
	struct queue *q = &port->queues[queue];

	side_abandon(q, side);
	if (side == &q->rx)
		collect_missed(q, queue, port->attachments, a);
	side->attachment = home ? a : NULL;
	side->home = home;
	if (home) {
		home->adopted = true;
		home->waker = &q->waker;
	}
}

void side_update(struct dray_port *port, unsigned queue, struct side *side, bool sending)
{
	struct dray_home *home = NULL;
	struct attachment *a;

	pthread_mutex_lock(&port->lock);
	if (port->queues[queue].wake >= 0 && !sending) {
		eventfd_t switches;

		(void)eventfd_read(port->queues[queue].wake, &switches);
	}
	a = atomic_load_explicit(&port->current, memory_order_relaxed);
	if (a && queue < a->queues)
		home = sending ? a->tx[queue] : a->rx[queue];
	if (!home || home != side->home)
		move_to(port, queue, side, a, home);
	follow_capture(port, queue, side, sending);
	side->switches = atomic_load_explicit(&port->switches, memory_order_relaxed);
	side_owned_by(&port->queues[queue], side, side->thread); /* the home is new, and a pool may be */
	pthread_mutex_unlock(&port->lock);
}

static bool is_shm(const struct dray_home *h)
{
	return h->attachment->kind == DRAY_LINK_SHM;
}

/* Nothing more comes from a home that its side had left. */
static void end_draining(struct dray_port *port, unsigned queue, struct dray_home **link)
{
	struct dray_home *h = *link;

	*link = h->draining;
	unwatch_bell(port, h->attachment, queue);
	home_orphan(h);
}

/*
 * Take what was published in generations that this side has left, oldest first. A sender moves from one lane to the next and never back: once
 * there is something in a newer lane (`newer`: looked at before), an older one gets nothing more. Until then the newer ones wait: *held.
 */
static unsigned drain_from(struct dray_port *port, unsigned queue, struct dray_home **link, struct dray_pkt *pkts, unsigned n, bool newer,
			   bool *held)
{
	struct side *side = &port->queues[queue].rx;
	struct dray_home *h = *link;
	unsigned got;
	bool final;

	if (!h)
		return 0;
	got = drain_from(port, queue, &h->draining, pkts, n, newer || (is_shm(h) && h->ops->ready(h)), held);
	if (got || (*held && is_shm(h)))
		return got;
	/* acquire: pairs with the releases in bell_drain and note_death; the tail that is read next is final. */
	final = atomic_load_explicit(&h->attachment->peer_gone, memory_order_acquire) ||
		clock_coarse_ns() - h->attachment->left_ns > DRAIN_NS || (is_shm(h) && newer);
	got = h->ops->recv(h, pkts, n);
	if (got)
		return got;
	if (is_shm(h) && bell_drain(h->attachment, queue, &side->counters) && h->ops->arm(h))
		return h->ops->recv(h, pkts, n);
	if (final && !h->ops->ready(h))
		end_draining(port, queue, link);
	else
		*held |= is_shm(h);
	return 0;
}

/* Take what there is, in the order in which it was published. */
static unsigned recv_any(struct dray_port *port, unsigned queue, struct side *side, struct dray_pkt *pkts, unsigned n)
{
	struct dray_home *h = side->home;
	bool held = false;

	if (unlikely(side->draining)) {
		unsigned got = drain_from(port, queue, &side->draining, pkts, n, h && is_shm(h) && h->ops->ready(h), &held);

		if (got)
			return got;
	}
	return likely(h && !(held && is_shm(h))) ? h->ops->recv(h, pkts, n) : 0;
}

/* Nothing came: ask to be woken, when it is time to. Returns packets that came in between. */
static unsigned recv_idle(struct dray_port *port, unsigned queue, struct side *side, struct dray_pkt *pkts, unsigned n)
{
	struct waker *waker = &port->queues[queue].waker;
	struct dray_home *h = side->home;
	unsigned rings, got;

	if (!h || !h->ops->arm)
		return 0;
	if (port->mode == DRAY_MODE_ADAPTIVE && !side->armed) {
		uint64_t now = clock_ticks();

		if (side->idle_ticks == 0)
			side->idle_ticks = now;
		if (now - side->idle_ticks < port->spin_ticks)
			return 0;
	}
	rings = bell_drain(side->attachment, queue, &side->counters);
	if (side->armed && rings == 0 && !waker_rang(waker))
		return 0;
	side->armed = true;
	waker_sleep(waker);
	if (!h->ops->arm(h))
		return 0;
	got = recv_any(port, queue, side, pkts, n);
	if (got) {
		h->ops->disarm(h);
		waker_awake(waker);
		side->armed = false;
		side->idle_ticks = 0;
	}
	return got;
}

static inline unsigned recv_sleeper(struct dray_port *port, unsigned queue, struct side *side, struct dray_pkt *pkts, unsigned n,
				    unsigned got)
{
	if (got == 0)
		return recv_idle(port, queue, side, pkts, n);
	side->idle_ticks = 0;
	if (side->armed) {
		side->armed = false;
		side->home->ops->disarm(side->home);
		waker_awake(&port->queues[queue].waker);
	}
	return got;
}

static void capture_received(struct tap *tap, const struct dray_pkt *pkts, unsigned n)
{
	if (n == 0)
		return;
	tap_fill(tap, pkts, n);
	tap_publish(tap, n);
}

EXPORT unsigned dray_rx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n)
{
	struct side *side;
	unsigned got;

	if (unlikely(!port_valid(port) || queue >= port->queue_count))
		return 0;
	side = &port->queues[queue].rx;
	if (unlikely(!side_enter(&port->queues[queue], side)))
		return 0;
	side_follow(port, queue, side, false);
	got = recv_any(port, queue, side, pkts, n);
	if (port->mode != DRAY_MODE_BUSY)
		got = recv_sleeper(port, queue, side, pkts, n, got);
	if (unlikely(side->tap))
		capture_received(side->tap, pkts, got);
	side_leave(side);
	return got;
}

EXPORT unsigned dray_tx_alloc(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n, uint32_t size)
{
	struct side *side;
	unsigned got = 0;

	if (unlikely(!port_valid(port) || queue >= port->queue_count))
		return 0;
	side = &port->queues[queue].tx;
	if (unlikely(!side_enter(&port->queues[queue], side)))
		return 0;
	side_follow(port, queue, side, true);
	if (likely(side->home))
		got = side->home->ops->alloc(side->home, pkts, n, size);
	side_leave(side);
	return got;
}

/* Copied before they are sent: after that they are the peer's. */
static unsigned send_captured(struct side *side, struct dray_pkt *pkts, unsigned n)
{
	struct dray_home *h = side->home;
	unsigned fit, used;

	for (fit = 0; fit < n && pkts[fit].home == h && pkts[fit].length - 1 < pkts[fit].room; fit++)
		;
	if (fit == 0)
		return h->ops->send(h, pkts, 1);
	tap_fill(side->tap, pkts, fit);
	used = h->ops->send(h, pkts, fit);
	tap_publish(side->tap, used);
	return used;
}

static inline unsigned send_home(struct side *side, struct dray_pkt *pkts, unsigned n)
{
	if (unlikely(side->tap))
		return send_captured(side, pkts, n);
	return side->home->ops->send(side->home, pkts, n);
}

static void drop(struct side *side, struct dray_pkt *p)
{
	count(&side->counters, COUNT_TX_DROPPED, 1);
	dray_release(p, 1);
}

static void copy_packet(struct dray_pkt *to, const struct dray_pkt *from)
{
	memcpy(to->data, from->data, from->length);
	to->length = from->length;
	to->flags = from->flags;
	to->vlan = from->vlan;
	to->hash = from->hash;
	to->meta = from->meta;
}

/* Whether a packet can be sent from here at all. */
static bool can_send(const struct side *side, const struct dray_pkt *p)
{
	return side->home && p->home && p->length > 0 && p->length <= p->room &&
	       (p->length <= side->attachment->packet_max || p->length <= side->attachment->message_max);
}

static void drop_or_count(struct side *side, struct dray_pkt *p)
{
	if (!p->home)
		count(&side->counters, COUNT_MISUSE, 1);
	else
		drop(side, p);
}

/*
 * Send packets whose buffers are not this home's, by copying them. Returns how many were consumed: an original is, once its copy is sent;
 * what cannot be sent at all is dropped when it comes first.
 */
static unsigned send_copies(struct side *side, struct dray_pkt *pkts, unsigned n)
{
	struct dray_pkt copies[COPY_BATCH];
	struct dray_home *h = side->home;
	unsigned made, sent = 0;

	if (!can_send(side, &pkts[0])) {
		drop_or_count(side, &pkts[0]);
		return 1;
	}
	for (made = 0; made < n && made < COPY_BATCH && pkts[made].home != h && can_send(side, &pkts[made]); made++) {
		if (!h->ops->alloc(h, &copies[made], 1, pkts[made].length))
			break;
		copy_packet(&copies[made], &pkts[made]);
	}
	if (made)
		sent = send_home(side, copies, made);
	count(&side->counters, COUNT_TX_COPIED, sent);
	dray_release(pkts, sent);
	dray_release(&copies[sent], made - sent); /* the device has no room now */
	return sent;
}

EXPORT unsigned dray_tx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n)
{
	struct side *side;
	unsigned i = 0, used;

	if (unlikely(!port_valid(port) || queue >= port->queue_count))
		return 0;
	side = &port->queues[queue].tx;
	if (unlikely(!side_enter(&port->queues[queue], side)))
		return 0;
	side_follow(port, queue, side, true);
	while (i < n) {
		if (likely(side->home && pkts[i].home == side->home))
			used = send_home(side, &pkts[i], n - i);
		else
			used = send_copies(side, &pkts[i], n - i);
		i += used;
		if (used == 0)
			break;
	}
	side_leave(side);
	return i;
}
