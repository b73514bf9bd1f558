/* SPDX-License-Identifier: Apache-2.0 */
/* Taking buffers back: from the queue's thread, from other threads, and after close. */
#include "home.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "generation.h"

_Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

/* Serialises the threads that do the work of owners that are gone. */
static pthread_mutex_t orphans = PTHREAD_MUTEX_INITIALIZER;

int home_init(struct dray_home *home, const struct home_ops *ops, uint32_t slots,
	      struct generation *gen, struct counters *counters)
{
	home->ops = ops;
	home->slots = slots;
	home->generation = gen;
	home->counters = counters;
	home->next = malloc(slots * sizeof(*home->next));
	if (!home->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < slots; i++)
		atomic_init(&home->next[i], HOME_UNLINKED);
	return 0;
}

void home_destroy(struct dray_home *home)
{
	free(home->next);
}

/* Drop the side's reference if it has left and every buffer is back. */
static void home_settle(struct dray_home *home)
{
	if (home->retired && !home->settled && home_held(home) == 0) {
		home->settled = true;
		generation_put(home->generation);
	}
}

void home_retire(struct dray_home *home)
{
	home_drain(home);
	home->retired = true;
	home_settle(home);
}

void home_drain_foreign(struct dray_home *home)
{
	struct dray_pkt batch[32];
	unsigned n = 0;
	/*
	 * acquire: pairs with the release in push_foreign; the releasing thread's last access to
	 * the payload comes first.
	 */
	uint32_t head = atomic_exchange_explicit(&home->foreign, 0, memory_order_acquire);

	while (head) {
		uint32_t index = head - 1;

		head = atomic_load_explicit(&home->next[index], memory_order_relaxed);
		atomic_store_explicit(&home->next[index], HOME_UNLINKED, memory_order_relaxed);
		batch[n++] = (struct dray_pkt){.home = home, .index = index};
		if (n == 32 || !head) {
			home->ops->give_back(home, batch, n);
			n = 0;
		}
	}
}

static void misuse(struct dray_home *home)
{
	/*
	 * Another thread's counter: the owner may overwrite this increment, but this never
	 * overwrites the owner's.
	 */
	atomic_fetch_add_explicit(&home->counters->n[COUNT_MISUSE], 1, memory_order_relaxed);
}

static void push_foreign(struct dray_home *home, uint32_t index)
{
	uint32_t head = atomic_load_explicit(&home->foreign, memory_order_relaxed);

	if (index >= home->slots ||
	    atomic_load_explicit(&home->next[index], memory_order_relaxed) != HOME_UNLINKED) {
		misuse(home);
		return;
	}
	do
		atomic_store_explicit(&home->next[index], head, memory_order_relaxed);
	/* release: pairs with the acquire in home_drain_foreign. */
	while (!atomic_compare_exchange_weak_explicit(&home->foreign, &head, index + 1,
						      memory_order_release, memory_order_relaxed));
}

static void drain_orphan(struct dray_home *home)
{
	pthread_mutex_lock(&orphans);
	home_drain(home);
	home_settle(home);
	pthread_mutex_unlock(&orphans);
}

/* Ring once per sleep. The queue exists as long as there is a reference to the generation. */
static void waker_ring(struct waker *waker)
{
	uint32_t asleep = WAKER_ASLEEP;

	if (atomic_load_explicit(&waker->state, memory_order_relaxed) == WAKER_ASLEEP &&
	    atomic_compare_exchange_strong_explicit(&waker->state, &asleep, WAKER_RUNG,
						    memory_order_relaxed, memory_order_relaxed))
		(void)eventfd_write(waker->fd, 1);
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

static void release_foreign(struct dray_home *home, struct dray_pkt *pkts, unsigned n)
{
	struct generation *gen = home->generation;

	/*
	 * The buffers are out, so there is a reference; this one keeps the home alive when they are
	 * back.
	 */
	generation_get(gen);
	for (unsigned i = 0; i < n; i++)
		push_foreign(home, pkts[i].index);
	/*
	 * seq_cst: pairs with home_orphan and waker_sleep; either they see the push, or this sees
	 * the orphan, and the sleeper.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&home->orphan, memory_order_relaxed))
		drain_orphan(home);
	else if (home->waker)
		waker_ring(home->waker);
	generation_put(gen);
}

void home_orphan(struct dray_home *home)
{
	struct generation *gen = home->generation;

	generation_get(gen);
	atomic_store_explicit(&home->owner, 0, memory_order_relaxed);
	atomic_store_explicit(&home->orphan, true, memory_order_relaxed);
	/* seq_cst: pairs with release_foreign. */
	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&orphans);
	home_retire(home);
	pthread_mutex_unlock(&orphans);
	generation_put(gen);
}

static unsigned release_elsewhere(struct dray_pkt *pkts, unsigned n)
{
	struct dray_home *home = pkts[0].home;
	unsigned end = 1;

	while (end < n && pkts[end].home == home)
		end++;
	if (home)
		release_foreign(home, pkts, end);
	for (unsigned i = 0; i < end; i++)
		pkts[i].home = NULL;
	return end;
}

__attribute__((visibility("default"))) void dray_release(struct dray_pkt *pkts, unsigned n)
{
	uintptr_t self = thread_self();

	for (unsigned i = 0; i < n;) {
		struct dray_home *home = pkts[i].home;

		if (unlikely(!home ||
			     atomic_load_explicit(&home->owner, memory_order_relaxed) != self)) {
			i += release_elsewhere(&pkts[i], n - i);
			continue;
		}
		i += home->ops->give_back(home, &pkts[i], n - i);
	}
}
