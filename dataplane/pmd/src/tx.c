/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending. An mbuf of any pool is copied once, into a buffer of the link; one that is bound to such
 * a buffer (pool.c) is sent as it is, and gets an empty buffer in exchange. Only an
 * mbuf's data is copied: memory next to it is not for the peer.
 */
#include "copy.h"
#include "driver.h"
#include "pool.h"

/* The path of a burst: a queue of the present link, which others may share. */
struct path {
	struct dray_txq *q;
	struct dray_link_queue *queue;
	uint16_t number;
};

/* Totals of a burst, added to the counters once. */
struct tally {
	uint64_t bytes;
	unsigned int in_place, old, dropped;
};

static bool copy_chain(struct dray_pkt *p, const struct rte_mbuf *m)
{
	uint32_t done = 0;

	for (; m; m = m->next) {
		if (m->data_len > p->room - done)
			return false;
		memcpy((uint8_t *)p->data + done, rte_pktmbuf_mtod(m, const void *), m->data_len);
		done += m->data_len;
	}
	p->length = done;
	return done > 0;
}

static __rte_always_inline void copy_tag(const struct dray_txq *q, struct dray_pkt *p,
					 const struct rte_mbuf *m)
{
	if (unlikely(m->ol_flags & RTE_MBUF_F_TX_VLAN) && q->vlan) {
		p->flags |= DRAY_PKT_VLAN;
		p->vlan = m->vlan_tci;
	}
}

/* Copy a frame to an empty buffer. False: it does not fit, or is empty. */
static __rte_always_inline bool copy_frame(const struct dray_txq *q, struct dray_pkt *p,
					   const struct rte_mbuf *m)
{
	const uint32_t length = m->data_len;

	if (unlikely(m->nb_segs != 1)) {
		if (!copy_chain(p, m))
			return false;
	} else {
		if (unlikely(length - 1 >= p->room)) /* wraps for 0 */
			return false;
		copy_exactly(p->data, rte_pktmbuf_mtod(m, const void *), length);
		p->length = length;
	}
	copy_tag(q, p, m);
	return true;
}

/* It has one reference and one segment, and nothing is attached to it. */
static __rte_always_inline bool is_plain(const struct rte_mbuf *m, const struct rte_mempool *pool)
{
	return m->pool == pool && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       RTE_MBUF_DIRECT(m);
}

static __rte_always_inline void free_mbufs(struct rte_mbuf **mbufs, unsigned int n)
{
	struct rte_mempool *pool;
	unsigned int i;

	if (unlikely(n == 0))
		return;
	pool = mbufs[0]->pool;
	for (i = 0; i < n && is_plain(mbufs[i], pool); i++)
		;
	if (likely(i > 0))
		rte_mempool_put_bulk(pool, (void **)mbufs, i);
	if (unlikely(i < n))
		rte_pktmbuf_free_bulk(&mbufs[i], n - i);
}

/* The first mbuf cannot be sent. */
static __rte_noinline void drop(struct dray_txq *q, struct rte_mbuf *m, struct tally *tally)
{
	rte_pktmbuf_free(m);
	dray_count(&q->counters[TX_TOO_LONG], 1);
	tally->dropped++;
}

/* No buffer: the peer has them all, or there is no peer. The application must not wait for one that
 * is gone. */
static __rte_noinline unsigned int no_buffer(const struct path *path, struct rte_mbuf **mbufs,
					     unsigned int n, struct tally *tally)
{
	struct rte_eth_link link;

	rte_eth_linkstatus_get(path->q->device->ethdev, &link);
	if (link.link_status == RTE_ETH_LINK_UP)
		return 0;
	rte_pktmbuf_free_bulk(mbufs, n);
	dray_count(&path->q->counters[TX_NO_LINK], n);
	tally->dropped += n;
	return n;
}

/* Send up to DRAY_BURST mbufs by copying them. Returns how many were consumed. */
static __rte_always_inline unsigned int send_copies(const struct path *path,
						    struct rte_mbuf **mbufs, unsigned int n,
						    struct tally *tally)
{
	struct dray_pkt pkts[DRAY_BURST];
	unsigned int got = dray_tx_alloc(path->q->port, path->number, pkts, n, 1), i, sent;
	uint64_t bytes = 0;

	if (unlikely(got == 0))
		return no_buffer(path, mbufs, n, tally);
	for (i = 0; i < got; i++) {
		if (unlikely(!copy_frame(path->q, &pkts[i], mbufs[i])))
			break;
		bytes += pkts[i].length;
	}
	sent = dray_tx_burst(path->q->port, path->number, pkts, i);
	if (unlikely(sent < got)) {
		for (unsigned int k = sent; k < i; k++)
			bytes -= pkts[k].length;
		dray_release(&pkts[sent], got - sent);
	}
	free_mbufs(mbufs, sent);
	tally->bytes += bytes;
	if (unlikely(i < got && sent == i)) {
		drop(path->q, mbufs[i], tally);
		return sent + 1;
	}
	return sent;
}

