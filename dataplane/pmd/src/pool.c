/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mempool driver "dray": a ring of mbufs, like DPDK's own, whose mbufs can be bound to buffers
 * of a link.
 */
#include "pool.h"

#include <errno.h>
#include <ethdev_driver.h>
#include <pthread.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <stdlib.h>

#include "driver.h"
#include "rte_pmd_dray.h"

#define SWEEP 32

struct pool {
	struct rte_ring *ring;
	struct binding *bindings; /* NULL: not converted yet */
	struct rte_mempool *mempool;
	struct pool *next;
};

int pool_ops_index = -1;

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;

void pool_bind(struct rte_mbuf *m, struct opened *opened, uint16_t queue,
	       const struct dray_pkt *pkt)
{
	struct binding *b = pool_binding(m);

	opened_get(opened);
	b->opened = opened;
	b->queue = queue;
	pool_rebind(m, b, pkt);
	rte_mbuf_iova_set(m, RTE_BAD_IOVA); /* no device can reach it */
}

/* Restore the mbuf's own memory; the buffer passes to the caller. */
static void take_own(struct rte_mbuf *m, struct binding *b)
{
	m->buf_addr = b->own;
	m->buf_len = b->own_length;
	rte_mbuf_iova_set(m, rte_mempool_virt2iova(m) +
				     (rte_iova_t)((uintptr_t)b->own - (uintptr_t)m));
	b->opened = NULL;
}

void pool_unbind_one(struct rte_mbuf *m)
{
	struct binding *b = pool_binding(m);
	struct dray_pkt pkt = {.owner = b->owner, .index = b->index};
	struct opened *opened = b->opened;

	if (!opened)
		return;
	take_own(m, b);
	opened_return(opened, b->queue, &pkt);
	opened_put(opened);
}

void pool_unbind(struct rte_mbuf **mbufs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (pool_binding(mbufs[i])->opened)
			pool_unbind_one(mbufs[i]);
}

void pool_unbind_owned(struct rte_mbuf *m)
{
	struct binding *b = pool_binding(m);
	struct dray_pkt pkt = {.owner = b->owner, .index = b->index};
	struct opened *opened = b->opened;

	take_own(m, b);
	dray_release(&pkt, 1);
	opened_put(opened);
}

/* What DPDK calls when the last clone of an mbuf goes after the mbuf itself. */
static void last_clone_gone(void *address, void *opaque)
{
	struct rte_mbuf *m = opaque;

	(void)address;
	rte_mbuf_ext_refcnt_set(m->shinfo, 1);
	m->ol_flags = RTE_MBUF_F_EXTERNAL;
	m->next = NULL;
	m->nb_segs = 1;
	rte_mbuf_raw_free(m);
}

static void convert_one(struct rte_mempool *mempool, void *opaque, void *object, unsigned int i)
{
	struct binding *b = &((struct binding *)opaque)[i];
	struct rte_mbuf *m = object;

	(void)mempool;
	b->info.free_cb = last_clone_gone;
	b->info.fcb_opaque = m;
	rte_mbuf_ext_refcnt_set(&b->info, 1);
	b->own = m->buf_addr;
	b->own_length = m->buf_len;
	m->shinfo = &b->info;
	m->ol_flags = RTE_MBUF_F_EXTERNAL;
}

