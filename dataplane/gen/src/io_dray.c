/* SPDX-License-Identifier: Apache-2.0 */
/* A port of libdray, with one queue in each direction. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dray.h"
#include "frame.h"
#include "io.h"
#include "net.h"

#define US 1000

struct io_dray {
	struct io io;
	struct dray_port *port;
	bool busy, look; /* look: service is due before the next sleep */
	bool asked;	 /* the library has asked to be woken: this end may sleep */
	unsigned received;
	bool replied;	     /* some of them were sent back */
	unsigned full;	     /* the kind of buffers that ran out: DRAY_WAIT_... */
	uint32_t packet_max; /* bytes of a packet buffer */
	struct io_link link; /* the last one */
	struct frame_seen seen;
	struct dray_pkt tx[IO_BATCH], rx[IO_BATCH];
};

/*
 * Each message gets a buffer of the kind that it needs: of those for long ones a link has few.
 * Returns how many.
 */
static unsigned alloc_messages(struct io_dray *p, const struct io_buf *bufs, unsigned n)
{
	unsigned i = 0;

	while (i < n && dray_tx_alloc(p->port, 0, &p->tx[i], 1, bufs[i].length + FAPI_HEADERS) == 1)
		i++;
	return i;
}

static unsigned dray_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			   uint32_t longest)
{
	struct io_dray *p = (struct io_dray *)io;
	const uint32_t headers = frame_headers_to(&p->io.address);
	const uint32_t first = p->io.address.fapi ? bufs->length : longest;

	(void)flow;
	n = p->io.address.fapi ? alloc_messages(p, bufs, n)
			       : dray_tx_alloc(p->port, 0, p->tx, n, longest + headers);
	if (n == 0)
		p->full = first + headers > p->packet_max ? DRAY_WAIT_MESSAGE : DRAY_WAIT_TX;
	for (unsigned i = 0; i < n; i++) {
		p->tx[i].length = bufs[i].length + headers;
		bufs[i].data = (uint8_t *)p->tx[i].data + headers;
		bufs[i].index = i;
	}
	return n;
}

static int dray_send(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_dray *p = (struct io_dray *)io;
	struct dray_pkt *first = &p->tx[bufs[0].index];

	(void)flow;
	for (unsigned i = 0; i < n && p->io.address.ip6; i++)
		frame_finish(first[i].data, FRAME_HEADERS6, bufs[i].length);
	return (int)dray_tx_burst(p->port, 0, first, n);
}

static void dray_discard(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dray *p = (struct io_dray *)io;

	dray_release(&p->tx[bufs[0].index], n);
}

/* Received datagram i, whose frame begins with so many bytes of headers. */
static inline void put(struct io_buf *buf, const struct dray_pkt *frame, uint32_t headers,
		       uint32_t length, unsigned i)
{
	buf->data = (uint8_t *)frame->data + headers;
	buf->length = length;
	buf->headers = headers;
	buf->index = i;
}

/* Describe datagrams in frames like the last one, from i on. Returns where they end. */
static unsigned put_alike(struct io_dray *p, struct io_buf *bufs, unsigned i, unsigned n)
{
	const struct frame_like like = frame_like(&p->seen);
	const uint32_t payload = p->seen.payload;

	for (; i < n && frame_is_like(&like, p->rx[i].data, p->rx[i].length); i++)
		put(&bufs[i], &p->rx[i], FRAME_HEADERS, payload, i);
	return i;
}

static void put_messages(struct io_dray *p, struct io_buf *bufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		put(&bufs[i], &p->rx[i], FAPI_HEADERS, fapi_payload(p->rx[i].data, p->rx[i].length),
		    i);
}

static int dray_receive(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dray *p = (struct io_dray *)io;

	n = p->received = dray_rx_burst(p->port, 0, p->rx, n);
	p->asked = n == 0 && dray_may_sleep(p->port, 0) > 0;
	if (p->io.address.fapi) {
		put_messages(p, bufs, n);
		return (int)n;
	}
	for (unsigned i = 0; (i = put_alike(p, bufs, i, n)) < n; i++) {
		const struct dray_pkt *frame = &p->rx[i];
		uint32_t headers,
			length = frame_find(&p->seen, frame->data, frame->length, &headers);

		put(&bufs[i], frame, headers, length, i);
	}
	return (int)n;
}

/* Sent packets no longer belong to this end: mark them, so that dray_done does not release them. */
static unsigned dray_reply(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_dray *p = (struct io_dray *)io;
	struct dray_pkt *first = &p->rx[bufs[0].index];
	unsigned sent;

	for (unsigned i = 0; i < n; i++) {
		frame_answer(first[i].data, bufs[i].headers, io->address.from_mac);
		frame_finish(first[i].data, bufs[i].headers, bufs[i].length);
	}
	sent = dray_tx_burst(p->port, 0, first, n);
	for (unsigned i = 0; i < sent; i++)
		first[i].owner = NULL;
	p->replied |= sent > 0;
	return sent;
}

static void dray_done(struct io *io)
{
	struct io_dray *p = (struct io_dray *)io;
	unsigned kept = p->replied ? 0 : p->received;

	for (unsigned i = kept; i < p->received; i++)
		if (p->rx[i].owner)
			p->rx[kept++] = p->rx[i];
	dray_release(p->rx, kept);
	p->received = 0;
	p->replied = false;
}

