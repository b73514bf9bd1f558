/* SPDX-License-Identifier: Apache-2.0 */
/* The stream, and what its two directions have in common. */
#ifndef DRAY_IQ_STREAM_H
#define DRAY_IQ_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "dray.h"
#include "dray_iq.h"

#define EXPORT __attribute__((visibility("default")))

/* The longest sleep, so that a call sees dray_iq_stop. */
#define SLICE_MS 100

/*
 * What a message carries in its 32 bits for the application: whether a receiver may start with it,
 * the sender's random number, and the number of the message. A message follows another if the
 * sender is the same, and its number is the next.
 */
#define MARK_START 0x80000000u
#define MARK_SENDER 0x7fff0000u
#define MARK_NUMBER 0x0000ffffu

static inline uint32_t mark_after(uint32_t mark)
{
	return (mark & MARK_SENDER) | ((mark + 1) & MARK_NUMBER);
}

struct dray_iq {
	struct dray_port *port;
	enum dray_iq_direction direction;
	_Atomic bool stopped;
	uint32_t next; /* mark of the next message, without MARK_START */

	/* sending */
	uint32_t most; /* bytes of a message of the link; 0: not known, or there is no link */
	pthread_mutex_t lock; /* of the rest, and of taking events */
	bool new_peer;	      /* nothing was sent to it yet */
	bool has_start;
	uint64_t start; /* bytes that had been sent before the first block to this peer */

	/* receiving */
	struct dray_pkt pkt; /* length 0: none */
	bool started;	     /* a message has come */
	bool aligned;	     /* the last message was delivered */
	bool gap;	     /* to be reported */

	/* written by the stream's thread only */
	_Atomic uint64_t messages, bytes, gaps, skipped;
};

static inline void add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

/* The state of the link. -EMSGSIZE it has no messages; -EBADF. */
int stream_link(struct dray_iq *stream, struct dray_info *info);

/*
 * Sleep until `what` (enum dray_wait_for) may hold, for at most ms and at most SLICE_MS; ms -1: no
 * limit. -ECANCELED the stream was stopped; -EBADF.
 */
int stream_sleep(struct dray_iq *stream, unsigned what, int ms);

#endif
