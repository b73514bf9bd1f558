/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz the control connection of an open port: the input is a row of messages, with descriptors of
 * several kinds. What must hold: each step returns, nothing outside the memory is touched, no
 * descriptor leaks, and the port can be closed.
 */
#include <fcntl.h>
#include <sanitizer/lsan_interface.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "port.h"
#include "rebind.h"
#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define LIVE (SEALS | F_SEAL_SEAL | 0x10)

static struct broker *broker;
static struct dray_port *port;
static int wire[2] = {-1, -1};
static struct geometry geometry;
static struct wire_capture capture = {.slots = 64, .slot_size = 128, .snaplen = 80, .queues = 1};

/* What a broker may send along: right, or wrong in one way. */
static int some_fd(uint8_t kind)
{
	int pair[2], fd;

	switch (kind & 7) {
	case 0:
	case 1:
		return broker_memfd(geometry.size, LIVE);
	case 2:
		return broker_memfd(geometry.size, SEALS);
	case 3:
		return broker_memfd(LAYOUT_PAGE + TELEMETRY_BLOCK, SEALS);
	case 4:
		return broker_memfd(4096, 0);
	case 5:
		return broker_memfd(capture.size, SEALS | F_SEAL_SEAL);
	case 6:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	default:
		CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		fd = pair[0];
		close(pair[1]);
		return fd;
	}
}

/* Connect the port to us in place of its broker. */
static void connect_port(uint8_t state)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wire), 0);
	port->control.fd = wire[0];
	port->control.state = state & 1 ? CONTROL_GREETED : CONTROL_READY;
	port->control.deadline_ns = UINT64_MAX;
	port->control.newest = 0;
}

/* Fields that a mutation of bytes would hardly ever get right. */
static void mend(struct wire_message *m, uint8_t how)
{
	static const uint16_t lengths[WIRE_TYPES] = {0, 56, 88, 80, 8, 0, 0, 8, 0, 8, 72, 32};

	m->header = (struct wire_header){WIRE_MAGIC, WIRE_VERSION, m->header.type % WIRE_TYPES, 0,
					 m->header.generation & 3};
	m->header.length = lengths[m->header.type];
	if (m->header.type == WIRE_OFFER && how & 1) {
		m->offer.kind = 1 + (how >> 1 & 1);
		m->offer.side &= 1;
		m->offer.peer_mode %= 3;
		m->offer.queues = 1;
		m->offer.features &= FEATURES_KNOWN;
		m->offer.clock = CLOCK_KIND_HERE;
		m->offer.reserved = 0;
		m->offer.geometry = how & 4 ? geometry : m->offer.geometry;
		if (how & 2)
			memset(&m->offer.geometry, 0, sizeof(m->offer.geometry));
	}
	if (m->header.type == WIRE_CAPTURE) {
		m->header.generation = 0;
		if (how & 1)
			m->capture = capture;
		else if (how & 2)
			memset(&m->capture, 0, sizeof(m->capture));
	}
	if (m->header.type == WIRE_WELCOME && how & 1) {
		uint32_t flags = m->welcome.flags & 1, shift = m->welcome.sample_shift % 21;

		m->welcome = port->welcome;
		m->welcome.flags = flags;
		m->welcome.sample_shift = shift;
	}
}

static const uint8_t *send_one(const uint8_t *at, const uint8_t *end)
{
	union {
		struct wire_message m;
		uint8_t bytes[1024];
	} u = {0};
	uint8_t how = at[0], kinds = at[1];
	unsigned count = how >> 5 & 3;
	size_t size = (size_t)(at[2] | (how & 16) << 4);
	struct iovec iov;
	int fds[3];

	at += 3;
	size = size > (size_t)(end - at) ? (size_t)(end - at) : size;
	memcpy(u.bytes, at, size);
	at += size;
	for (unsigned i = 0; i < count; i++)
		fds[i] = some_fd(i ? kinds >> 4 : kinds);
	if (how & 8) {
		mend(&u.m, how);
		(void)wire_send(wire[1], &u.m, fds, count);
	} else {
		iov = (struct iovec){u.bytes, size};
		(void)writev(wire[1], &iov, 1);
	}
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	return at;
}

static void drop_generations(void)
{
	struct dray_pkt p[4];

	pthread_mutex_lock(&port->lock);
	port_switch(port, NULL);
	for (struct generation *gen = port->generations; gen; gen = gen->next)
		atomic_store(&gen->peer_gone, true);
	pthread_mutex_unlock(&port->lock);
	for (unsigned i = 0; i < 20; i++) {
		(void)dray_rx_burst(port, 0, p, 0);
		(void)dray_tx_alloc(port, 0, p, 0, 64);
		pthread_mutex_lock(&port->lock);
		port_reap(port);
		pthread_mutex_unlock(&port->lock);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data + 1, *end = data + size;
	struct dray_event events[64];
	unsigned before;

	if (!port) {
		struct broker_options o = {0};
		uint64_t ring_size;
		struct pair p;

		/* a port is on pages of its own, if LeakSanitizer does not look for pointers */
		__lsan_disable();
		p = test_pair(NULL, DRAY_MODE_BUSY, 0);
		__lsan_enable();

		broker = p.broker;
		port = p.a;
		CHECK_EQ(dray_close(p.b), 0);
		broker_stop(broker);
		geometry = broker_geometry(&o);
		CHECK_EQ(capture_derive(&capture, &ring_size, &capture.size), 0);
		UNTIL(!test_up(port) && port->control.state == CONTROL_LOST,
		      test_service(port, NULL));
	}
	if (size == 0)
		return 0;
	before = test_open_fds();
	connect_port(data[0]);
	while (end - at >= 3) {
		struct dray_pkt p[4];

		at = send_one(at, end);
		if (port->control.state != CONTROL_LOST)
			CHECK(dray_service(port) >= 0);
		if (dray_tx_alloc(port, 0, p, 1, 64))
			dray_release(p, 1);
		dray_release(p, dray_rx_burst(port, 0, p, 4));
	}
	close(wire[1]);
	while (port->control.state != CONTROL_LOST)
		CHECK(dray_service(port) >= 0);
	port->control.deadline_ns = UINT64_MAX;
	drop_generations();
	(void)dray_events(port, events, 64);
	CHECK_EQ(test_stats(port).maps, 0);
	UNTIL(test_open_fds() == before, usleep(10)); /* a thread closes what may block */
	return 0;
}
