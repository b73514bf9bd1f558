/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open port of libdray. It outlives dray_close while the application still has some of its
 * buffers.
 */
#ifndef NET_DRAY_OPENED_H
#define NET_DRAY_OPENED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dray.h"

struct leases;

/* Buffers of one sending queue that other threads have given up. */
struct returns {
	uint32_t count; /* compared with 0 without the lock */
	uint32_t size;
	struct dray_pkt *pkts;
};

struct opened {
	struct dray_port *port;
	/* after the close it orders all releases, since no queue has a thread any more */
	pthread_mutex_t lock;
	uint32_t references;
	bool closed;
	struct leases *leases[DRAY_MAX_QUEUES];
	struct returns returns[DRAY_MAX_QUEUES];
};

/* Error: -errno, as dray_open. */
int opened_new(const char *name, const struct dray_options *options, struct opened **opened);

/* Close the port. Buffers that the application still has are released when they come back. */
void opened_close(struct opened *opened);

void opened_get(struct opened *opened);
void opened_put(struct opened *opened);

/*
 * From any thread: give a buffer of a sending queue up. The queue's thread takes it at its next
 * burst.
 */
void opened_return(struct opened *opened, unsigned int queue, const struct dray_pkt *pkt);

/* By that queue's thread. Returns how many belong to `owner`. */
unsigned int opened_take_returns(struct opened *opened, unsigned int queue,
				 const struct dray_owner *owner);

/* True for ever after opened_close. */
static inline bool opened_is_closed(const struct opened *opened)
{
	return __atomic_load_n(&opened->closed, __ATOMIC_RELAXED);
}

static inline bool opened_has_returns(const struct opened *opened, unsigned int queue)
{
	return __atomic_load_n(&opened->returns[queue].count, __ATOMIC_RELAXED) > 0;
}

#endif
