/* SPDX-License-Identifier: Apache-2.0 */
/* Taking buffers back: from the queue's thread, from other threads, and after close. */
#include "owner.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "generation.h"

_Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

/* Serialises the threads that do the work of a queue's thread after close. */
static pthread_mutex_t orphans = PTHREAD_MUTEX_INITIALIZER;

int owner_init(struct dray_owner *owner, const struct owner_ops *ops, uint32_t slots,
	       struct generation *gen, struct counters *counters)
{
	owner->ops = ops;
	owner->slots = slots;
	owner->generation = gen;
	owner->counters = counters;
	owner->next = malloc(slots * sizeof(*owner->next));
	if (!owner->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < slots; i++)
		atomic_init(&owner->next[i], OWNER_UNLINKED);
	return 0;
}

void owner_destroy(struct dray_owner *owner)
{
	free(owner->next);
}

/* Drop the direction's reference if it has left and every buffer is back. */
static void owner_settle(struct dray_owner *owner)
{
	if (owner->retired && !owner->settled && owner_held(owner) == 0) {
		owner->settled = true;
		generation_put(owner->generation);
	}
}

void owner_retire(struct dray_owner *owner)
{
	owner_drain(owner);
	owner->retired = true;
	owner_settle(owner);
}

void owner_drain_foreign(struct dray_owner *owner)
{
	struct dray_pkt batch[32];
	unsigned n = 0;
	/*
	 * acquire: pairs with the release in push_foreign; the releasing thread's last access to
	 * the payload comes first.
	 */
	uint32_t head = atomic_exchange_explicit(&owner->foreign, 0, memory_order_acquire);

	while (head) {
		uint32_t index = head - 1;

		head = atomic_load_explicit(&owner->next[index], memory_order_relaxed);
		atomic_store_explicit(&owner->next[index], OWNER_UNLINKED, memory_order_relaxed);
		batch[n++] = (struct dray_pkt){.owner = owner, .index = index};
		if (n == 32 || !head) {
			owner->ops->give_back(owner, batch, n);
			n = 0;
		}
	}
}

static void misuse(struct dray_owner *owner)
{
	/*
	 * Another thread's counter: the queue's thread may overwrite this increment, but this
	 * never overwrites that thread's.
	 */
	atomic_fetch_add_explicit(&owner->counters->n[COUNT_MISUSE], 1, memory_order_relaxed);
}

static void push_foreign(struct dray_owner *owner, uint32_t index)
{
	uint32_t head = atomic_load_explicit(&owner->foreign, memory_order_relaxed);

	if (index >= owner->slots ||
	    atomic_load_explicit(&owner->next[index], memory_order_relaxed) != OWNER_UNLINKED) {
		misuse(owner);
		return;
	}
	do
		atomic_store_explicit(&owner->next[index], head, memory_order_relaxed);
	/* release: pairs with the acquire in owner_drain_foreign. */
	while (!atomic_compare_exchange_weak_explicit(&owner->foreign, &head, index + 1,
						      memory_order_release, memory_order_relaxed));
}

static void drain_orphan(struct dray_owner *owner)
{
	pthread_mutex_lock(&orphans);
	owner_drain(owner);
	owner_settle(owner);
	pthread_mutex_unlock(&orphans);
}

/* Ring once per sleep. Returns whether the thread slept. */
static bool waker_ring(struct waker *waker)
{
	uint32_t state = atomic_load_explicit(&waker->state, memory_order_relaxed);

	if (state == WAKER_ASLEEP &&
	    atomic_compare_exchange_strong_explicit(&waker->state, &state, WAKER_RUNG,
						    memory_order_relaxed, memory_order_relaxed))
		(void)eventfd_write(waker->fd, 1);
	return state != WAKER_AWAKE;
}

void waker_wake(struct waker *waker)
{
	/* seq_cst: pairs with waker_sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	(void)waker_ring(waker);
}

void waker_awake(struct waker *waker)
{
	eventfd_t rings;

	if (waker->fd < 0)
		return;
	if (atomic_exchange_explicit(&waker->state, WAKER_AWAKE, memory_order_relaxed) ==
	    WAKER_RUNG)
		waker->owed++;
	while (waker->owed && eventfd_read(waker->fd, &rings) == 0)
		waker->owed--;
}

/* The queue exists as long as there is a reference to the generation. */
static void ring_queue(struct dray_owner *owner)
{
	if (!(owner->alone && waker_ring(owner->alone)) && owner->waker)
		(void)waker_ring(owner->waker);
}

static void release_foreign(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct generation *gen = owner->generation;

	/*
	 * The buffers are out, so there is a reference; this one keeps the owner alive when they
	 * are back.
	 */
	generation_get(gen);
	for (unsigned i = 0; i < n; i++)
		push_foreign(owner, pkts[i].index);
	/*
	 * seq_cst: pairs with owner_orphan and waker_sleep; either they see the push, or this sees
	 * the orphan, and the sleeper.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	/* acquire: pairs with the release in owner_orphan. */
	if (atomic_load_explicit(&owner->orphan, memory_order_acquire))
		drain_orphan(owner);
	else
		ring_queue(owner);
	generation_put(gen);
}

void owner_orphan(struct dray_owner *owner)
{
	struct generation *gen = owner->generation;

	generation_get(gen);
	atomic_store_explicit(&owner->thread, 0, memory_order_relaxed);
	/*
	 * release: pairs with the acquire in release_foreign; a thread that does the work of the
	 * queue's thread from now on sees what that has done.
	 */
	atomic_store_explicit(&owner->orphan, true, memory_order_release);
	/* seq_cst: pairs with release_foreign. */
	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&orphans);
	owner_retire(owner);
	pthread_mutex_unlock(&orphans);
	generation_put(gen);
}

static unsigned release_elsewhere(struct dray_pkt *pkts, unsigned n)
{
	struct dray_owner *owner = pkts[0].owner;
	unsigned end = 1;

	while (end < n && pkts[end].owner == owner)
		end++;
	if (owner)
		release_foreign(owner, pkts, end);
	for (unsigned i = 0; i < end; i++)
		pkts[i].owner = NULL;
	return end;
}

__attribute__((visibility("default"))) void dray_release(struct dray_pkt *pkts, unsigned n)
{
	uintptr_t self = thread_self();

	for (unsigned i = 0; i < n;) {
		struct dray_owner *owner = pkts[i].owner;

		if (unlikely(!owner ||
			     atomic_load_explicit(&owner->thread, memory_order_relaxed) != self)) {
			i += release_elsewhere(&pkts[i], n - i);
			continue;
		}
		i += owner->ops->give_back(owner, &pkts[i], n - i);
	}
}
