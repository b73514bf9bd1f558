/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of the load balancer, between packets. */
#ifndef VNF_TURNS_H
#define VNF_TURNS_H

#include "work.h"

/* State that its loop keeps between rounds; zeros at first. */
struct turns {
	uint64_t ticks;	      /* of the last turn */
	uint64_t packets;     /* since then */
	uint64_t announce_ns; /* when the next announcement is due */
	uint64_t packet_ns;   /* when there were packets last */
	uint64_t leaving_ns;  /* since when it leaves; 0: it stays */
	uint64_t empty;	      /* rounds without packets in a row */
	bool looks;	      /* they count since it may be drained */
};

/* Before each round of the loop, with the packets of the last one. Ends the program when it has
 * left. */
void turns_round(struct turns *s, struct worker *w, struct program *p, unsigned packets);

#endif
