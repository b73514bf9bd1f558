/* SPDX-License-Identifier: Apache-2.0 */
/* A device (ethdev) of DPDK, whatever its driver. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#include "clock.h"
#include "dpdk_eal.h"
#include "dpdk_memory.h"
#include "frame.h"
#include "io.h"
#include "units.h"

#define PREFIX "dpdk:" /* of the port's name */
/* the usual one of DPDK applications, and the only one that some drivers support */
#define BURST 32u
#define ETHERNET 14u
#define TAGS 8u	       /* two VLAN tags, which a peer may send */
#define OWN_HEADER 16u /* of a driver before the frame, at most: virtio's has 12 bytes */
/*
 * Packets outside the device's descriptor rings: in a cache, in use, and in the driver's other
 * rings.
 */
#define OWN_PACKETS 1536u
#define CACHE 256u
#define DESCRIPTORS 1024u	   /* of a queue, if the driver has no preference */
#define AGAIN_NS (100 * NS_PER_MS) /* between two tries to start */
#define CALL_NS (500 * NS_PER_MS)  /* time for a peer to answer */

struct io_dpdk {
	struct io io;
	uint16_t port, queues, next; /* next: the queue to look at first */
	bool configured, started;
	bool has_eal, opened, failed;
	const struct options *options; /* to open it with, if that has to wait */
	int start_error;	       /* of the last try; 0: no try, or started */
	bool calls;		       /* it connects to its peer, but only at its start */
	uint64_t tried_ns;
	struct rte_mempool *pool;
	const char *driver;
	unsigned received;
	uint64_t drops;
	bool up, was_up;
	uint64_t generation, down_ns, patience_ns;
	struct rte_mbuf *tx[IO_BATCH], *rx[IO_BATCH];
};

static unsigned dpdk_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_dpdk *p = (struct io_dpdk *)io;
	uint32_t headers = frame_headers_to(&io->address);

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
		frame_write(frame, &io->address, (uint16_t)(FRAME_PORT + flow), bufs[i].length);
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
		uint32_t headers,
			length = frame_payload(frame, m->nb_segs == 1 ? m->data_len : 0, &headers);

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

		frame_turn(frame, bufs[i].headers);
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
		     struct io_error *error);

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

static bool find(struct io_dpdk *p, const char *name, struct io_error *error)
{
	char found[160] = "none";
	size_t at = 0;
	uint64_t number;
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(name, &p->port) == 0)
		return true;
	if (units_number(name, &number) && number < RTE_MAX_ETHPORTS &&
	    rte_eth_dev_is_valid_port((uint16_t)number)) {
		p->port = (uint16_t)number;
		return true;
	}
	RTE_ETH_FOREACH_DEV (id) {
		char device[RTE_ETH_NAME_MAX_LEN];

		if (rte_eth_dev_get_name_by_port(id, device) == 0 && at < sizeof(found))
			at += (size_t)snprintf(found + at, sizeof(found) - at, "%s%s",
					       at ? ", " : "", device);
	}
	return io_fail(error, "dpdk:%s: no such device; EAL found %s%s%s", name, found,
		       *dpdk_eal_complaint() ? ", and said: " : "", dpdk_eal_complaint());
}

static int set_up_queues(struct io_dpdk *p, uint16_t rx, uint16_t tx)
{
	int socket = rte_eth_dev_socket_id(p->port), ret = 0;

	for (uint16_t q = 0; q < p->queues && ret == 0; q++) {
		ret = rte_eth_rx_queue_setup(p->port, q, rx, (unsigned)socket, NULL, p->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(p->port, q, tx, (unsigned)socket, NULL);
	}
	return ret;
}

/* One segment holds the largest frame. */
static int make_pool(struct io_dpdk *p, const struct options *o, unsigned descriptors)
{
	uint32_t room = o->mtu + ETHERNET + TAGS + OWN_HEADER;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (room < 2048)
		room = 2048;
	room += RTE_PKTMBUF_HEADROOM;
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	/* Names are shared with all other processes of this EAL. */
	snprintf(name, sizeof(name), "draygen-%d-%u", (int)getpid(), p->port);
	p->pool = rte_pktmbuf_pool_create(name, descriptors + OWN_PACKETS, CACHE, 0, (uint16_t)room,
					  rte_eth_dev_socket_id(p->port));
	p->io.frame_max = o->mtu + ETHERNET < room - RTE_PKTMBUF_HEADROOM
				  ? o->mtu + ETHERNET
				  : room - RTE_PKTMBUF_HEADROOM;
	return p->pool ? 0 : -ENOMEM;
}

/*
 * The MTU to set. Some drivers state a limit that they do not have (net_memif: 1500), and refuse a
 * larger one; whether the device takes longer frames shows when they are sent.
 */
static uint32_t possible_mtu(struct io_dpdk *p, uint32_t mtu)
{
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->port, &info) != 0)
		return mtu;
	if (mtu > info.max_mtu)
		mtu = info.max_mtu;
	return info.max_rx_pktlen > overhead && mtu > info.max_rx_pktlen - overhead
		       ? info.max_rx_pktlen - overhead
		       : mtu;
}

