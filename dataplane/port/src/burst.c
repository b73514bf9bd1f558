/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data path above the transports: which thread uses a queue, following a switch, copying
 * packets of other owners, asking to be woken.
 */
#include "burst.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "rights.h"
#include "watch.h"

#define COPY_BATCH 32
#define BELL_BATCH 8
#define POLLED_NS 1000000000u /* a queue that was polled in this time keeps all packets */

static void direction_used_by(struct queue *queue, struct direction *dir, uintptr_t self)
{
	dir->thread = self;
	if (dir->owner)
		atomic_store_explicit(&dir->owner->thread, self, memory_order_relaxed);
	for (struct dray_owner *h = dir->draining; h; h = h->draining)
		atomic_store_explicit(&h->thread, self, memory_order_relaxed);
	if (dir == &queue->rx && queue->pool)
		atomic_store_explicit(&queue->pool->owner.thread, self, memory_order_relaxed);
}

bool direction_enter(struct queue *queue, struct direction *dir)
{
	uintptr_t self = thread_self();

	if (unlikely(atomic_load_explicit(&dir->busy, memory_order_relaxed))) {
		atomic_fetch_add_explicit(&dir->counters.n[COUNT_MISUSE], 1, memory_order_relaxed);
		return false;
	}
	atomic_store_explicit(&dir->busy, 1, memory_order_relaxed);
	if (unlikely(dir->thread != self))
		direction_used_by(queue, dir, self);
	return true;
}

void direction_leave(struct direction *dir)
{
	atomic_store_explicit(&dir->busy, 0, memory_order_relaxed);
}

/*
 * Whether a bell may be read, if descriptors can be in it. This thread must not receive those, not
 * even to drop them: so the peer is as good as gone.
 */
static bool bell_readable(struct generation *gen, unsigned queue, struct counters *counters)
{
	/* relaxed: a reader of another bell that sees this late looks for itself. */
	if (atomic_load_explicit(&gen->peer_gone, memory_order_relaxed))
		return false;
	if (!rights_attached(gen->bells[queue]))
		return true;
	violation(counters, DRAY_BAD_BELL);
	generation_hang_up(gen);
	return false;
}

static unsigned read_bell(struct generation *gen, unsigned queue, struct counters *counters)
{
	unsigned rings;
	char bytes[2];

	for (rings = 0; rings < BELL_BATCH; rings++) {
		ssize_t n;

		if (unlikely(gen->discarder) && !bell_readable(gen, queue, counters))
			break;
		n = recv(gen->bells[queue], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0)
			break;
		if (n == 0) {
			/* release: pairs with the acquires in draining_final and retire_untaken. */
			atomic_store_explicit(&gen->peer_gone, true, memory_order_release);
			break;
		}
		if (n != 1 || bytes[0] != 1)
			violation(counters, DRAY_BAD_BELL);
	}
	return rings;
}

unsigned bell_drain(struct dray_owner *owner, unsigned queue, struct counters *counters)
{
	struct generation *gen;
	unsigned rings;

	if (!owner || !owner->ops->arm)
		return 0;
	gen = owner->generation;
	if (likely(!gen->discarder))
		return read_bell(gen, queue, counters);
	/* If another thread reads, it wakes this one; what it leaves ends this thread's sleep. */
	if (atomic_exchange_explicit(&gen->reading[queue], true, memory_order_acquire))
		return 0;
	rings = read_bell(gen, queue, counters);
	atomic_store_explicit(&gen->reading[queue], false, memory_order_release);
	return rings;
}

/*
 * An owner that is still to be drained stays armed, so its packets ring like all others. The caller
 * polls it next.
 */
static void drain_later(struct direction *dir, struct dray_owner *h)
{
	h->draining = dir->draining;
	dir->draining = h;
	if (h->ops->arm)
		(void)h->ops->arm(h);
}

/* Leave the current owner: sending, at once; receiving, when it is empty. */
static void direction_abandon(struct queue *queue, struct direction *dir)
{
	struct dray_owner *old = dir->owner;

	if (!old)
		return;
	dir->owner = NULL;
	if (dir == &queue->tx)
		owner_orphan(old);
	else
		drain_later(dir, old);
}

/*
 * Generations that came and went between two calls of the receiving direction may have packets too;
 * oldest first.
 */
static void collect_missed(struct queue *q, unsigned queue, struct generation *gen,
			   const struct generation *current)
{
	struct dray_owner *h;

	if (!gen)
		return;
	collect_missed(q, queue, gen->next, current);
	h = gen->rx[queue];
	if (gen == current || gen->kind == DRAY_LINK_NONE || !h || h->adopted || h->retired)
		return;
	h->adopted = true;
	h->waker = &q->waker;
	atomic_store_explicit(&h->thread, q->rx.thread, memory_order_relaxed);
	drain_later(&q->rx, h);
}

void direction_disarm(struct direction *dir)
{
	if (dir->owner && dir->armed && dir->owner->ops->disarm)
		dir->owner->ops->disarm(dir->owner);
	dir->armed = false;
}

