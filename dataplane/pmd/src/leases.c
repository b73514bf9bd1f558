/* SPDX-License-Identifier: Apache-2.0 */
/* Taking leases back: on the thread that polls, on others, and after the port was closed. */
#include "leases.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <rte_pause.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEASES_CLOSED ((struct lease *)1)
#define BATCH 32

__thread char leases_mark __attribute__((tls_model("initial-exec")));

static bool has_barrier;

void leases_begin(void)
{
	has_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/*
 * Change the poller. The old one may be returning a lease just now: either it sees the change
 * before it touches `back`, or this thread waits until it has done. The barrier pairs with the
 * signal fence in return_local, which is free.
 */
static void set_poller(struct leases *l, uintptr_t poller)
{
	__atomic_store_n(&l->poller, poller, __ATOMIC_RELAXED);
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	/* acquire: pairs with the release in return_local. */
	while (__atomic_load_n(&l->busy, __ATOMIC_ACQUIRE))
		rte_pause();
}

void leases_take_over(struct leases *l)
{
	set_poller(l, leases_self());
}

/* True if this thread owns the queue, and has put the lease on its own list. */
static inline bool return_local(struct leases *l, struct lease *lease)
{
	const uintptr_t self = leases_self();
	bool mine;

	if (__atomic_load_n(&l->poller, __ATOMIC_RELAXED) != self)
		return false;
	__atomic_store_n(&l->busy, 1, __ATOMIC_RELAXED);
	/*
	 * seq_cst, for the compiler alone: pairs with the membarrier in set_poller, which orders
	 * the CPU.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mine = __atomic_load_n(&l->poller, __ATOMIC_RELAXED) == self;
	if (mine) {
		lease->next = l->back;
		l->back = lease;
	}
	/* release: pairs with the acquire in set_poller. */
	__atomic_store_n(&l->busy, 0, __ATOMIC_RELEASE);
	return mine;
}

static void drop(struct leases *l)
{
	struct opened *opened = l->opened;

	if (l->event >= 0)
		close(l->event);
	free(l);
	opened_put(opened);
}

/* The port is closed, or is being closed: taking the lock waits for the end of that. */
static void return_closed(struct leases *l, struct lease *lease)
{
	struct dray_pkt pkt = {.owner = lease->owner, .index = lease->index};
	bool last;

	pthread_mutex_lock(&l->opened->lock);
	dray_release(&pkt, 1);
	last = --l->out == 0;
	pthread_mutex_unlock(&l->opened->lock);
	if (last)
		drop(l);
}

/* False if the port was closed. Afterwards this thread may use neither the lease nor `l`. */
static inline bool push_foreign(struct leases *l, struct lease *lease)
{
	struct lease *head = __atomic_load_n(&l->foreign, __ATOMIC_RELAXED);

	do {
		if (unlikely(head == LEASES_CLOSED))
			return false;
		lease->next = head;
		/* release: pairs with the acquires in leases_give_back and leases_close. */
	} while (!__atomic_compare_exchange_n(&l->foreign, &head, lease, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	return true;
}

/*
 * As push_foreign, if the poller may sleep, and the peer wait for this buffer. The lock keeps `l`
 * alive after the push.
 */
static bool return_waking(struct leases *l, struct lease *lease)
{
	struct opened *opened = l->opened;
	bool pushed;

	opened_get(opened);
	pthread_mutex_lock(&opened->lock);
	pushed = push_foreign(l, lease);
	/*
	 * seq_cst: pairs with the fence in leases_wait; either this sees that the poller sleeps, or
	 * the poller sees the lease.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (pushed && __atomic_load_n(&l->waiting, __ATOMIC_RELAXED))
		(void)eventfd_write(l->event, 1);
	pthread_mutex_unlock(&opened->lock);
	opened_put(opened);
	return pushed;
}

static void return_foreign(struct leases *l, struct lease *lease)
{
	bool pushed = l->event >= 0 ? return_waking(l, lease) : push_foreign(l, lease);

	if (unlikely(!pushed))
		return_closed(l, lease);
}

static void returned(void *address, void *opaque)
{
	struct lease *lease = opaque;

	(void)address;
	if (!return_local(lease->leases, lease))
		return_foreign(lease->leases, lease);
}

struct leases *leases_new(struct opened *opened, uint32_t size)
{
	struct leases *l =
		aligned_alloc(128, (sizeof(*l) + size * sizeof(l->lease[0]) + 127) / 128 * 128);

	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->size = size;
	l->local = has_barrier;
	l->event = -1;
	l->opened = opened;
	for (uint32_t i = 0; i < size; i++) {
		struct lease *lease = &l->lease[i];

		lease->info.free_cb = returned;
		lease->info.fcb_opaque = lease;
		lease->leases = l;
		lease->next = l->free;
		l->free = lease;
	}
	opened_get(opened);
	return l;
}

/* Give a list of leases back to the peer, and make them free. */
static void give_list(struct leases *l, struct lease *list)
{
	struct dray_pkt pkts[BATCH];
	unsigned int n = 0;

	while (list) {
		struct lease *lease = list;

		list = lease->next;
		pkts[n].owner = lease->owner;
		pkts[n++].index = lease->index;
		lease->next = l->free;
		l->free = lease;
		l->out--;
		if (n == BATCH || !list) {
			dray_release(pkts, n);
			n = 0;
		}
	}
}

void leases_give_back(struct leases *l)
{
	struct lease *list = l->back;

	l->back = NULL;
	give_list(l, list);
	if (__atomic_load_n(&l->foreign, __ATOMIC_RELAXED))
		/*
		 * acquire: pairs with the release in push_foreign; the other threads' last access
		 * to the payload comes first.
		 */
		give_list(l, __atomic_exchange_n(&l->foreign, NULL, __ATOMIC_ACQUIRE));
}

void leases_close(struct leases *l)
{
	struct lease *foreign;

	if (l->local)
		set_poller(l, 0);
	give_list(l, l->back);
	l->back = NULL;
	/*
	 * acquire: pairs with the release in push_foreign. From here on each lease comes back by
	 * return_closed, which waits for the lock.
	 */
	foreign = __atomic_exchange_n(&l->foreign, LEASES_CLOSED, __ATOMIC_ACQUIRE);
	give_list(l, foreign);
	if (l->out == 0)
		drop(l);
}

int leases_can_wake(struct leases *l)
{
	if (l->event < 0)
		l->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->event < 0 ? -errno : l->event;
}

void leases_wait(struct leases *l)
{
	__atomic_store_n(&l->waiting, 1, __ATOMIC_RELAXED);
	/* seq_cst: pairs with the fence in return_waking. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	leases_collect(l);
}

void leases_awake(struct leases *l)
{
	eventfd_t count;

	__atomic_store_n(&l->waiting, 0, __ATOMIC_RELAXED);
	(void)eventfd_read(l->event, &count);
}