/* If the peer closes first, the link is gone. */
static void remember_link(struct io_dray *p)
{
	struct dray_info info = {.size = sizeof(info)};

	if (dray_info(p->port, &info) < 0 || info.state != DRAY_LINK_UP)
		return;
	p->link.kind = info.kind == DRAY_LINK_NETDEV ? "netdev" : "shm";
	p->link.generation = info.generation;
	p->packet_max = info.packet_max;
}

static int serve(struct io *io)
{
	struct io_dray *p = (struct io_dray *)io;
	struct dray_event events[8];

	if (dray_service(p->port) > 0)
		while (dray_events(p->port, events, 8) == 8)
			;
	remember_link(p);
	return 0;
}

/*
 * dray_wait counts in ms, so a wait until a given time polls the descriptor: after an empty receive
 * the library has asked to be woken.
 */
static int dray_port_wait(struct io *io, unsigned what, uint64_t until_ns)
{
	struct io_dray *p = (struct io_dray *)io;
	struct pollfd fd = {.events = POLLIN};
	int ret;

	if (p->busy || (what == IO_RX && !p->asked))
		return 0;
	if (what & IO_TX) {
		ret = dray_wait(p->port, 0, p->full, 1);
		return ret < 0 && ret != -EINTR ? ret : 0;
	}
	if (p->look) { /* woken without a packet: the wake-up was for the control plane */
		p->look = false;
		return serve(io);
	}
	fd.fd = dray_fd(p->port);
	ret = io_poll(&fd, 1, until_ns);
	p->look = ret > 0;
	return ret < 0 ? ret : 0;
}

static void dray_link(struct io *io, struct io_link *link)
{
	struct io_dray *p = (struct io_dray *)io;
	struct dray_stats stats = {.size = sizeof(stats)};

	*link = p->link;
	link->judges = true;
	if (dray_stats(p->port, DRAY_ALL_QUEUES, &stats) == 0)
		for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
			link->violations += stats.violations[i];
}

static void dray_io_close(struct io *io)
{
	struct io_dray *p = (struct io_dray *)io;

	(void)dray_close(p->port);
	free(p);
}

/*
 * Bytes of the longest frame. Behind a tag of 802.1Q, with which only a fronthaul's frames begin, a
 * device takes 4 more; what is longer it would drop.
 */
static uint32_t longest(const struct dray_info *info, bool tagged)
{
	if (info->kind == DRAY_LINK_NETDEV)
		return info->mtu + ETHERNET + (tagged ? TAG : 0);
	return info->packet_max > info->message_max ? info->packet_max : info->message_max;
}

/* The port's addresses, and its longest frame, which is final once there is a peer. */
static void look_up(struct io_dray *p, const struct dray_info *info)
{
	struct frame_address *a = &p->io.address;
	uint32_t limit = a->fapi ? FAPI_MAX : FRAME_MAX,
		 most = a->fapi ? info->message_max : longest(info, a->fronthaul);

	memcpy(a->from_mac, info->mac, 6);
	if (a->ip6)
		memcpy(a->from_ip, info->ip6, 16);
	else
		memcpy(a->from_ip, info->ip4, 4);
	p->io.frame_max = most > limit ? limit : most;
}

static bool dray_has_peer(struct io *io)
{
	struct io_dray *p = (struct io_dray *)io;
	struct dray_info info = {.size = sizeof(info)};

	(void)serve(io);
	if (dray_info(p->port, &info) < 0 || info.state != DRAY_LINK_UP)
		return false;
	look_up(p, &info);
	return true;
}

static const struct io_ops ops = {
	.alloc = dray_alloc,
	.send = dray_send,
	.discard = dray_discard,
	.receive = dray_receive,
	.reply = dray_reply,
	.done = dray_done,
	.wait = dray_port_wait,
	.service = serve,
	.has_peer = dray_has_peer,
	.link = dray_link,
	.close = dray_io_close,
};

struct io *io_dray_open(const struct options *o, const char *name, struct io_error *error)
{
	struct io_dray *p = calloc(1, sizeof(*p));
	struct dray_options options = {.size = sizeof(options), .queues = 1};
	struct dray_info info = {.size = sizeof(info)};
	int ret;

	if (!p)
		return io_fail(error, "no memory");
	options.mode = o->busy				  ? DRAY_MODE_BUSY
		       : o->spin_auto || o->spin_ns >= US ? DRAY_MODE_ADAPTIVE
							  : DRAY_MODE_SLEEPING;
	options.spin_us = (uint32_t)(o->spin_ns / US); /* 0: the library learns it */
	ret = dray_open(name, &options, &p->port);
	if (ret < 0) {
		free(p);
		return io_fail(error, "dray:%s: %s (in $DRAY_PORTS, else /run/dray/ports)", name,
			       dray_strerror(ret));
	}
	p->busy = o->busy;
	p->full = DRAY_WAIT_TX;
	p->io.ops = &ops;
	p->link.kind = "none";
	snprintf(p->io.name, sizeof(p->io.name), "dray:%s", name);
	io_set_destination(&p->io, o);
	ret = dray_info(p->port, &info);
	if (ret < 0) {
		io_fail(error, "dray:%s: %s", name, dray_strerror(ret));
		dray_io_close(&p->io);
		return NULL;
	}
	look_up(p, &info);
	remember_link(p);
	return &p->io;
}
