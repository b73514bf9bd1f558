/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a link for the broker's tests: sends or receives numbered packets with checksums, and keeps what it saw in a file,
 * if it stays when the process is killed.
 *
 * usage: end DIRECTORY PORT send|queue|recv FILE [SIZE]
 *        end DIRECTORY PORT busy COUNT
 * queue sends through the port's traffic classes, which may drop some.
 * The last opens a port so many times that another has open, and says what is not answered with EBUSY.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dray.h"

#define BURST 32
#define PAUSE_US 300 /* between two bursts: tests share the machine */
#define NUMBERS (1u << 23) /* packets that one sender sends at most */

struct seen {
	_Atomic uint64_t packets;    /* sent, or received whole, each once; of all streams */
	_Atomic uint64_t wrong;	     /* received again, or not whole */
	_Atomic uint64_t generation; /* 0: down */
	_Atomic uint64_t kind;
	_Atomic uint64_t broker;  /* 1: connected */
	_Atomic uint64_t stream;  /* sending: this one; receiving: the latest */
	_Atomic uint64_t count;	  /* packets of that stream */
	_Atomic uint64_t streams; /* received so far */
	_Atomic uint64_t rebinds;
	_Atomic uint64_t stamps;
	_Atomic uint64_t unordered; /* received, but not after the number before */
};

/* Of the stream that is received. */
static bool had[NUMBERS];
static uint64_t next;

struct frame {
	uint64_t stream, number, sum;
	uint8_t fill[];
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static uint64_t sum_of(const struct frame *f, uint32_t length)
{
	uint64_t sum = f->stream * 31 + f->number;

	for (uint32_t i = 0; i < length - sizeof(*f); i++)
		sum = sum * 131 + f->fill[i];
	return sum;
}

static void look(struct dray_port *port, struct seen *seen)
{
	struct dray_info info = {.size = sizeof(info)};
	struct dray_stats stats = {.size = sizeof(stats)};
	struct dray_event event;

	(void)dray_service(port);
	while (dray_events(port, &event, 1) == 1)
		if (event.type == DRAY_EVENT_REBIND)
			atomic_fetch_add(&seen->rebinds, 1);
	if (dray_info(port, &info) == 0) {
		atomic_store(&seen->generation, info.state == DRAY_LINK_UP ? info.generation : 0);
		atomic_store(&seen->kind, info.kind);
		atomic_store(&seen->broker, info.broker);
	}
	if (dray_stats(port, DRAY_ALL_QUEUES, &stats) == 0)
		atomic_store(&seen->stamps, stats.stamps);
}

/*
 * What is not sent because the link has just gone down is sent again under the same number, unless
 * it may still wait in a queue.
 */
static void send_burst(struct dray_port *port, struct seen *seen, uint32_t size, bool queues)
{
	struct dray_pkt p[BURST];
	unsigned n = atomic_load(&seen->generation) && atomic_load(&seen->count) < NUMBERS - BURST ? dray_tx_alloc(port, 0, p, BURST, size) : 0;
	struct dray_stats before = {.size = sizeof(before)}, after = before;
	uint64_t count = atomic_load(&seen->count);

	for (unsigned i = 0; i < n; i++) {
		struct frame *f = p[i].data;

		f->stream = atomic_load(&seen->stream);
		f->number = count + i;
		memset(f->fill, (int)(f->number + i), size - sizeof(*f));
		f->sum = sum_of(f, size);
		p[i].length = size;
	}
	(void)dray_stats(port, 0, &before);
	unsigned taken = dray_tx_burst(port, 0, p, n);
	(void)dray_stats(port, 0, &after);
	uint64_t sent = queues ? taken : after.tx_packets - before.tx_packets;

	if (taken < n)
		dray_release(p + taken, n - taken);
	atomic_store(&seen->count, count + sent);
	atomic_fetch_add(&seen->packets, sent);
}

static void check(struct seen *seen, const struct dray_pkt *p)
{
	const struct frame *f = p->data;

	if (p->length < sizeof(*f) || f->sum != sum_of(f, p->length)) {
		atomic_fetch_add(&seen->wrong, 1);
		return;
	}
	if (f->stream != atomic_load(&seen->stream)) {
		atomic_store(&seen->stream, f->stream);
		atomic_store(&seen->count, 0);
		atomic_fetch_add(&seen->streams, 1);
		memset(had, 0, sizeof(had));
		next = 0;
	}
	if (f->number >= NUMBERS || had[f->number]) {
		atomic_fetch_add(&seen->wrong, 1);
		return;
	}
	had[f->number] = true;
	if (f->number != next)
		atomic_fetch_add(&seen->unordered, 1);
	next = f->number + 1;
	atomic_fetch_add(&seen->count, 1);
	atomic_fetch_add(&seen->packets, 1);
}

static unsigned receive_burst(struct dray_port *port, struct seen *seen)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_rx_burst(port, 0, p, BURST);

	for (unsigned i = 0; i < n; i++)
		check(seen, &p[i]);
	dray_release(p, n);
	return n;
}

static int expect_busy(const char *name, const struct dray_options *options, int count)
{
	int wrong = 0;

	for (int i = 0; i < count; i++) {
		struct dray_port *port;
		int ret = dray_open(name, options, &port);

		if (ret == 0)
			(void)dray_close(port);
		if (ret != -EBUSY) {
			printf("%d: %s\n", i, dray_strerror(ret));
			wrong = 1;
		}
	}
	return wrong;
}

int main(int argc, char **argv)
{
	struct dray_options options = {.size = sizeof(options),
				       .directory = argc > 4 ? argv[1] : NULL,
				       .mode = DRAY_MODE_SLEEPING,
				       .timeout_ms = 60000};
	struct dray_port *port;
	struct seen *seen;
	int fd, ret;

	if (argc < 5) {
		fprintf(stderr, "usage: end DIRECTORY PORT send|queue|recv FILE [SIZE]\n       end DIRECTORY PORT busy COUNT\n");
		return 2;
	}
	if (strcmp(argv[3], "busy") == 0)
		return expect_busy(argv[2], &options, atoi(argv[4]));
	fd = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*seen)) < 0)
		return 1;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (seen == MAP_FAILED)
		return 1;
	signal(SIGTERM, stop);
	ret = dray_open(argv[2], &options, &port);
	if (ret) {
		fprintf(stderr, "open %s: %s\n", argv[2], dray_strerror(ret));
		return 1;
	}
	bool queues = strcmp(argv[3], "queue") == 0, sends = queues || strcmp(argv[3], "send") == 0;
	uint32_t size = argc > 5 ? (uint32_t)atoi(argv[5]) : 64;
	if (sends)
		atomic_store(&seen->stream, (uint64_t)getpid());
	while (!stopped) {
		look(port, seen);
		if (sends) {
			send_burst(port, seen, size, queues);
			/*
			 * A device does not wait for a receiver that the machine holds up. With this
			 * pause, a packet socket has room for ten seconds.
			 */
			usleep(atomic_load(&seen->kind) == DRAY_LINK_NETDEV ? 50000 : PAUSE_US);
		} else if (receive_burst(port, seen) == 0) {
			(void)dray_wait(port, 0, DRAY_WAIT_RX, 20);
		}
	}
	for (unsigned more = 1; !sends && more;)
		more = receive_burst(port, seen);
	look(port, seen);
	return dray_close(port) ? 1 : 0;
}
