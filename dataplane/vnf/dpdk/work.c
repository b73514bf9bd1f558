/* SPDX-License-Identifier: Apache-2.0 */
/* Bursts of mbufs through the function. */
#include "work.h"

#include <rte_cycles.h>
#include <rte_fib.h>
#include <rte_memcpy.h>
#include <rte_pause.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#define AHEAD 4u /* packets */

void work_drop(struct worker *w, struct rte_mbuf *m, enum reason reason)
{
	count(&w->counters->dropped[reason], 1);
	rte_pktmbuf_free(m);
}

static void not_taken(struct worker *w, unsigned out, struct rte_mbuf **m, unsigned n,
		      enum reason reason)
{
	if (n == 0)
		return;
	count(&w->counters->not_taken[out], n);
	count(&w->counters->dropped[reason], n);
	rte_pktmbuf_free_bulk(m, n);
}

void work_transmit(struct worker *w, unsigned out, struct rte_mbuf **m, unsigned n)
{
	uint16_t sent = rte_eth_tx_burst(w->program->device[out], w->queue, m, (uint16_t)n);

	count(&w->counters->sent[out], sent);
	not_taken(w, out, m + sent, n - sent, DROP_TX);
}

/* The core that transmits reads the port from the mbuf. */
static void hand_over(struct worker *w, unsigned out, struct rte_mbuf **m, unsigned n)
{
	unsigned taken;

	for (unsigned i = 0; i < n; i++)
		m[i]->port = (uint16_t)out;
	taken = rte_ring_sp_enqueue_burst(w->ring, (void **)m, n, NULL);
	not_taken(w, out, m + taken, n - taken, DROP_RING);
}

static void flush_one(struct worker *w, unsigned out)
{
	w->emit(w, out, w->outbox[out].m, w->outbox[out].n);
	w->outbox[out].n = 0;
}

void work_flush(struct worker *w)
{
	for (unsigned out = 0; out < w->program->ports; out++)
		if (w->outbox[out].n)
			flush_one(w, out);
}

static void put(struct worker *w, unsigned out, struct rte_mbuf *m)
{
	w->outbox[out].m[w->outbox[out].n++] = m;
	if (w->outbox[out].n == w->program->options.burst)
		flush_one(w, out);
}

/*
 * Data outside the mbuf is the sender's: net_dray lends its memory. It can be changed until the
 * packet is sent, so neither headers nor what was checked may stay there.
 */
static enum reason make_own(const struct worker *w, struct rte_mbuf **m)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(w->program->pool);
	char *data;

	if (!copy)
		return DROP_MEMORY;
	data = rte_pktmbuf_append(copy, (*m)->data_len);
	if (!data) {
		rte_pktmbuf_free(copy);
		return DROP_SEGMENTS;
	}
	rte_memcpy(data, rte_pktmbuf_mtod(*m, const void *), (*m)->data_len);
	copy->port = (*m)->port;
	rte_pktmbuf_free(*m);
	*m = copy;
	return PASS;
}

/* The first write to the frame: all decisions were made on the snapshot. */
enum reason work_apply(struct rte_mbuf *m, const struct change *c)
{
	uint32_t length;

	if (c->push > c->strip) {
		if (!rte_pktmbuf_prepend(m, (uint16_t)(c->push - c->strip)))
			return DROP_HEADROOM;
	} else if (c->strip > c->push) {
		rte_pktmbuf_adj(m, (uint16_t)(c->strip - c->push));
	}
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->front, c->push);
	length = c->push + c->keep;
	if (m->pkt_len > length)
		rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - length));
	/* The receiving driver's flags no longer apply. */
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	m->packet_type = 0;
	m->tx_offload = 0;
	return PASS;
}

static void finish(struct worker *w, struct rte_mbuf *m, const struct change *c)
{
	enum reason reason = work_apply(m, c);

	if (reason) {
		work_drop(w, m, reason);
		return;
	}
	if (c->reply)
		count(&w->counters->replied[c->reply], 1);
	put(w, c->out, m);
}

