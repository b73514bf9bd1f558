/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reception. Mbufs come from the queue's own pool. A frame of up to copy_max bytes is copied into
 * one; a longer one is attached to it, and its buffer goes back to the peer when the mbuf is freed.
 * libdray has checked the fields of a dray_pkt, which are private; the peer can still change its
 * data.
 */
#include "copy.h"
#include "driver.h"
#include "leases.h"
#include "pool.h"

/* Four fields of an mbuf that are written at once. */
typedef uint64_t __attribute__((may_alias)) rearm_word;

static void count_rx(struct dray_rxq *q, unsigned int n, uint64_t bytes)
{
	dray_count(&q->counters[RX_PACKETS], n);
	dray_count(&q->counters[RX_BYTES], bytes);
}

/* Set the fields that all received frames share. */
static __rte_always_inline void fill_mbuf(const struct dray_rxq *q, struct rte_mbuf *m,
					  uint32_t length)
{
	*(rearm_word *)(uintptr_t)&m->rearm_data = q->rearm;
	m->packet_type = 0;
	m->pkt_len = length;
	m->data_len = (uint16_t)length;
	m->vlan_tci = 0;
}

/* Put a VLAN tag into the frame. If there is no headroom for it, it stays in the mbuf's own field.
 */
static void insert_vlan(struct rte_mbuf *m)
{
	struct rte_vlan_hdr tag = {.vlan_tci = rte_cpu_to_be_16(m->vlan_tci)};
	uint8_t *frame;

	if (m->data_len < sizeof(struct rte_ether_hdr) || rte_pktmbuf_headroom(m) < sizeof(tag)) {
		m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
		return;
	}
	frame = (uint8_t *)rte_pktmbuf_prepend(m, sizeof(tag));
	memmove(frame, frame + sizeof(tag), 2 * RTE_ETHER_ADDR_LEN);
	memcpy(frame + 2 * RTE_ETHER_ADDR_LEN, &(rte_be16_t){rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN)},
	       2);
	memcpy(frame + 2 * RTE_ETHER_ADDR_LEN + 2, &tag.vlan_tci, 2);
}

/*
 * The flags of a frame that has any. A VLAN tag is put into the frame, unless stripping is on.
 */
static __rte_noinline void fill_extras(const struct dray_rxq *q, struct rte_mbuf *m,
				       const struct dray_pkt *p)
{
	if (p->flags & DRAY_PKT_CSUM_GOOD)
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	else if (p->flags & DRAY_PKT_CSUM_NEEDED)
		m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	if (p->flags & DRAY_PKT_HASH) {
		m->hash.rss = p->hash;
		m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	}
	if (p->flags & DRAY_PKT_VLAN) {
		m->vlan_tci = p->vlan;
		m->ol_flags |= RTE_MBUF_F_RX_VLAN;
		if (q->strip)
			m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
		else
			insert_vlan(m);
	}
}

