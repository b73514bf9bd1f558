/* SPDX-License-Identifier: Apache-2.0 */
/* A device (ethdev) of DPDK, whatever its driver. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#include "clock.h"
#include "dpdk_eal.h"
#include "dpdk_memory.h"
#include "dpdk_setup.h"
#include "frame.h"
#include "io.h"

#define PREFIX "dpdk:" /* of the port's name */
/* the usual one of DPDK applications, and the only one that some drivers support */
#define BURST 32u
#define AGAIN_NS (100 * NS_PER_MS) /* between two tries to start */
#define CALL_NS (500 * NS_PER_MS)  /* time for a peer to answer */

static unsigned dpdk_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			   uint32_t longest)
{
	struct io_dpdk *p = (struct io_dpdk *)io;
	uint32_t headers = frame_headers_to(&io->address);

	(void)longest;
	if (!p->opened)
		return 0;
	if (rte_pktmbuf_alloc_bulk(p->pool, p->tx, n) != 0) {
		/* Some drivers free sent packets only when they are called. */
		if (p->started)
			(void)rte_eth_tx_burst(p->port, (uint16_t)(flow % p->queues), NULL, 0);
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = p->tx[i];
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		m->data_len = (uint16_t)(bufs[i].length + headers);
		m->pkt_len = bufs[i].length + headers;
		bufs[i].data = frame + headers;
		bufs[i].index = i;
	}
	return n;
}

/* Returns how many were sent, from the first. */
static unsigned transmit(struct io_dpdk *p, uint16_t queue, struct rte_mbuf **mbufs, unsigned n)
{
	unsigned done = 0;

	while (p->started && done < n) {
		unsigned ask = n - done < BURST ? n - done : BURST;
		unsigned sent = rte_eth_tx_burst(p->port, queue, mbufs + done, (uint16_t)ask);

		done += sent;
		if (sent < ask)
			break;
	}
	return done;
}

static int dpdk_send(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	for (unsigned i = 0; i < n && io->address.ip6; i++)
		frame_finish(bufs[i].data - FRAME_HEADERS6, FRAME_HEADERS6, bufs[i].length);
	return (int)transmit(p, (uint16_t)(flow % p->queues), &p->tx[bufs[0].index], n);
}

static void dpdk_discard(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	rte_pktmbuf_free_bulk(&p->tx[bufs[0].index], n);
}

/* The queues in turn; a second burst only after a full one. */
static unsigned take(struct io_dpdk *p, unsigned n)
{
	unsigned got = 0;

	for (uint16_t i = 0; i < p->queues && got + BURST <= n; i++) {
		unsigned came;

		do {
			came = rte_eth_rx_burst(p->port, p->next, p->rx + got, BURST);
			got += came;
		} while (came == BURST && got + BURST <= n);
		p->next = (uint16_t)((p->next + 1) % p->queues);
	}
	return got;
}

static int dpdk_receive(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	p->received = p->started ? take(p, n) : 0;
	for (unsigned i = 0; i < p->received; i++)
		rte_prefetch0(rte_pktmbuf_mtod(p->rx[i], void *));
	for (unsigned i = 0; i < p->received; i++) {
		struct rte_mbuf *m = p->rx[i];
		uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
		uint32_t headers, length = frame_find(&p->seen, frame,
						      m->nb_segs == 1 ? m->data_len : 0, &headers);

		bufs[i] = (struct io_buf){
			.data = frame + headers, .length = length, .headers = headers, .index = i};
	}
	return (int)p->received;
}

/* Sent packets belong to the device: remove them, so that dpdk_done does not free them. */
static unsigned dpdk_reply(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dpdk *p = (struct io_dpdk *)io;
	struct rte_mbuf **first = &p->rx[bufs[0].index];
	unsigned sent;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(first[i], uint8_t *);

		frame_answer(frame, bufs[i].headers, io->address.from_mac);
		frame_finish(frame, bufs[i].headers, bufs[i].length);
	}
	sent = transmit(p, 0, first, n);
	memset(first, 0, sent * sizeof(*first));
	return sent;
}

static void dpdk_done(struct io *io)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	rte_pktmbuf_free_bulk(p->rx, p->received); /* it skips NULL */
	p->received = 0;
}

static void start(struct io_dpdk *p)
{
	p->start_error = rte_eth_dev_start(p->port);
	p->started = p->start_error == 0;
	p->tried_ns = clock_now();
}

static bool bring_up(struct io_dpdk *p, const struct options *o, const char *name,
		     struct io_error *error)
{
	if (!dpdk_set_up(p, o, name, error))
		return false;
	start(p);
	p->opened = true;
	return true;
}

/*
 * A secondary process of EAL cannot start before the primary one, which may be started only when
 * this end has reported that it is ready. So its port is opened at the first use.
 */
