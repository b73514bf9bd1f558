/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that lies about memory, interrupts or floods: an open port refuses, keeps its
 * descriptors in order, and lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fakebroker.h"
#include "test.h"

/* Cases of OFFER, on a port that is open. */

struct offer {
	struct wire_message m;
	int fds[4];
	unsigned count;
	int other_bell;
	bool seal, seal_all, punch;
};

static void good_offer(struct offer *o)
{
	struct broker_options options = {0};
	int bell[2];

	memset(o, 0, sizeof(*o));
	wire_begin(&o->m, FROM_BROKER, WIRE_OFFER, 1);
	o->m.offer.kind = DRAY_LINK_SHM;
	o->m.offer.queues = 1;
	o->m.offer.features = FEATURES_KNOWN;
	o->m.offer.clock = CLOCK_KIND_HERE;
	o->m.offer.geometry = broker_geometry(&options);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bell), 0);
	o->fds[0] = broker_memfd(o->m.offer.geometry.size, FAKE_SEALS);
	o->fds[1] = bell[0];
	o->other_bell = bell[1];
	o->count = 2;
	o->seal = o->seal_all = true;
}

typedef int spoil(struct offer *o); /* returns the error that the end must see; 0: it goes live */

static int nothing_wrong(struct offer *o)
{
	(void)o;
	return 0;
}

static int punched_before_seal(struct offer *o)
{
	o->punch = true;
	return -ENODATA;
}

static int replace_memory(struct offer *o, int fd, int error)
{
	close(o->fds[0]);
	o->fds[0] = fd;
	return error;
}

static int no_seals(struct offer *o)
{
	return replace_memory(o, broker_memfd(o->m.offer.geometry.size, 0), -EPERM);
}

static int can_grow(struct offer *o)
{
	return replace_memory(o, broker_memfd(o->m.offer.geometry.size, F_SEAL_SHRINK), -EPERM);
}

static int can_shrink(struct offer *o)
{
	return replace_memory(o, broker_memfd(o->m.offer.geometry.size, F_SEAL_GROW), -EPERM);
}

static int short_memory(struct offer *o)
{
	return replace_memory(o, broker_memfd(o->m.offer.geometry.size - 4096, FAKE_SEALS),
			      -EPROTO);
}

static int long_memory(struct offer *o)
{
	return replace_memory(o, broker_memfd(o->m.offer.geometry.size + 4096, FAKE_SEALS),
			      -EPROTO);
}

static int memory_is_a_socket(struct offer *o)
{
	return replace_memory(o, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), -EPROTO);
}

