/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of ports have in common. */
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define SLICE_NS (50 * NS_PER_MS) /* signals and service wait no longer */

void *io_fail(struct io_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return NULL;
}

struct io *io_open(const struct options *o, struct io_error *error)
{
	const char *colon = strchr(o->port, ':');
	size_t kind = colon ? (size_t)(colon - o->port) : strlen(o->port);
	struct io *io;

	if (colon && kind == 3 && strncmp(o->port, "udp", 3) == 0)
		io = io_udp_open(o, colon + 1, error);
	else if (colon && kind == 6 && strncmp(o->port, "packet", 6) == 0)
		io = io_packet_open(o, colon + 1, error);
	else if (colon && kind == 4 && strncmp(o->port, "dray", 4) == 0)
		io = io_dray_open(o, colon + 1, error);
	else if (strcmp(o->port, "null") == 0)
		io = io_null_open(o, error);
	else
		return io_fail(error, "%s is no port: udp:IP:PORT, udp:[IP]:PORT, packet:IFACE, dray:NAME or null", o->port);
	if (io && io_sends(o) && (o->imix ? 1514 : o->size) > io->frame_max) {
		io_fail(error, "frames of %u bytes do not fit %s: at most %u", o->imix ? 1514 : o->size, io->name, io->frame_max);
		io_close(io);
		return NULL;
	}
	return io;
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
	struct timespec until = clock_timespec(until_ns < now + SLICE_NS ? until_ns : now + SLICE_NS);

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