static void open_late(struct io_dpdk *p)
{
	struct io_error error;

	if (p->failed || !dpdk_eal_has_primary(p->options->eal))
		return;
	p->failed = !bring_up(p, p->options, p->io.name + strlen(PREFIX), &error);
	if (p->failed)
		fprintf(stderr, "draygen: %s\n", error.text);
}

/*
 * A client of net_memif does not start before its server listens, which the server may do only when
 * this end has reported that it is ready. A client that the server rejected or left does not try
 * again by itself. Only the first try logs an error.
 */
static void start_again(struct io_dpdk *p)
{
	uint32_t level = rte_log_get_global_level();

	rte_log_set_global_level(RTE_LOG_EMERG);
	if (p->started)
		(void)rte_eth_dev_stop(p->port);
	dpdk_memory_restore();
	start(p);
	rte_log_set_global_level(level);
}

static void look_at_link(struct io_dpdk *p)
{
	struct rte_eth_link link;
	bool up;

	if (!p->opened)
		open_late(p);
	if (p->opened && !p->up && (p->calls || !p->started) &&
	    clock_now() - p->tried_ns > (p->started ? CALL_NS : AGAIN_NS))
		start_again(p);
	up = p->started && rte_eth_link_get_nowait(p->port, &link) == 0 &&
	     link.link_status == RTE_ETH_LINK_UP;

	if (up && !p->up)
		p->generation++;
	if (!up && (p->up || p->down_ns == 0))
		p->down_ns = clock_now();
	p->up = up;
	p->was_up |= up;
}

static int dpdk_service(struct io *io)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	look_at_link(p);
	if (p->up || (p->started && !p->was_up) || clock_now() - p->down_ns <= p->patience_ns)
		return 0;
	return p->started ? -ENOTCONN : p->start_error;
}

static bool dpdk_has_peer(struct io *io)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	look_at_link(p);
	return p->up;
}

/*
 * Nothing wakes this thread, so it polls. But no packet arrives before there is a link, and other
 * threads may need the CPU.
 */
static int dpdk_wait(struct io *io, unsigned what, uint64_t until_ns)
{
	struct io_dpdk *p = (struct io_dpdk *)io;
	uint64_t soon = clock_now() + NS_PER_MS;

	(void)what;
	if (p->was_up)
		sched_yield();
	else
		io_sleep(until_ns < soon ? until_ns : soon);
	return 0;
}

/* Drivers may reset their counters for a new peer. */
static uint64_t dpdk_drops(struct io *io)
{
	struct io_dpdk *p = (struct io_dpdk *)io;
	struct rte_eth_stats stats;

	if (p->opened && rte_eth_stats_get(p->port, &stats) == 0 &&
	    stats.imissed + stats.rx_nombuf > p->drops)
		p->drops = stats.imissed + stats.rx_nombuf;
	return p->drops;
}

static void dpdk_link(struct io *io, struct io_link *link)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	*link = (struct io_link){.kind = p->driver, .generation = (uint32_t)p->generation};
}

/*
 * The pool stays until EAL ends: others' rings may have packets of it. A driver's messages about a
 * peer that is gone would hide the reason for the role's end.
 */
static void dpdk_close(struct io *io)
{
	struct io_dpdk *p = (struct io_dpdk *)io;

	dpdk_eal_closing();
	rte_log_set_global_level(RTE_LOG_EMERG);
	if (p->started)
		(void)rte_eth_dev_stop(p->port);
	if (p->configured)
		(void)rte_eth_dev_close(p->port);
	if (p->has_eal)
		dpdk_eal_stop();
	free(p);
}

static const struct io_ops ops = {
	.alloc = dpdk_alloc,
	.send = dpdk_send,
	.discard = dpdk_discard,
	.receive = dpdk_receive,
	.reply = dpdk_reply,
	.done = dpdk_done,
	.wait = dpdk_wait,
	.service = dpdk_service,
	.has_peer = dpdk_has_peer,
	.drops = dpdk_drops,
	.link = dpdk_link,
	.close = dpdk_close,
};

struct io *io_dpdk_open(const struct options *o, const char *name, struct io_error *error)
{
	struct io_dpdk *p = calloc(1, sizeof(*p));

	if (!p)
		return io_fail(error, "no memory");
	p->io.ops = &ops;
	p->io.polls = true;
	p->options = o;
	p->queues = (uint16_t)o->queues;
	p->patience_ns = o->peer_timeout_ns;
	p->start_error = -ENOTCONN;
	p->driver = "unknown";
	snprintf(p->io.name, sizeof(p->io.name), PREFIX "%s", name);
	if (dpdk_eal_has_primary(o->eal) && !bring_up(p, o, name, error)) {
		dpdk_close(&p->io);
		return NULL;
	}
	look_at_link(p);
	return &p->io;
}

const char *io_dpdk_version(void)
{
	static char text[32];

	/* The release of each November begins a new ABI, numbered after the year that follows. */
	snprintf(text, sizeof(text), ", DPDK ABI %d", RTE_VER_YEAR + (RTE_VER_MONTH >= 11));
	return text;
}
