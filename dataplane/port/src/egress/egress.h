/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traffic classes of an open port: the sending side of its queue goes through a scheduler.
 *
 * A port with classes has one queue. Its sending side is used under a lock: by the application's
 * calls, and by a thread of the library, the pacer, which sends what is due while the application
 * does not call. Buffers of that side belong to no thread (NO_THREAD), so releasing them never
 * races with the pacer.
 */
#ifndef DRAY_EGRESS_H
#define DRAY_EGRESS_H

#include <pthread.h>

#include "../port.h"
#include "scheduler.h"

#define EGRESS_BATCH 32
#define EGRESS_PACE_NS 50000u /* the pacer sleeps for so long at least */

struct egress {
	pthread_mutex_t lock;		  /* taken before the port's */
	struct scheduler *scheduler;	  /* replaced under the port's lock as well */
	_Atomic(struct scheduler *) next; /* replaces it; NULL: nothing does */
	struct dray_port *port;
	struct direction *dir;
	const struct generation *generation; /* whose buffers limit what may wait */
	/* taken, and not sent yet: the device had no room */
	struct dray_pkt pending[EGRESS_BATCH];
	unsigned pending_at, pending_end;
	pthread_t pacer;
	pthread_cond_t wake;
	_Atomic uint64_t
		due; /* ns, when the next packet is, as last known; UINT64_MAX: none waits */
	uint64_t pacer_until; /* ns, when it wakes by itself */
	bool has_pacer, stop;
};

/* Give an open port the classes of its plan, if it has one. Error: -errno. */
int egress_start(struct dray_port *port);

/*
 * Under the port's lock: the port's classes have changed. What waits is dropped as soon as a thread
 * has the sending side. Error: -errno, everything stays.
 */
int egress_change(struct dray_port *port);

/* The pacer did not wait yet when it was told of a change: tell it again. */
void egress_remind(struct egress *e);

/* Stop sending, drop what waits. No other call uses the port. */
void egress_stop(struct dray_port *port);

/* Under the lock: send what is due. */
void egress_run(struct egress *e, uint64_t now);

/* Under the lock: when the next packet is due, in ns; UINT64_MAX: none waits. It is noted. */
uint64_t egress_due(struct egress *e, uint64_t now);

/*
 * From the receiving side, which polls anyway: send what is due, unless another thread is at it. So
 * an application that keeps its CPU busy need not leave it to the pacer.
 */
void egress_poll(struct egress *e);

/* Under the lock: as dray_tx_burst. */
unsigned egress_burst(struct egress *e, struct dray_pkt *pkts, unsigned n);

/*
 * Under the lock: n buffers more than there are. Packets that wait in the longest queue are dropped
 * for them, unless there is one class: the application may have packets for a class that sends
 * first. Returns how many.
 */
unsigned egress_alloc(struct egress *e, struct dray_pkt *pkts, unsigned n, uint32_t size);

/* Whether the device had no room for all that was taken. */
static inline bool egress_is_pending(const struct egress *e)
{
	return e->pending_at < e->pending_end;
}

/* Under the lock: drop a packet that waited. The context is the struct egress. */
void egress_drop(void *context, struct dray_pkt *pkt);

/* When the pacer wakes, if the next packet is due then. */
static inline uint64_t egress_wakes(uint64_t due, uint64_t now)
{
	uint64_t soonest = now + EGRESS_PACE_NS;

	return due > soonest ? due : soonest;
}

/*
 * The classes of a direction; NULL: none. One bench is built without this code, to measure what
 * unused classes cost (bench/meson.build). The library always has it.
 */
static inline struct egress *egress_of(const struct direction *dir)
{
#ifdef DRAY_BENCH_CLASSLESS
	(void)dir;
	return NULL;
#else
	return dir->egress;
#endif
}

/* The same of a port. The receiving side does not touch what the sending side writes. */
static inline struct egress *port_egress(const struct dray_port *port)
{
#ifdef DRAY_BENCH_CLASSLESS
	(void)port;
	return NULL;
#else
	return port->egress;
#endif
}

static inline void egress_lock(const struct direction *dir)
{
	if (unlikely(egress_of(dir)))
		pthread_mutex_lock(&dir->egress->lock);
}

static inline void egress_unlock(const struct direction *dir)
{
	if (unlikely(egress_of(dir)))
		pthread_mutex_unlock(&dir->egress->lock);
}

#endif
