/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all kinds of ports. */
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "net.h"
#include "packet.h"

#define HOLD_NS (20 * NS_PER_MS)
#define SLICE_NS (50 * NS_PER_MS) /* the longest wait of signals and service */

volatile sig_atomic_t io_exit_status = -1;

void *io_fail(struct io_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return NULL;
}

void io_write(struct io *io, unsigned flow, uint64_t number, const struct packet *first,
	      const struct io_buf *bufs, unsigned n)
{
	const struct frame_flow frames = {.template = &io->template,
					  .address = &io->address,
					  .from_port = (uint16_t)(FRAME_PORT + flow),
					  .varies = frame_varies(&io->address),
					  .number = number};

	packet_write_frames(first, bufs, n, io->frames ? &frames : NULL);
}

/* The kind of a port: the text before the colon. */
static const struct {
	const char *name;
	struct io *(*open)(const struct options *, const char *, struct io_error *);
} kinds[] = {{"udp", io_udp_open},
	     {"packet", io_packet_open},
	     {"dray", io_dray_open},
	     {"dpdk", io_dpdk_open}};

struct io *io_open(const struct options *o, struct io_error *error)
{
	const char *colon = strchr(o->port, ':');
	size_t length = colon ? (size_t)(colon - o->port) : 0;

	for (unsigned i = 0; colon && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strlen(kinds[i].name) == length && strncmp(o->port, kinds[i].name, length) == 0)
			return kinds[i].open(o, colon + 1, error);
	if (strcmp(o->port, "null") == 0)
		return io_null_open(o, error);
	return io_fail(error,
		       "%s is no port: udp:IP:PORT, udp:[IP]:PORT, packet:IFACE, dray:NAME, "
		       "dpdk:DEVICE or null",
		       o->port);
}

/* A port without a peer. All are asked, since has_peer also does the service work. */
static struct io *lonely(struct io *const *ios, unsigned n)
{
	struct io *found = NULL;

	for (unsigned i = 0; i < n; i++)
		if (ios[i]->ops->has_peer && !ios[i]->ops->has_peer(ios[i]))
			found = ios[i];
	return found;
}

/* Frames of so many bytes are too long for a port. Returns false. */
static bool too_long(const struct io *io, uint32_t size, struct io_error *error)
{
	if (io->address.fapi)
		return io_fail(error,
			       "messages of %u bytes do not fit %s: at most %u; set `messages: "
			       "{size: %u}` of its link, or lower dl-tti and tx-data",
			       size, io->name, io->frame_max, size);
	return io_fail(error,
		       "frames of %u bytes do not fit %s: at most %u; they need an MTU of %u", size,
		       io->name, io->frame_max, size - ETHERNET);
}

bool io_await_peers(struct io *const *ios, unsigned n, const struct options *o,
		    struct io_error *error)
{
	uint64_t end = clock_now() + o->peer_timeout_ns;
	uint32_t size = o->imix ? 1514 : o->size;
	struct io *without;

	if (o->bulk.size > size)
		size = o->bulk.size;
	while ((without = lonely(ios, n)) && clock_now() < end)
		io_sleep(clock_now() + NS_PER_MS);
	if (without)
		return io_fail(error, "%s: its peer did not open its port within %g s",
			       without->name, (double)o->peer_timeout_ns / (double)NS_PER_SECOND);
	for (unsigned i = 0; i < n; i++)
		if (size > ios[i]->frame_max)
			return too_long(ios[i], size, error);
	return true;
}

bool io_hold(struct io *const *ios, unsigned n, struct io_error *error)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[64];

	while (io_poll(&in, 1, clock_now() + HOLD_NS) <= 0) {
		for (unsigned i = 0; i < n; i++) {
			int ret = ios[i]->ops->service ? ios[i]->ops->service(ios[i]) : 0;

			if (ret < 0)
				return io_fail(error, "%s: %s", ios[i]->name, strerror(-ret));
		}
	}
	return read(STDIN_FILENO, line, sizeof(line)) >= 0 ||
	       io_fail(error, "standard input: %s", strerror(errno));
}

void io_set_destination(struct io *io, const struct options *o)
{
	struct frame_address *a = &io->address;

	io->frames = true;
	memcpy(a->to_mac, o->to_mac, 6);
	memset(a->to_ip, 0xff, 4);
	a->to_port = FRAME_PORT;
	a->dscp = (uint8_t)o->dscp;
	a->bulk_dscp = o->bulk.dscp;
	a->bulk_port = o->bulk_text ? (uint16_t)(FRAME_PORT + o->flows) : 0;
	a->encap = o->encap.kind || o->encap.spread ? &o->encap : NULL;
	a->fronthaul = o->fronthaul.scs ? &o->fronthaul : NULL;
	a->fapi = o->fapi.scs ? &o->fapi : NULL;
	if (!o->to_text)
		return;
	a->to_port = address_port(&o->to);
	a->ip6 = address_is6(&o->to);
	if (a->ip6)
		memcpy(a->to_ip, &o->to.v6.sin6_addr, 16);
	else
		memcpy(a->to_ip, &o->to.v4.sin_addr, 4);
}

bool io_is_fatal(int error)
{
	return error != -ECONNREFUSED && error != -EHOSTUNREACH && error != -EHOSTDOWN;
}

void io_close(struct io *io)
{
	io->ops->close(io);
}

static struct timespec left(uint64_t until_ns, uint64_t now)
{
	uint64_t ns = until_ns > now ? until_ns - now : 0;

	return clock_timespec(ns < SLICE_NS ? ns : SLICE_NS);
}

int io_poll(struct pollfd *fds, unsigned n, uint64_t until_ns)
{
	struct timespec timeout = left(until_ns, clock_now());
	int ret = ppoll(fds, n, &timeout, NULL);

	return ret >= 0 ? ret : errno == EINTR ? 0 : -errno;
}

void io_sleep(uint64_t until_ns)
{
	uint64_t now = clock_now();
	struct timespec until =
		clock_timespec(until_ns < now + SLICE_NS ? until_ns : now + SLICE_NS);

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