/* When the first mbuf is taken: by then DPDK has initialised all of them. */
static int convert(struct rte_mempool *mempool, struct pool *p)
{
	struct rte_pktmbuf_pool_private *private = rte_mempool_get_priv(mempool);
	struct binding *bindings = NULL;

	if (mempool->private_data_size < sizeof(*private) ||
	    mempool->elt_size < sizeof(struct rte_mbuf))
		return -EINVAL; /* not a pool of mbufs */
	pthread_mutex_lock(&pools_lock);
	if (!p->bindings) {
		bindings = rte_zmalloc_socket("dray_bindings", mempool->size * sizeof(*bindings),
					      RTE_CACHE_LINE_SIZE, mempool->socket_id);
		if (bindings) {
			rte_mempool_obj_iter(mempool, convert_one, bindings);
			private->flags |= RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
			/* release: pairs with the acquire in pool_dequeue. */
			__atomic_store_n(&p->bindings, bindings, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&pools_lock);
	return p->bindings ? 0 : -ENOMEM;
}

static int pool_enqueue(struct rte_mempool *mempool, void *const *objects, unsigned int n)
{
	struct pool *p = mempool->pool_data;

	return rte_ring_mp_enqueue_bulk(p->ring, objects, n, NULL) ? 0 : -ENOBUFS;
}

static int pool_dequeue(struct rte_mempool *mempool, void **objects, unsigned int n)
{
	struct pool *p = mempool->pool_data;

	/* acquire: pairs with the release in convert. */
	if (unlikely(!__atomic_load_n(&p->bindings, __ATOMIC_ACQUIRE)) && convert(mempool, p) < 0)
		return -ENOBUFS;
	return rte_ring_mc_dequeue_bulk(p->ring, objects, n, NULL) ? 0 : -ENOBUFS;
}

static unsigned int pool_count(const struct rte_mempool *mempool)
{
	return rte_ring_count(((const struct pool *)mempool->pool_data)->ring);
}

static int pool_alloc(struct rte_mempool *mempool)
{
	uint32_t size = rte_align32pow2(mempool->size + 1);
	struct pool *p = calloc(1, sizeof(*p));
	ssize_t bytes = rte_ring_get_memsize(size);

	if (!p || bytes < 0) {
		free(p);
		return -ENOMEM;
	}
	p->mempool = mempool;
	p->ring = rte_zmalloc_socket("dray_pool", (size_t)bytes, RTE_CACHE_LINE_SIZE,
				     mempool->socket_id);
	if (!p->ring || rte_ring_init(p->ring, "dray_pool", size, 0) < 0) {
		rte_free(p->ring);
		free(p);
		return -ENOMEM;
	}
	mempool->pool_data = p;
	pthread_mutex_lock(&pools_lock);
	p->next = pools;
	pools = p;
	pthread_mutex_unlock(&pools_lock);
	return 0;
}

static void pool_free(struct rte_mempool *mempool)
{
	struct pool *p = mempool->pool_data, **link;

	if (!p)
		return;
	pthread_mutex_lock(&pools_lock);
	for (link = &pools; *link != p; link = &(*link)->next)
		;
	*link = p->next;
	pthread_mutex_unlock(&pools_lock);
	for (uint32_t i = 0; p->bindings && i < mempool->size; i++) {
		struct binding *b = &p->bindings[i];
		struct dray_pkt pkt = {.owner = b->owner, .index = b->index};

		if (b->opened) {
			opened_return(b->opened, b->queue, &pkt);
			opened_put(b->opened);
		}
	}
	rte_free(p->bindings);
	rte_free(p->ring);
	free(p);
	mempool->pool_data = NULL;
}

static const struct rte_mempool_ops ops = {
	.name = RTE_PMD_DRAY_POOL_OPS,
	.alloc = pool_alloc,
	.free = pool_free,
	.enqueue = pool_enqueue,
	.dequeue = pool_dequeue,
	.get_count = pool_count,
};

RTE_INIT(pool_register)
{
	pool_ops_index = rte_mempool_register_ops(&ops);
}

/*
 * Look at each free mbuf of a pool, a few at a time, so that others can still allocate in between.
 */
static void sweep_one(struct pool *p, struct opened *opened, int queue,
		      const struct dray_owner *owner)
{
	struct rte_mempool_cache *cache = rte_mempool_default_cache(p->mempool, rte_lcore_id());
	unsigned int left, n;

	if (!p->bindings)
		return;
	if (cache)
		rte_mempool_cache_flush(cache, p->mempool);
	for (left = rte_ring_count(p->ring); left > 0; left -= RTE_MIN(left, n)) {
		void *objects[SWEEP];

		n = rte_ring_mc_dequeue_burst(p->ring, objects, RTE_MIN(left, (unsigned int)SWEEP),
					      NULL);
		if (n == 0)
			return;
		for (unsigned int i = 0; i < n; i++) {
			struct binding *b = pool_binding(objects[i]);

			if (b->opened != opened ||
			    (queue >= 0 && (b->queue != queue || b->owner == owner)))
				continue;
			if (queue >= 0)
				pool_unbind_owned(objects[i]);
			else
				pool_unbind_one(objects[i]);
		}
		rte_ring_mp_enqueue_bulk(p->ring, objects, n, NULL);
	}
}

void pool_sweep(struct opened *opened, uint16_t queue, const struct dray_owner *owner)
{
	pthread_mutex_lock(&pools_lock);
	for (struct pool *p = pools; p; p = p->next)
		sweep_one(p, opened, queue, owner);
	pthread_mutex_unlock(&pools_lock);
}

void pool_forget(struct opened *opened)
{
	pthread_mutex_lock(&pools_lock);
	for (struct pool *p = pools; p; p = p->next)
		sweep_one(p, opened, -1, NULL);
	pthread_mutex_unlock(&pools_lock);
}

struct rte_mempool *rte_pmd_dray_pool_create(const char *name, uint16_t port_id, unsigned int n,
					     unsigned int cache_size, uint16_t priv_size,
					     int socket)
{
	const struct dray_device *device;
	uint32_t room;

	if (!rte_eth_dev_is_valid_port(port_id)) {
		rte_errno = ENODEV;
		return NULL;
	}
	if (rte_eth_devices[port_id].dev_ops != &dray_ops) {
		rte_errno = EINVAL;
		return NULL;
	}
	device = rte_eth_devices[port_id].data->dev_private;
	room = RTE_PKTMBUF_HEADROOM + device->info.mtu + DRAY_FRAME_BYTES;
	return rte_pktmbuf_pool_create_by_ops(name, n, cache_size, priv_size,
					      (uint16_t)RTE_MIN(room, (uint32_t)UINT16_MAX), socket,
					      RTE_PMD_DRAY_POOL_OPS);
}
