/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of one end of a link under full load, again and again; the other end survives, and says what it saw. */
#ifndef DRAY_BENCH_KILL_H
#define DRAY_BENCH_KILL_H

#include <stdint.h>

#define HANDSHAKE_STEPS 7

struct kills {
	unsigned rounds;
	uint32_t *recovery; /* ns of each round, from the death to the first packet of the successor */
	uint64_t packets;   /* that came from those who were killed */
	uint64_t lost;	    /* of those, what had been published and did not come; or came twice, or out of order */
	uint64_t leaked;    /* buffers that did not come back, and generations that stayed mapped */
	uint64_t stalls;    /* calls of the survivor that took over 1 s */
	uint64_t longest;   /* ns of the longest call; the scheduler's doing included */
	uint64_t starved; /* of that call and what else there was in its turn: ns ready to run, without a CPU */
};

/* The successor stands by, and tries to open the port all the time. Rounds and recovery are given; the rest is filled in. */
void kill_under_load(struct kills *kills);

/* The broker is killed just before the end is; it starts again at once. */
void kill_without_broker(struct kills *kills);

/* The end dies after this step of the handshake, 0 to HANDSHAKE_STEPS - 1; its successor is started when it is dead. */
void kill_in_handshake(struct kills *kills, unsigned step);

#endif
