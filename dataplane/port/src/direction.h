/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on one direction of a queue: who is in it, and which generation it uses. */
#ifndef DRAY_DIRECTION_H
#define DRAY_DIRECTION_H

#include "port.h"

#define NO_THREAD ((uintptr_t)1) /* of no thread_self() */

/* A thread uses a direction, and its owners' buffers are that thread's. */
void direction_used_by(struct queue *queue, struct direction *dir, uintptr_t self);

/* Begin a call. false: another call is in progress. */
static inline bool direction_enter(struct queue *queue, struct direction *dir)
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

/* End it. */
static inline void direction_leave(struct direction *dir)
{
	atomic_store_explicit(&dir->busy, 0, memory_order_relaxed);
}

/* The thread of this direction polls again: it asks for no rings. */
void direction_disarm(struct direction *dir);

/* Stop copying to a capture. */
void direction_leave_capture(struct direction *dir);

/* Move to the current generation and capture. */
void direction_update(struct dray_port *port, unsigned queue, struct direction *dir, bool sending);

static inline void direction_follow(struct dray_port *port, unsigned queue, struct direction *dir,
				    bool sending)
{
	/* acquire: pairs with the releases in port_switch and port_capture. */
	if (unlikely(dir->switches != atomic_load_explicit(&port->switches, memory_order_acquire)))
		direction_update(port, queue, dir, sending);
}

/*
 * Read the bell of an owner, NULL: none, and count in `counters`. Returns how many times it rang;
 * notes the end of file.
 *
 * The two sides of a queue have one bell, and nothing on it says which of them it rang for. So a
 * thread that serves one side alone, and has read a ring, then calls waker_wake for the thread of
 * the other side. No wake-up is lost, whichever of them reads:
 *
 *   - The sleeper does waker_sleep, writes its bell word, looks once more (P3, P4), and polls the
 *     bell and its waker.
 *   - If the peer publishes after that look, it sees the word, and its ring is on the bell or still
 *     comes. While it is on the bell, poll returns.
 *   - If another thread has read it, the word had been written before, and waker_sleep before that:
 *     so waker_wake sees the sleeper, unless that is awake again, and will look.
 *   - A thread that is awake writes new numbers into the words of all lanes that it listens to, and
 *     looks at them, before it sleeps. It misses nothing if another thread reads a ring for an old
 *     number.
 *   - A bell of a generation that was left rings for rx alone. The thread of tx may still sleep on
 *     it, or read it: rx follows a switch only after the event of that has woken all sleepers.
 *   - The end of file stays on the bell, and every thread sees it.
 */
unsigned bell_drain(struct dray_owner *owner, unsigned queue, struct counters *counters);

#endif
