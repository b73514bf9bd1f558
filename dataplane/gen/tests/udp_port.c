/* SPDX-License-Identifier: Apache-2.0 */
/* A udp port gives one system call no more datagrams than --batch. */
#include <string.h>

#include "check.h"
#include "io.h"

#define WAITING 5u
#define SIZE 64u

static struct io *port(enum role role, unsigned batch, const struct io *to)
{
	struct options o = {.role = role, .batch = batch, .buffer = 1u << 20, .flows = 1};
	struct io_error error;
	struct io *io;

	if (to)
		CHECK(!address_read(to->name + strlen("udp:"), &o.to));
	io = io_udp_open(&o, "127.0.0.1:0", &error);
	CHECK(io);
	return io;
}

/* Send that many datagrams; the port sends `most` with one call. */
static void send_all(struct io *io, unsigned n, unsigned most)
{
	struct io_buf bufs[IO_BATCH];

	while (n) {
		for (unsigned i = 0; i < n; i++)
			bufs[i].length = SIZE;
		CHECK_EQ(io->ops->alloc(io, 0, bufs, n, bufs->length), most < n ? most : n);
		CHECK_EQ(io->ops->send(io, 0, bufs, most < n ? most : n), most < n ? most : n);
		n -= most < n ? most : n;
	}
}

/* The loopback has queued them all when send returns. */
static void batches(unsigned batch)
{
	struct io *sink = port(ROLE_SINK, batch, NULL), *sender = port(ROLE_SEND, batch, sink);
	struct io_buf bufs[IO_BATCH];

	send_all(sender, WAITING, batch);
	for (unsigned left = WAITING; left;) {
		int got = sink->ops->receive(sink, bufs, IO_BATCH);

		CHECK_EQ(got, batch < left ? batch : left);
		CHECK_EQ(bufs[0].length, SIZE);
		sink->ops->done(sink);
		left -= (unsigned)got;
	}
	CHECK_EQ(sink->ops->receive(sink, bufs, IO_BATCH), 0);
	io_close(sender);
	io_close(sink);
}

int main(void)
{
	batches(1);
	batches(2);
	batches(UDP_BATCH);
	return 0;
}