static int bell_is_a_stream(struct offer *o)
{
	close(o->fds[1]);
	o->fds[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return -EPROTO;
}

static int bell_is_memory(struct offer *o)
{
	close(o->fds[1]);
	o->fds[1] = broker_memfd(4096, FAKE_SEALS);
	return -EPROTO;
}

static int never_sealed(struct offer *o)
{
	o->seal_all = false;
	return -EPERM;
}

static int geometry_of_zeros(struct offer *o)
{
	memset(&o->m.offer.geometry, 0, sizeof(o->m.offer.geometry));
	return -EINVAL;
}

static int size_is_a_lie(struct offer *o)
{
	o->m.offer.geometry.size += 4096;
	return -EINVAL;
}

static int huge_slots(struct offer *o)
{
	o->m.offer.geometry.pkt_slots = 0x80000000u;
	return -EINVAL;
}

static int huge_stride(struct offer *o)
{
	o->m.offer.geometry.pkt_stride = 0xffffffc0u;
	return -EINVAL;
}

static int odd_ring(struct offer *o)
{
	o->m.offer.geometry.ring_size = 300;
	return -EINVAL;
}

static int little_headroom(struct offer *o)
{
	o->m.offer.geometry.pkt_headroom = 64;
	return -EINVAL;
}

static int other_queues(struct offer *o)
{
	struct broker_options options = {.queues = 2};

	o->m.offer.geometry = broker_geometry(&options);
	return -EINVAL;
}

static int generation_zero(struct offer *o)
{
	o->m.header.generation = 0;
	return -EPROTO;
}

static int side_two(struct offer *o)
{
	o->m.offer.side = 2;
	return -EPROTO;
}

static int unknown_feature(struct offer *o)
{
	o->m.offer.features |= 1ull << 40;
	return -EPROTO;
}

static int missing_bell(struct offer *o)
{
	o->count = 1;
	return -EPROTO;
}

static int netdev_without_packets(struct offer *o)
{
	memset(&o->m.offer.geometry, 0, sizeof(o->m.offer.geometry));
	o->m.offer.kind = DRAY_LINK_NETDEV;
	close(o->fds[0]);
	o->fds[0] = o->fds[1];
	o->fds[1] = -1;
	o->count = 1;
	return -EPROTO;
}

static spoil *const spoils[] = {
	nothing_wrong,
	punched_before_seal,
	no_seals,
	can_grow,
	can_shrink,
	short_memory,
	long_memory,
	memory_is_a_socket,
	bell_is_a_stream,
	bell_is_memory,
	never_sealed,
	geometry_of_zeros,
	size_is_a_lie,
	huge_slots,
	huge_stride,
	odd_ring,
	little_headroom,
	other_queues,
	generation_zero,
	side_two,
	unknown_feature,
	missing_bell,
	netdev_without_packets,
};

struct session {
	spoil *spoil;
	int error;
	_Atomic int fd;
	_Atomic bool done;
};

static void seal_and_say(int fd, struct offer *o)
{
	struct wire_message sealed;

	if (o->punch)
		CHECK_EQ(fallocate(o->fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536),
			 0);
	if (o->seal_all)
		CHECK_EQ(fcntl(o->fds[0], F_ADD_SEALS, FAKE_LIVE), 0);
	wire_begin(&sealed, FROM_BROKER, WIRE_SEALED, o->m.header.generation);
	(void)wire_send(fd, &sealed, NULL, 0);
}

static void *serve(void *argument)
{
	struct session *s = argument;
	int fd = fake_accept();
	struct offer o;

	atomic_store(&s->fd, fd);
	fake_greet(fd);
	good_offer(&o);
	s->error = s->spoil(&o);
	(void)wire_send(fd, &o.m, o.fds, o.count);
	if (fake_hear(fd, WIRE_MAPPED)) {
		seal_and_say(fd, &o);
		(void)fake_hear(fd, WIRE_ACTIVE);
	}
	for (unsigned i = 0; i < 2; i++)
		if (o.fds[i] >= 0)
			close(o.fds[i]);
	atomic_store(&s->done, true);
	while (s->error == 0 && atomic_load(&s->done))
		usleep(100);
	close(o.other_bell);
	close(fd);
	return NULL;
}

static void try_offer(unsigned i)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct session s = {.spoil = spoils[i]};
	struct dray_event e = {0};
	struct dray_port *port;
	unsigned before = test_open_fds();
	pthread_t thread;
	struct dray_pkt p;

	CHECK_EQ(pthread_create(&thread, NULL, serve, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	UNTIL(atomic_load(&s.done), test_service(port, NULL));
	if (s.error == 0) {
		UNTIL(test_up(port), test_service(port, NULL));
		test_send(port, 0, 64, 1);
	} else {
		CHECK(!test_up(port));
		CHECK_EQ(dray_tx_alloc(port, 0, &p, 1, 64), 0);
		while (dray_events(port, &e, 1) && e.type != DRAY_EVENT_ERROR)
			;
		if (e.type == DRAY_EVENT_ERROR && e.error != s.error)
			fprintf(stderr, "offer %u\n", i);
		if (e.type == DRAY_EVENT_ERROR)
			CHECK_EQ(e.error, s.error);
		CHECK(e.type == DRAY_EVENT_ERROR || e.type == DRAY_EVENT_BROKER_LOST);
		CHECK_EQ(test_stats(port).maps, 0);
	}
	atomic_store(&s.done, false);
	CHECK_EQ(dray_close(port), 0);
	fake_forget();
	CHECK_EQ(pthread_join(thread, NULL), 0);
	UNTIL(test_open_fds() == before, usleep(100)); /* what is no bell is closed elsewhere */
}

/* Messages at the wrong time to an end that is live: it hangs up, and its link goes on. */

typedef void interruption(int fd, struct offer *live);

static void offer_again(int fd, struct offer *live)
{
	struct offer o;

	good_offer(&o);
	o.m.header.generation = live->m.header.generation;
	(void)wire_send(fd, &o.m, o.fds, o.count);
	close(o.fds[0]);
	close(o.fds[1]);
	close(o.other_bell);
}

static void offer_more_queues(int fd, struct offer *live)
{
	struct broker_options options = {.queues = 2};
	struct offer o;
	int fds[3];

	good_offer(&o);
	close(o.fds[0]);
	o.m.header.generation = live->m.header.generation + 1;
	o.m.offer.queues = 2;
	o.m.offer.geometry = broker_geometry(&options);
	fds[0] = broker_memfd(o.m.offer.geometry.size, FAKE_SEALS);
	fds[1] = o.fds[1];
	fds[2] = o.other_bell;
	(void)wire_send(fd, &o.m, fds, 3);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}

static void seal_again(int fd, struct offer *live)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_SEALED, live->m.header.generation);
	(void)wire_send(fd, &m, NULL, 0);
}

