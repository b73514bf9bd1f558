/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool lends buffers of private memory: for copies, and for transports that have no memory of
 * their own.
 */
#ifndef DRAY_POOL_H
#define DRAY_POOL_H

#include "owner.h"

struct pool_shape {
	uint32_t packets, packet_room;	 /* how many, and bytes from data on */
	uint32_t messages, message_room; /* 0: none */
};

struct pool {
	struct dray_owner owner;
	uint8_t *memory, *message_memory;
	size_t memory_size;
	struct pool_shape shape;
	uint32_t packet_stride, message_stride;
	uint8_t *with_application; /* one per slot: the ledger */
	uint32_t *free_packets, *free_messages;
	uint32_t free_packet_count, free_message_count;
};

/* Memory is committed on first use. ops: the operations of the owner; pool_ops if it only lends. */
int pool_new(const struct pool_shape *shape, const struct owner_ops *ops, struct generation *gen,
	     struct counters *counters, size_t extra, struct pool **pool);
void pool_free(struct dray_owner *owner);

extern const struct owner_ops pool_ops;

/* Up to n buffers of at least size bytes. Counts them as lent to the application. */
unsigned pool_take(struct pool *pool, struct dray_pkt *pkts, unsigned n, uint32_t size);
unsigned pool_give_back(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n);

#endif
