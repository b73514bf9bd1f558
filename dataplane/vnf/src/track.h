/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: what this process knows of each flow. The table has a fixed size, and a lookup examines
 * a fixed number of places, whatever flows a hostile sender invents. One thread uses it; others may
 * read the counts.
 */
#ifndef VNF_TRACK_H
#define VNF_TRACK_H

#include <stdatomic.h>

#include "flow.h"

#define TRACK_MAX 1048576u
#define TRACK_WAYS 16u /* places that a flow can have */

struct tracked {
	struct flow_key key;
	bool used;
	bool waits;  /* is in the queue */
	bool stored; /* the store has answered for it: `id` is the session's */
	uint64_t id; /* of the session; before the store answers, what a new one would have */
	uint64_t packets, bytes;	       /* by this process */
	uint64_t stored_packets, stored_bytes; /* of these, what the store has */
	uint64_t total;	   /* packets of the session by all workers, when the store answered last */
	uint64_t last_ns;  /* time of the last packet */
	uint64_t since_ns; /* since when it waits */
};

struct track_counts {
	_Atomic uint64_t live, created, resumed; /* sessions */
	_Atomic uint64_t expired;
	_Atomic uint64_t waiting; /* changes that the store does not have: in the queue, or sent */
	_Atomic uint64_t packets; /* of sessions */
	_Atomic uint64_t untracked; /* packets without a session: the table is full */
};

struct track {
	struct track_counts counts;
	struct tracked *all;
	uint32_t places, limit; /* a power of two; sessions */
	uint32_t *queue;	/* places of sessions to be stored, oldest first */
	uint32_t head, tail, swept;
	uint64_t secret, random;
	uint64_t now_ns, idle_ns; /* a session without packets for so long is forgotten */
	bool stores;		  /* there is a store, which takes from the queue */
};

/* Room for so many sessions. 0, or -1: no memory or no random numbers. */
int track_open(struct track *t, uint32_t sessions, uint64_t idle_ns, bool stores);
void track_close(struct track *t);

/* Count a packet, if it is IP and there is room for its session. now_ns is the time. */
void track_packet(struct track *t, const struct packet *p);

/* Forget sessions that are idle and stored, among the next so many places. */
void track_sweep(struct track *t, uint32_t places);

/* The session that waits longest; NULL: none. */
struct tracked *track_oldest(const struct track *t);

/* Take it from the queue. It is queued again with its next packet. */
struct tracked *track_take(struct track *t);

/* The store has so many more packets and bytes of it. */
void track_stored(struct track *t, struct tracked *s, uint64_t packets, uint64_t bytes);

#endif