/* *m may become another mbuf, whatever the answer is. */
static enum reason look(const struct worker *w, unsigned in, struct rte_mbuf **m, uint32_t want,
			struct change *c)
{
	struct packet p;
	enum reason reason = PASS;

	if ((*m)->nb_segs != 1)
		return DROP_SEGMENTS;
	if (!RTE_MBUF_DIRECT(*m))
		reason = make_own(w, m);
	if (reason)
		return reason;
	packet_take(&p, rte_pktmbuf_mtod(*m, const uint8_t *), (*m)->data_len, in, want);
	return function_handle(&w->program->function, &p, c);
}

static void prefetch(struct rte_mbuf *m)
{
	rte_prefetch0(rte_pktmbuf_mtod(m, void *));
}

static void handle_none(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n)
{
	w->emit(w, function_opposite(&w->program->function, in), m, n);
}

static void handle_each(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n)
{
	uint32_t want = function_snapshot(w->program->function.mode);

	for (unsigned i = 0; i < n && i < AHEAD; i++)
		prefetch(m[i]);
	for (unsigned i = 0; i < n; i++) {
		struct change c;
		enum reason reason;

		if (i + AHEAD < n)
			prefetch(m[i + AHEAD]);
		reason = look(w, in, &m[i], want, &c);
		if (reason)
			work_drop(w, m[i], reason);
		else
			finish(w, m[i], &c);
	}
}

/* Replies need no route. */
static void route_all(struct worker *w, struct rte_mbuf **m, struct change *c, unsigned n)
{
	const struct program *p = w->program;
	uint64_t hops[BURST_MAX];
	uint32_t ips[BURST_MAX];

	for (unsigned i = 0; i < n; i++)
		ips[i] = c[i].destination;
	rte_fib_lookup_bulk(p->fib, ips, hops, (int)n);
	for (unsigned i = 0; i < n; i++) {
		const struct hop *hop = hops[i] == p->no_hop ? NULL : &p->hops[hops[i]];
		enum reason reason = l3fwd_route(p->function.port, hop, &c[i]);

		if (reason)
			work_drop(w, m[i], reason);
		else
			finish(w, m[i], &c[i]);
	}
}

static void handle_l3fwd(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n)
{
	uint32_t want = function_snapshot(MODE_L3FWD);
	struct rte_mbuf *routed[BURST_MAX];
	struct change c[BURST_MAX];
	unsigned k = 0;

	for (unsigned i = 0; i < n && i < AHEAD; i++)
		prefetch(m[i]);
	for (unsigned i = 0; i < n; i++) {
		enum reason reason;

		if (i + AHEAD < n)
			prefetch(m[i + AHEAD]);
		reason = look(w, in, &m[i], want, &c[k]);
		if (reason)
			work_drop(w, m[i], reason);
		else if (c[k].reply)
			finish(w, m[i], &c[k]);
		else
			routed[k++] = m[i];
	}
	route_all(w, routed, c, k);
}

void work_handle(struct worker *w, unsigned in, struct rte_mbuf **m, unsigned n)
{
	if (w->ticks)
		for (uint64_t end = rte_rdtsc() + n * w->ticks; rte_rdtsc() < end;)
			rte_pause();
	w->handle(w, in, m, n);
}

void work_open(struct worker *w, const struct program *program, struct counters *counters,
	       uint16_t queue, struct rte_ring *ring)
{
	memset(w, 0, sizeof(*w));
	w->program = program;
	w->counters = counters;
	w->queue = queue;
	w->ring = ring;
	w->ticks = (uint64_t)((double)program->options.work_ns * (double)rte_get_tsc_hz() / 1e9);
	w->emit = ring ? hand_over : work_transmit;
	w->handle = program->options.mode == MODE_NONE	  ? handle_none
		    : program->options.mode == MODE_L3FWD ? handle_l3fwd
							  : handle_each;
}