/*
 * The queue sends through a new generation. Free mbufs give up buffers of older ones.
 */
static __rte_noinline void begin_generation(const struct path *path, struct dray_owner *owner)
{
	struct dray_info info = {.size = sizeof(info)};

	path->queue->owner = owner;
	path->queue->bound = 0;
	path->queue->bound_max = 0;
	if (dray_info(path->q->port, &info) == 0)
		path->queue->bound_max = info.packet_slots / 2;
	pool_sweep(path->q->device->opened, path->number, owner);
}

/*
 * Whether an mbuf of our pools can be sent as it is: it is bound to a buffer of this generation.
 */
static __rte_always_inline bool is_bound(const struct dray_link_queue *queue,
					 const struct rte_mbuf *m)
{
	struct binding *b = pool_binding(m);

	return b->opened && b->owner == queue->owner && rte_mbuf_refcnt_read(m) == 1 &&
	       rte_mbuf_ext_refcnt_read(&b->info) == 1 && m->nb_segs == 1 && m->data_len > 0;
}

static __rte_always_inline void describe(const struct dray_txq *q, struct dray_pkt *p,
					 const struct rte_mbuf *m)
{
	const struct binding *b = pool_binding(m);

	*p = (struct dray_pkt){
		.data = rte_pktmbuf_mtod(m, void *),
		.length = m->data_len,
		.room = (uint32_t)m->buf_len - m->data_off,
		.headroom = m->data_off,
		.owner = b->owner,
		.index = b->index,
	};
	copy_tag(q, p, m);
}

/*
 * Give buffers to mbufs that were copied, so that they need no copy next time. Only this thread has
 * them.
 */
static __rte_noinline void bind_some(const struct path *path, struct rte_mbuf **mbufs,
				     unsigned int n)
{
	struct dray_link_queue *queue = path->queue;
	struct dray_pkt pkts[DRAY_BURST];
	unsigned int got;

	if (queue->bound >= queue->bound_max)
		return;
	n = RTE_MIN(n, queue->bound_max - queue->bound);
	got = dray_tx_alloc(path->q->port, path->number, pkts, n, 1);
	for (unsigned int i = 0; i < got; i++) {
		/* The application may write as much as the pool promises. */
		if (pkts[i].owner != queue->owner ||
		    pkts[i].headroom + pkts[i].room < pool_binding(mbufs[i])->own_length) {
			dray_release(&pkts[i], got - i);
			return;
		}
		pool_bind(mbufs[i], path->q->device->opened, path->number, &pkts[i]);
		queue->bound++;
	}
}

/* An mbuf of our pools that was copied: true if it can be bound. */
static __rte_noinline bool can_bind(const struct path *path, struct rte_mbuf *m,
				    struct tally *tally)
{
	struct binding *b = pool_binding(m);

	if (rte_mbuf_refcnt_read(m) != 1 || rte_mbuf_ext_refcnt_read(&b->info) != 1 ||
	    m->nb_segs != 1)
		return false;
	if (b->opened && b->opened == path->q->device->opened && b->queue == path->number) {
		if (b->owner != path->queue->owner)
			tally->old++;
		else if (path->queue->bound)
			path->queue->bound--;
		pool_unbind_owned(m);
	} else if (b->opened && opened_is_closed(b->opened)) {
		pool_unbind_one(m);
	}
	return !b->opened;
}

/*
 * After the burst: mbufs whose buffers were sent get empty ones, and unused empty buffers go back.
 */
static __rte_always_inline unsigned int exchange(const struct path *path, struct rte_mbuf **mbufs,
						 unsigned int n, unsigned int sent,
						 const struct dray_pkt *out, struct dray_pkt *fresh,
						 uint32_t copied, struct rte_mbuf **bare,
						 struct tally *tally)
{
	unsigned int bares = 0;

	for (unsigned int i = 0; i < sent; i++) {
		tally->bytes += out[i].length;
		if (likely(!(copied >> i & 1))) {
			pool_rebind(mbufs[i], pool_binding(mbufs[i]), &fresh[i]);
			tally->in_place++;
		} else if (pool_is_ours(mbufs[i]->pool) && can_bind(path, mbufs[i], tally)) {
			bare[bares++] = mbufs[i];
		}
	}
	if (unlikely(sent < n))
		dray_release(&fresh[sent],
			     n - sent); /* a copy that was not sent is in its fresh buffer */
	return bares;
}

