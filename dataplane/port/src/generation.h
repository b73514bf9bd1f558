/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One generation of a link, as this end has it: a transport's memory and descriptors, and an owner
 * for each direction of each queue.
 */
#ifndef DRAY_ATTACHMENT_H
#define DRAY_ATTACHMENT_H

#include <stdbool.h>

#include "owner.h"

struct generation {
	/* one of the port while it is current, one per owner until that is settled */
	_Atomic uint32_t refs;
	uint32_t kind; /* enum dray_link_kind */
	uint32_t number;
	uint32_t queues;
	uint32_t packet_max, message_max;
	uint32_t packet_slots; /* packet buffers of a queue, to send from */
	_Atomic bool peer_gone;
	/* enough newer ones have been left since: a queue that is not polled drops its packets */
	_Atomic bool surplus;
	uint64_t left_ns; /* when it ceased to be current; 0 while it is */
	int memfd;
	int bells[DRAY_MAX_QUEUES]; /* netdev: the packet sockets */
	/* NULL: no descriptor can be in a bell. Not NULL: look before reading, and close there. */
	struct discarder *discarder;
	/* if so: a thread looks and reads, and no other may take what it looked at */
	_Atomic bool reading[DRAY_MAX_QUEUES];
	uint64_t inode;
	uint8_t *memory;
	void *map; /* memory with its guards */
	size_t map_size;
	struct dray_owner *tx[DRAY_MAX_QUEUES];
	struct dray_owner *rx[DRAY_MAX_QUEUES];
	void (*destroy_owner)(struct dray_owner *owner);
	void (*last_put)(struct generation *gen);
	void *context;		 /* for last_put */
	struct generation *next; /* of the port's */
};

struct generation *generation_new(uint32_t kind, uint32_t number);

static inline void generation_get(struct generation *gen)
{
	atomic_fetch_add_explicit(&gen->refs, 1, memory_order_relaxed);
}

/* Drop a reference. With the last one, last_put decides who frees it. */
void generation_put(struct generation *gen);

/* The peer is lost: hang up, and read no bell that may hold descriptors again. */
void generation_hang_up(struct generation *gen);

/* Unmap, close and free. No reference may be left. */
void generation_free(struct generation *gen);

#endif