static void welcome_again(int fd, struct offer *live)
{
	struct wire_message m;

	(void)live;
	fake_welcome(&m);
	fake_welcome_with(fd, &m, fake_telemetry());
}

static interruption *const interruptions[] = {offer_again, offer_more_queues, seal_again,
					      welcome_again};

struct live_session {
	interruption *interruption;
	_Atomic bool live, over;
};

static void *serve_live(void *argument)
{
	struct live_session *s = argument;
	int fd = fake_accept();
	struct offer o;

	fake_greet(fd);
	good_offer(&o);
	(void)wire_send(fd, &o.m, o.fds, o.count);
	CHECK(fake_hear(fd, WIRE_MAPPED));
	seal_and_say(fd, &o);
	CHECK(fake_hear(fd, WIRE_ACTIVE));
	s->interruption(fd, &o);
	CHECK(!fake_hear(fd, WIRE_MAPPED));
	atomic_store(&s->live, true);
	while (!atomic_load(&s->over))
		usleep(100);
	close(o.fds[0]);
	close(o.fds[1]);
	close(o.other_bell);
	close(fd);
	return NULL;
}

static void try_interruption(unsigned i)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct live_session s = {.interruption = interruptions[i]};
	struct dray_info info = {.size = sizeof(info)};
	struct dray_port *port;
	unsigned before = test_open_fds();
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, serve_live, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	UNTIL(atomic_load(&s.live), test_service(port, NULL));
	CHECK_EQ(dray_info(port, &info), 0);
	CHECK_EQ(info.broker, 0);
	CHECK_EQ(info.generation, 1);
	test_send(port, 0, 64, 1);
	CHECK_EQ(test_stats(port).maps, 1);
	atomic_store(&s.over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(dray_close(port), 0);
	fake_forget();
	UNTIL(test_open_fds() == before, usleep(100)); /* refused bells are closed elsewhere */
}

/* Messages without end: each call of dray_service takes some and returns. */
static void *flood(void *argument)
{
	struct session *s = argument;
	int fd = fake_accept();
	struct wire_message m;

	fake_greet(fd);
	wire_begin(&m, FROM_BROKER, WIRE_STATS, 0);
	m.header.type = WIRE_HINTS + 5;
	while (!atomic_load(&s->done)) {
		(void)!send(fd, &m, wire_size(&m), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	close(fd);
	return NULL;
}

static void try_flood(void)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct session s = {0};
	struct dray_port *port;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, flood, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	for (unsigned i = 0; i < 2000; i++)
		CHECK(dray_service(port) >= 0);
	atomic_store(&s.done, true);
	CHECK_EQ(dray_close(port), 0);
	fake_forget();
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
	fake_listen();
	for (unsigned i = 0; i < sizeof(spoils) / sizeof(*spoils); i++)
		try_offer(i);
	for (unsigned i = 0; i < sizeof(interruptions) / sizeof(*interruptions); i++)
		try_interruption(i);
	try_flood();
	fake_close();
	return 0;
}