void direction_leave_capture(struct direction *dir)
{
	if (dir->capture)
		capture_put(dir->capture->capture);
	dir->capture = NULL;
}

static void follow_capture(struct dray_port *port, unsigned queue, struct direction *dir,
			   bool sending)
{
	direction_leave_capture(dir);
	if (port->capture) {
		capture_get(port->capture);
		dir->capture = capture_ring_of(port->capture, queue, sending);
	}
}

static void move_to(struct dray_port *port, unsigned queue, struct direction *dir,
		    struct generation *gen, struct dray_owner *owner)
{
	struct queue *q = &port->queues[queue];

	dir->armed = false;
	direction_abandon(q, dir);
	if (dir == &q->rx) {
		waker_awake(&q->waker);
		collect_missed(q, queue, port->generations, gen);
	}
	dir->generation = owner ? gen : NULL;
	dir->owner = owner;
	if (owner) {
		owner->adopted = true;
		owner->waker = &q->waker;
		owner->alone = dir == &q->tx ? &q->tx_waker : NULL;
	}
}

void direction_update(struct dray_port *port, unsigned queue, struct direction *dir, bool sending)
{
	struct dray_owner *owner = NULL;
	struct generation *gen;

	pthread_mutex_lock(&port->lock);
	gen = atomic_load_explicit(&port->current, memory_order_relaxed);
	if (gen && queue < gen->queues)
		owner = sending ? gen->tx[queue] : gen->rx[queue];
	if (!owner || owner != dir->owner)
		move_to(port, queue, dir, gen, owner);
	follow_capture(port, queue, dir, sending);
	dir->switches = atomic_load_explicit(&port->switches, memory_order_relaxed);
	/* the owner is new, and a pool may be */
	direction_used_by(&port->queues[queue], dir, dir->thread);
	pthread_mutex_unlock(&port->lock);
}

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
	if (unlikely(!direction_enter(&port->queues[queue], dir)))
		return NULL;
	direction_follow(port, queue, dir, sending);
	return dir;
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
	direction_leave(dir);
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
	direction_leave(dir);
	return got;
}

/* Capture before sending: afterwards the packets belong to the peer. */
static unsigned send_captured(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	struct dray_owner *h = dir->owner;
	unsigned fit, used;

	for (fit = 0; fit < n && pkts[fit].owner == h && pkts[fit].length - 1 < pkts[fit].room;
	     fit++)
		;
	if (fit == 0)
		return h->ops->send(h, pkts, 1);
	capture_ring_fill(dir->capture, pkts, fit);
	used = h->ops->send(h, pkts, fit);
	capture_ring_publish(dir->capture, used);
	return used;
}

static inline unsigned send_owner(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	if (unlikely(dir->capture))
		return send_captured(dir, pkts, n);
	return dir->owner->ops->send(dir->owner, pkts, n);
}

static void drop(struct direction *dir, struct dray_pkt *p)
{
	count(&dir->counters, COUNT_TX_DROPPED, 1);
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

/* Whether this direction can send a packet at all. */
static bool can_send(const struct direction *dir, const struct dray_pkt *p)
{
	return dir->owner && p->owner && p->length > 0 && p->length <= p->room &&
	       (p->length <= dir->generation->packet_max ||
		p->length <= dir->generation->message_max);
}

static void drop_or_count(struct direction *dir, struct dray_pkt *p)
{
	if (!p->owner)
		count(&dir->counters, COUNT_MISUSE, 1);
	else
		drop(dir, p);
}

/*
 * Send packets whose buffers belong to another owner, by copying them. Returns how many were
 * consumed: an original is consumed once its copy is sent. A first packet that cannot be sent at
 * all is dropped.
 */
static unsigned send_copies(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	struct dray_pkt copies[COPY_BATCH];
	struct dray_owner *h = dir->owner;
	unsigned made, sent = 0;

	if (!can_send(dir, &pkts[0])) {
		drop_or_count(dir, &pkts[0]);
		return 1;
	}
	for (made = 0;
	     made < n && made < COPY_BATCH && pkts[made].owner != h && can_send(dir, &pkts[made]);
	     made++) {
		if (!h->ops->alloc(h, &copies[made], 1, pkts[made].length))
			break;
		copy_packet(&copies[made], &pkts[made]);
	}
	if (made)
		sent = send_owner(dir, copies, made);
	count(&dir->counters, COUNT_TX_COPIED, sent);
	dray_release(pkts, sent);
	dray_release(&copies[sent], made - sent); /* the device has no room now */
	return sent;
}

EXPORT unsigned dray_tx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts,
			      unsigned n)
{
	struct direction *dir;
	unsigned i = 0, used;

	dir = begin_burst(port, queue, true);
	if (unlikely(!dir))
		return 0;
	while (i < n) {
		if (likely(dir->owner && pkts[i].owner == dir->owner))
			used = send_owner(dir, &pkts[i], n - i);
		else
			used = send_copies(dir, &pkts[i], n - i);
		i += used;
		if (used == 0)
			break;
	}
	direction_leave(dir);
	return i;
}