static __rte_always_inline void copy_frame(const struct dray_rxq *q, struct rte_mbuf *m,
					   const struct dray_pkt *p)
{
	fill_mbuf(q, m, p->length);
	m->ol_flags = q->flags;
	copy_roughly((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, p->data, p->length,
		     RTE_MIN(p->room, (uint32_t)q->room));
	if (unlikely(p->flags))
		fill_extras(q, m, p);
}

/*
 * Attach the buffer of a frame to an mbuf. False if the application has too many, or if the
 * buffer is too long for an mbuf's length field.
 */
static __rte_always_inline bool lend_frame(const struct dray_rxq *q, struct rte_mbuf *m,
					   const struct dray_pkt *p)
{
	const uint32_t size = p->headroom + p->room;
	struct lease *lease;

	if (unlikely(p->headroom + p->length > UINT16_MAX))
		return false;
	lease = q->leases->out < __atomic_load_n(q->hold, __ATOMIC_RELAXED)
			? leases_take(q->leases, p)
			: NULL;
	if (unlikely(!lease))
		return false;
	fill_mbuf(q, m, p->length);
	m->data_off = (uint16_t)p->headroom;
	m->buf_addr = (uint8_t *)p->data - p->headroom;
	m->buf_len = (uint16_t)RTE_MIN(size, (uint32_t)UINT16_MAX);
	rte_mbuf_iova_set(m, RTE_BAD_IOVA); /* no device can reach it */
	m->shinfo = &lease->info;
	m->ol_flags = RTE_MBUF_F_EXTERNAL;
	if (unlikely(p->flags))
		fill_extras(q, m, p);
	return true;
}

/*
 * Copy a frame that is longer than an mbuf into a chain of them, of which the first is given.
 * False: there are not enough mbufs; the caller frees the chain.
 */
static bool copy_chain(struct dray_rxq *q, struct rte_mbuf *head, const struct dray_pkt *p)
{
	struct rte_mbuf *last = head;
	uint32_t done = 0;

	fill_mbuf(q, head, p->length);
	head->ol_flags = q->flags;
	for (;;) {
		uint32_t some = RTE_MIN(p->length - done, (uint32_t)q->room);

		memcpy((uint8_t *)last->buf_addr + RTE_PKTMBUF_HEADROOM,
		       (const uint8_t *)p->data + done, some);
		last->data_len = (uint16_t)some;
		done += some;
		if (done == p->length)
			break;
		last->next = rte_pktmbuf_alloc(q->pool);
		/* no other peer may get a received frame */
		if (q->bindable && last->next)
			pool_unbind(&last->next, 1);
		if (!last->next || head->nb_segs == RTE_MBUF_MAX_NB_SEGS) {
			dray_count(&q->counters[RX_NO_MBUF], 1);
			return false;
		}
		last = last->next;
		head->nb_segs++;
	}
	if (unlikely(p->flags))
		fill_extras(q, head, p);
	return true;
}

/*
 * A frame that is not short and cannot be lent. True: the mbuf has it; otherwise the caller frees
 * the mbuf.
 */
static __rte_noinline bool copy_any(struct dray_rxq *q, struct rte_mbuf *m,
				    const struct dray_pkt *p)
{
	if (p->length <= q->room) {
		copy_frame(q, m, p);
		return true;
	}
	if (q->scatter)
		return copy_chain(q, m, p);
	dray_count(&q->counters[RX_TOO_LONG], 1);
	fill_mbuf(q, m, 0);
	m->ol_flags = q->flags;
	return false;
}

/*
 * The pool is nearly empty: frames without an mbuf are kept for the next call. Returns how many
 * have an mbuf.
 */
static __rte_noinline unsigned int with_few_mbufs(struct dray_rxq *q, struct rte_mbuf **mbufs,
						  const struct dray_pkt *pkts, unsigned int n)
{
	unsigned int got = 0;

	while (got < n && rte_mempool_get(q->pool, (void **)&mbufs[got]) == 0)
		got++;
	if (got < n) {
		dray_count(&q->counters[RX_NO_MBUF], 1);
		/*
		 * In front of the frames still pending: these were taken from there, or none are
		 * pending.
		 */
		memmove(&q->pending[n - got], q->pending, q->pending_count * sizeof(*pkts));
		memcpy(q->pending, &pkts[got], (n - got) * sizeof(*pkts));
		q->pending_count = (uint16_t)(q->pending_count + n - got);
	}
	return got;
}

static __rte_noinline unsigned int take_pending(struct dray_rxq *q, struct dray_pkt *pkts,
						unsigned int n)
{
	unsigned int some = RTE_MIN(n, (unsigned int)q->pending_count);

	memcpy(pkts, q->pending, some * sizeof(*pkts));
	q->pending_count = (uint16_t)(q->pending_count - some);
	memmove(q->pending, &q->pending[some], q->pending_count * sizeof(*pkts));
	return some;
}

/* Totals of a burst, added to the counters once. */
struct tally {
	uint64_t bytes;
	unsigned int lent, held;
};

/* Give a frame to an mbuf. True: the mbuf has it. *back: the buffer can go back to the peer. */
static __rte_always_inline bool deliver(struct dray_rxq *q, struct rte_mbuf *m,
					const struct dray_pkt *p, const bool in_place,
					struct tally *tally, bool *back)
{
	*back = true;
	if (likely(p->length <= q->copy_max)) {
		copy_frame(q, m, p);
		return true;
	}
	if (in_place && q->lend) {
		if (likely(lend_frame(q, m, p))) {
			tally->lent++;
			*back = false;
			return true;
		}
		tally->held++;
	}
	return copy_any(q, m, p);
}

static __rte_always_inline uint16_t receive(struct dray_rxq *q, struct rte_mbuf **out,
					    unsigned int n, const bool in_place)
{
	struct rte_mbuf *mbufs[DRAY_BURST];
	struct dray_pkt pkts[DRAY_BURST];
	struct tally tally = {0};
	unsigned int got, k = 0, done = 0;

	if (in_place || unlikely(q->leases->out)) /* lent before the queue was set up again */
		leases_collect(q->leases);
	if (unlikely(q->pending_count))
		got = take_pending(q, pkts, n);
	else
		got = dray_rx_burst(q->port, q->queue, pkts, n);
	if (got == 0)
		return 0;
	if (unlikely(rte_mempool_get_bulk(q->pool, (void **)mbufs, got)))
		got = with_few_mbufs(q, mbufs, pkts, got);
	if (unlikely(q->bindable))
		pool_unbind(mbufs, got);
	for (unsigned int i = 0; i < got; i++) {
		const struct dray_pkt *p = &pkts[i];
		uint32_t length = p->length;
		bool back, has = deliver(q, mbufs[i], p, in_place, &tally, &back);

		if (in_place && back) {
			pkts[done].owner = p->owner;
			pkts[done++].index = p->index;
		}
		if (unlikely(!has)) {
			rte_pktmbuf_free(mbufs[i]);
			continue;
		}
		tally.bytes += length;
		out[k++] = mbufs[i];
	}
	if (!in_place)
		done = got;
	dray_release(pkts, done);
	count_rx(q, k, tally.bytes);
	if (in_place) {
		dray_count(&q->counters[RX_IN_PLACE], tally.lent);
		dray_count(&q->counters[RX_HELD], tally.held);
	}
	return (uint16_t)k;
}

static __rte_always_inline uint16_t burst(void *queue, struct rte_mbuf **mbufs, uint16_t n,
					  const bool in_place)
{
	uint16_t done = 0, some, got;

	do {
		some = RTE_MIN((uint16_t)(n - done), (uint16_t)DRAY_BURST);
		got = receive(queue, &mbufs[done], some, in_place);
		done = (uint16_t)(done + got);
	} while (got == DRAY_BURST && done < n);
	return done;
}

static uint16_t burst_in_place(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	return burst(queue, mbufs, n, true);
}

static uint16_t burst_copying(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	return burst(queue, mbufs, n, false);
}

/* One function for all queues: in place if any of them can. */
eth_rx_burst_t dray_rx_choose(const struct rte_eth_dev *dev)
{
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		const struct dray_rxq *q = dev->data->rx_queues[i];

		if (q && q->lend)
			return burst_in_place;
	}
	return burst_copying;
}

int dray_rx_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	const struct dray_rxq *q = dev->data->rx_queues[queue];

	if (!q->lend)
		snprintf(mode->info, sizeof(mode->info), "Copy%s", q->scatter ? ", scattered" : "");
	else
		snprintf(mode->info, sizeof(mode->info), "Zero copy above %u bytes", q->copy_max);
	return 0;
}
