/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a queue: which thread uses it, which generation it has, and its bells.
 */
#include "direction.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "rights.h"

#define BELL_BATCH 8

void direction_used_by(struct queue *queue, struct direction *dir, uintptr_t self)
{
	dir->thread = self;
	if (dir->owner)
		atomic_store_explicit(&dir->owner->thread, dir->egress ? NO_THREAD : self,
				      memory_order_relaxed);
	for (struct dray_owner *h = dir->draining; h; h = h->draining)
		atomic_store_explicit(&h->thread, self, memory_order_relaxed);
	if (dir == &queue->rx && queue->pool)
		atomic_store_explicit(&queue->pool->owner.thread, self, memory_order_relaxed);
}

/*
 * Whether a bell may be read, if descriptors can be in it. This thread must not receive those, not
 * even to drop them: so the peer is as good as gone.
 */
static bool bell_readable(struct generation *gen, unsigned queue, struct counters *counters)
{
	bool empty;

	/* relaxed: a reader of another bell that sees this late looks for itself. */
	if (atomic_load_explicit(&gen->peer_gone, memory_order_relaxed))
		return false;
	if (!rights_attached(gen->bells[queue], &empty))
		return !empty;
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
