/* SPDX-License-Identifier: Apache-2.0 */
/* Mbufs whose data is in the buffers of a link, so that they are sent without copying. */
#ifndef NET_DRAY_POOL_H
#define NET_DRAY_POOL_H

#include <rte_mbuf.h>

#include "opened.h"

/*
 * What an mbuf of such a pool is bound to. DPDK takes its buffer for external and pinned, so that
 * clones are right, and nothing is attached to it. The binding belongs to whoever has the mbuf.
 */
struct binding {
	struct rte_mbuf_ext_shared_info info;
	struct opened *opened; /* NULL: bound to nothing, the data is in `own` */
	struct dray_owner *owner;
	uint32_t index;
	uint16_t queue;
	uint16_t own_length;
	void *own;
} __rte_cache_aligned;

extern int pool_ops_index; /* -1: none */

static inline bool pool_is_ours(const struct rte_mempool *pool)
{
	return pool->ops_index == pool_ops_index;
}

static inline struct binding *pool_binding(const struct rte_mbuf *m)
{
	return (struct binding *)m->shinfo;
}

/* Put the buffer of a dray_pkt, which the binding takes over, in the place of the mbuf's data. */
static inline void pool_rebind(struct rte_mbuf *m, struct binding *b, const struct dray_pkt *pkt)
{
	const uint32_t size = pkt->headroom + pkt->room;

	m->buf_addr = (uint8_t *)pkt->data - pkt->headroom;
	m->buf_len = (uint16_t)RTE_MIN(size, (uint32_t)UINT16_MAX);
	b->owner = pkt->owner;
	b->index = pkt->index;
}

/* As pool_rebind, of an mbuf that is bound to nothing. */
void pool_bind(struct rte_mbuf *m, struct opened *opened, uint16_t queue,
	       const struct dray_pkt *pkt);

/*
 * Put the mbuf's own memory back. The buffer goes back by the queue's thread. From any thread that
 * has the mbuf.
 */
void pool_unbind_one(struct rte_mbuf *m);
void pool_unbind(struct rte_mbuf **mbufs, unsigned int n);

/* As pool_unbind_one, by the queue's thread itself. */
void pool_unbind_owned(struct rte_mbuf *m);

/*
 * By a queue's thread: unbind what is not in use, of all pools, and is bound to another generation
 * of this queue than `owner`.
 */
void pool_sweep(struct opened *opened, uint16_t queue, const struct dray_owner *owner);

/* As long as bindings to a port are not used any more: unbind what is not in use. */
void pool_forget(struct opened *opened);

#endif