/* As free_mbufs, for mbufs that are mostly of one of our pools. */
static __rte_always_inline void free_bound(struct rte_mbuf **mbufs, unsigned int n, uint32_t copied)
{
	if (likely(copied == 0)) {
		for (unsigned int i = 0; i < n; i++)
			mbufs[i]->ol_flags = RTE_MBUF_F_EXTERNAL;
		if (n)
			rte_mempool_put_bulk(mbufs[0]->pool, (void **)mbufs, n);
		return;
	}
	rte_pktmbuf_free_bulk(mbufs, n);
}

/* As send_copies, if mbufs may be bound. */
static __rte_noinline unsigned int send_bound(const struct path *path, struct rte_mbuf **mbufs,
					      unsigned int n, struct tally *tally)
{
	struct dray_pkt out[DRAY_BURST], fresh[DRAY_BURST];
	struct rte_mbuf *bare[DRAY_BURST];
	const struct rte_mempool *pool = mbufs[0]->pool;
	unsigned int got = dray_tx_alloc(path->q->port, path->number, fresh, n, 1), i, sent, bares;
	uint32_t copied = 0;

	if (unlikely(got == 0))
		return no_buffer(path, mbufs, n, tally);
	if (unlikely(fresh[0].owner != path->queue->owner))
		begin_generation(path, fresh[0].owner);
	for (i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];

		if (likely(m->pool == pool && is_bound(path->queue, m))) {
			describe(path->q, &out[i], m);
			continue;
		}
		if (unlikely(!copy_frame(path->q, &fresh[i], m)))
			break;
		out[i] = fresh[i];
		copied |= 1u << i;
	}
	sent = dray_tx_burst(path->q->port, path->number, out, i);
	bares = exchange(path, mbufs, got, sent, out, fresh, copied, bare, tally);
	if (unlikely(bares))
		bind_some(path, bare, bares);
	free_bound(mbufs, sent, copied);
	if (unlikely(i < got && sent == i)) {
		drop(path->q, mbufs[i], tally);
		return sent + 1;
	}
	return sent;
}

/* Take buffers of this queue that other threads have given up. */
static __rte_noinline void take_returns(const struct path *path)
{
	unsigned int n =
		opened_take_returns(path->q->device->opened, path->number, path->queue->owner);

	path->queue->bound -= RTE_MIN(n, path->queue->bound);
}

static __rte_always_inline uint16_t send_all(const struct path *path, struct rte_mbuf **mbufs,
					     uint16_t n)
{
	struct dray_txq *q = path->q;
	struct tally tally = {0};
	unsigned int done = 0, some, used;

	if (unlikely(opened_has_returns(q->device->opened, path->number)))
		take_returns(path);
	while (done < n) {
		some = RTE_MIN(n - done, DRAY_BURST);
		if (unlikely(pool_is_ours(mbufs[done]->pool)))
			used = send_bound(path, &mbufs[done], some, &tally);
		else
			used = send_copies(path, &mbufs[done], some, &tally);
		done += used;
		if (used == 0)
			break;
	}
	dray_count(&q->counters[TX_PACKETS], done - tally.dropped);
	dray_count(&q->counters[TX_BYTES], tally.bytes);
	dray_count(&q->counters[TX_IN_PLACE], tally.in_place);
	dray_count(&q->counters[TX_OLD], tally.old);
	return (uint16_t)done;
}

static uint16_t burst_alone(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	struct dray_txq *q = queue;
	struct path path = {.q = q, .queue = &q->device->link_queues[0]};

	return send_all(&path, mbufs, n);
}

/* Queues of the application beyond those of the present link share these. */
static uint16_t burst_shared(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	struct dray_txq *q = queue;
	uint16_t count = __atomic_load_n(&q->device->link_queue_count, __ATOMIC_RELAXED), sent;
	struct path path = {.q = q, .number = count ? (uint16_t)(q->queue % count) : 0};

	path.queue = &q->device->link_queues[path.number];
	rte_spinlock_lock(&path.queue->lock);
	sent = send_all(&path, mbufs, n);
	rte_spinlock_unlock(&path.queue->lock);
	return sent;
}

eth_tx_burst_t dray_tx_choose(const struct rte_eth_dev *dev)
{
	return dev->data->nb_tx_queues > 1 ? burst_shared : burst_alone;
}

int dray_tx_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	(void)queue;
	snprintf(mode->info, sizeof(mode->info), "Zero copy of bound mbufs%s",
		 dev->data->nb_tx_queues > 1 ? ", queues locked" : "");
	return 0;
}
