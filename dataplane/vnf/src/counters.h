/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of one thread. Only that thread writes; others may read at any time. */
#ifndef VNF_COUNTERS_H
#define VNF_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "port_setup.h"

struct counters {
	_Alignas(128) _Atomic uint64_t received[PORTS_MAX]; /* packets by port */
	_Atomic uint64_t sent[PORTS_MAX];
	/* refused by the port, or lost before it: counted as dropped as well */
	_Atomic uint64_t not_taken[PORTS_MAX];
	_Atomic uint64_t dropped[REASON_COUNT];
	_Atomic uint64_t replied[REPLY_COUNT]; /* counted as sent as well */
	/* of the time-stamp counter, in rounds that had packets */
	_Atomic uint64_t cycles;
};

/* No read-modify-write: there is one writer, and a reader needs no order among counters. */
static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Sums of several threads' counters, as plain numbers. */
struct totals {
	uint64_t received[PORTS_MAX], sent[PORTS_MAX], not_taken[PORTS_MAX], dropped[REASON_COUNT],
		replied[REPLY_COUNT];
	uint64_t cycles;
	uint64_t all_received, all_sent, all_dropped;
};

void counters_total(struct totals *totals, const struct counters *counters, unsigned threads);

#endif
