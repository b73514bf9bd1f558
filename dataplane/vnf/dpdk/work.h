/* SPDX-License-Identifier: Apache-2.0 */
/* Bursts of mbufs through the function. */
#ifndef VNF_WORK_H
#define VNF_WORK_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "program.h"

struct rte_ring;

/* State of one working thread. */
struct worker {
	const struct program *program;
	struct counters *counters;
	void (*handle)(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n);
	void (*emit)(struct worker *w, unsigned out, struct rte_mbuf **m, unsigned n);
	struct rte_ring *ring; /* of emit, if that is to the core that transmits */
	uint64_t ticks;	       /* of work for each packet */
	uint16_t queue;
	struct {
		unsigned n;
		struct rte_mbuf *m[BURST_MAX];
	} outbox[PORTS_MAX];
};

/*
 * Choose what the mode takes; packets leave by the queue, or through the ring if there is one.
 */
void work_open(struct worker *w, const struct program *program, struct counters *counters,
	       uint16_t queue, struct rte_ring *ring);

/* Pass packets that came at port `in` through the function, after the work that is asked for. */
void work_handle(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n);

/* Send everything in the outboxes. */
void work_flush(struct worker *w);

/* Send on a queue of port `out`; a packet that the port refuses is dropped and counted. */
void work_transmit(struct worker *w, unsigned out, struct rte_mbuf **m, unsigned n);

/* Apply the change to the mbuf. Returns PASS, or the reason to drop it. */
enum reason work_apply(struct rte_mbuf *m, const struct change *c);

void work_drop(struct worker *w, struct rte_mbuf *m, enum reason reason);

#endif