/*
 * The length of the rings. net_af_xdp sends almost nothing if it is not the preferred one.
 */
static void choose_descriptors(struct io_dpdk *p, const struct options *o, uint16_t *rx,
			       uint16_t *tx)
{
	struct rte_eth_dev_info info;

	*rx = *tx = (uint16_t)(o->descriptors ? o->descriptors : DESCRIPTORS);
	if (o->descriptors || rte_eth_dev_info_get(p->port, &info) != 0)
		return;
	if (info.default_rxportconf.ring_size)
		*rx = info.default_rxportconf.ring_size;
	if (info.default_txportconf.ring_size)
		*tx = info.default_txportconf.ring_size;
}

static int configure(struct io_dpdk *p, const struct options *o, const char **what)
{
	struct rte_eth_conf conf = {.rxmode.mtu = possible_mtu(p, o->mtu)};
	struct rte_eth_dev_info info;
	uint16_t rx, tx;
	int ret;

	/* net_virtio_user needs this to handle the end of a switch: without it, EAL panics. */
	if (rte_eth_dev_info_get(p->port, &info) == 0 && info.dev_flags)
		conf.intr_conf.lsc = (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	*what = "it refuses so many queues";
	ret = rte_eth_dev_configure(p->port, p->queues, p->queues, &conf);
	if (ret < 0)
		return ret;
	p->configured = true;
	choose_descriptors(p, o, &rx, &tx);
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(p->port, &rx, &tx);
	if (ret < 0)
		return ret;
	*what = "too little memory for its packets: more for EAL (-m), fewer --descriptors, or a "
		"smaller --mtu";
	ret = make_pool(p, o, (unsigned)(rx + tx) * p->queues);
	if (ret < 0)
		return ret;
	*what = "its queues could not be set up";
	return set_up_queues(p, rx, tx);
}

/* net_memif is one by default. */
static bool is_client(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *given = rte_dev_devargs(info->device);
	const char *arguments = given && given->args ? given->args : "";

	return strcmp(info->driver_name, "net_memif") == 0 && !strstr(arguments, "role=server") &&
	       !strstr(arguments, "role=master");
}

/* Its name, and the source addresses of its frames. */
static void look_up(struct io_dpdk *p, const struct options *o)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;

	if (rte_eth_dev_info_get(p->port, &info) == 0) {
		p->driver = info.driver_name;
		p->calls = is_client(&info);
	}
	if (rte_eth_macaddr_get(p->port, &mac) == 0)
		memcpy(p->io.address.from_mac, mac.addr_bytes, 6);
	if (o->from_given && address_is6(&o->from))
		memcpy(p->io.address.from_ip, &o->from.v6.sin6_addr, 16);
	else if (o->from_given)
		memcpy(p->io.address.from_ip, &o->from.v4.sin_addr, 4);
	/* Some drivers have no such setting, and receive all frames anyway. */
	(void)rte_eth_promiscuous_enable(p->port);
}

static bool bring_up(struct io_dpdk *p, const struct options *o, const char *name,
		     struct io_error *error)
{
	const char *what;
	int ret;

	p->has_eal = dpdk_eal_start(o, error);
	if (!p->has_eal || !find(p, name, error))
		return false;
	ret = configure(p, o, &what);
	if (ret < 0) {
		io_fail(error, "dpdk:%s: %s (%s)", name, what, rte_strerror(-ret));
		return false;
	}
	io_set_destination(&p->io, o);
	look_up(p, o);
	dpdk_memory_keep();
	start(p);
	p->opened = true;
	return true;
}

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
