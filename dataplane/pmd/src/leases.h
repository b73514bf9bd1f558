/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Received buffers that are attached to mbufs. A lease stands for one buffer. The mbuf's free
 * callback returns it, on any thread. The thread that polls the queue then gives the buffers back
 * to the peer, many at once.
 */
#ifndef NET_DRAY_LEASES_H
#define NET_DRAY_LEASES_H

#include <rte_mbuf.h>

#include "opened.h"

struct lease {
	struct rte_mbuf_ext_shared_info info;
	struct leases *leases;
	struct lease *next;
	struct dray_owner *owner;
	uint32_t index;
} __rte_cache_aligned;

/* The leases of one receiving queue. Freed when the port is closed and the last lease is back. */
struct leases {
	struct lease *free; /* of the thread that polls, like the next three */
	struct lease *back; /* came back on that thread */
	uint32_t out;
	uint32_t size;
	/*
	 * the poller's own returns take no atomic operation: the kernel provides the barrier that
	 * this needs
	 */
	bool local;
	uintptr_t poller __rte_aligned(128); /* thread that polls; 0: not known, or none any more */
	uint32_t busy;			     /* the poller is returning a lease */
	struct lease *foreign __rte_aligned(128); /* came back on other threads; LEASES_CLOSED */
	uint32_t waiting; /* the poller sleeps until the queue's descriptor is readable */
	int event;	  /* to write to in that case; -1: the thread never sleeps */
	struct opened *opened;
	struct lease lease[];
};

extern __thread char leases_mark __attribute__((tls_model("initial-exec")));

static inline uintptr_t leases_self(void)
{
	return (uintptr_t)&leases_mark;
}

/* For up to `size` buffers. NULL: no memory. */
struct leases *leases_new(struct opened *opened, uint32_t size);

/* The port is being closed, and its lock is held. */
void leases_close(struct leases *leases);

/* Call once, before any queue is set up. */
void leases_begin(void);

/*
 * A descriptor that becomes readable when a lease comes back from another thread between
 * leases_wait and leases_awake. Before the first lease. Error: -errno.
 */
int leases_can_wake(struct leases *leases);
void leases_wait(struct leases *leases);
void leases_awake(struct leases *leases);

void leases_take_over(struct leases *leases);
void leases_give_back(struct leases *leases);

/* Called by the thread that polls, before each burst: give returned buffers back to the peer. */
static inline void leases_collect(struct leases *l)
{
	if (unlikely(__atomic_load_n(&l->poller, __ATOMIC_RELAXED) != leases_self()) && l->local)
		leases_take_over(l);
	if (l->back || __atomic_load_n(&l->foreign, __ATOMIC_RELAXED))
		leases_give_back(l);
}

/* A lease that takes over the buffer of a received packet; NULL: none is free. */
static inline struct lease *leases_take(struct leases *l, const struct dray_pkt *pkt)
{
	struct lease *lease = l->free;

	if (unlikely(!lease))
		return NULL;
	l->free = lease->next;
	l->out++;
	lease->owner = pkt->owner;
	lease->index = pkt->index;
	__atomic_store_n(&lease->info.refcnt, 1, __ATOMIC_RELAXED);
	return lease;
}

#endif
