/* SPDX-License-Identifier: Apache-2.0 */
/* Mbufs whose data is in the buffers of a link, so that they are sent without copying. */
#ifndef NET_DRAY_POOL_H
#define NET_DRAY_POOL_H

#include <rte_mbuf.h>

#include "opened.h"

/*
 * The buffer that an mbuf of such a pool is bound to. DPDK treats it as external and pinned, so
 * that clones are correct, and nothing is attached to the mbuf. Only the holder of the mbuf may use
 * it.
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

/* Make the buffer of a dray_pkt the mbuf's data; the binding takes it over. */
static inline void pool_rebind(struct rte_mbuf *m, struct binding *b, const struct dray_pkt *pkt)
{
	const uint32_t size = pkt->headroom + pkt->room;

	m->buf_addr = (uint8_t *)pkt->data - pkt->headroom;
	m->buf_len = (uint16_t)RTE_MIN(size, (uint32_t)UINT16_MAX);
	b->owner = pkt->owner;
	b->index = pkt->index;
}

/* As pool_rebind, for an unbound mbuf. */
void pool_bind(struct rte_mbuf *m, struct opened *opened, uint16_t queue,
	       const struct dray_pkt *pkt);

/*
 * Restore the mbuf's own memory. The queue's thread returns the buffer. Any thread that has the
 * mbuf may call it.
 */
void pool_unbind_one(struct rte_mbuf *m);
void pool_unbind(struct rte_mbuf **mbufs, unsigned int n);

/* As pool_unbind_one, but called by the queue's thread. */
void pool_unbind_owned(struct rte_mbuf *m);

/*
 * Called by a queue's thread: in all pools, unbind free mbufs that are bound to this queue and to
 * another generation than that of `owner`.
 */
void pool_sweep(struct opened *opened, uint16_t queue, const struct dray_owner *owner);

/* Called when bindings to a port are no longer used: unbind free mbufs. */
void pool_forget(struct opened *opened);

#endif
