/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end that lost its broker presents its link to the next: but none whose peer is dead, also
 * if nobody has looked since it died.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fakebroker.h"
#include "port.h"
#include "test.h"

/* A broker that makes a link, and then goes. */
struct session {
	int bell; /* the peer's end */
	_Atomic bool gone;
};

static void make_link(int fd, struct session *s)
{
	struct broker_options options = {0};
	struct wire_message m;
	int bell[2], fds[2];

	wire_begin(&m, FROM_BROKER, WIRE_OFFER, 1);
	m.offer.kind = DRAY_LINK_SHM;
	m.offer.queues = 1;
	m.offer.features = FEATURES_KNOWN;
	m.offer.clock = CLOCK_KIND_HERE;
	m.offer.geometry = broker_geometry(&options);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bell), 0);
	fds[0] = broker_memfd(m.offer.geometry.size, FAKE_SEALS);
	fds[1] = bell[0];
	s->bell = bell[1];
	CHECK_EQ(wire_send(fd, &m, fds, 2), 0);
	CHECK(fake_hear(fd, WIRE_MAPPED));
	CHECK(fcntl(fds[0], F_ADD_SEALS, FAKE_LIVE) == 0);
	wire_begin(&m, FROM_BROKER, WIRE_SEALED, 1);
	CHECK_EQ(wire_send(fd, &m, NULL, 0), 0);
	CHECK(fake_hear(fd, WIRE_ACTIVE));
	close(fds[0]);
	close(fds[1]);
}

static void *serve(void *argument)
{
	struct session *s = argument;
	int fd = fake_accept();

	fake_greet(fd);
	make_link(fd, s);
	atomic_store(&s->gone, true); /* first: the end dials again 100 ms after it lost this */
	close(fd);
	return NULL;
}

/* What the end says to the next broker. */
static struct wire_message next_hello(struct dray_port *port, unsigned *count)
{
	struct wire_message m;
	int fds[WIRE_MAX_FDS], fd, ret = -EAGAIN;

	UNTIL(port->control.state == CONTROL_GREETED, CHECK(dray_service(port) >= 0));
	fd = fake_accept();
	UNTIL((ret = wire_receive(fd, &m, fds, count, FROM_END)) != -EAGAIN, usleep(1000));
	CHECK_EQ(ret, 0);
	for (unsigned i = 0; i < *count; i++)
		close(fds[i]);
	close(fd);
	return m;
}

static void try_session(bool with_peer)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct session s = {.bell = -1};
	struct dray_port *port;
	struct wire_message m;
	pthread_t thread;
	unsigned count;

	CHECK_EQ(pthread_create(&thread, NULL, serve, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	UNTIL(atomic_load(&s.gone), test_service(port, NULL));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	UNTIL(port->control.state == CONTROL_LOST, test_service(port, NULL));
	CHECK(test_up(port));
	if (with_peer)
		close(s.bell);
	usleep(150000); /* so that the end's next step is to connect */
	m = next_hello(port, &count);
	CHECK_EQ(m.hello.flags & HELLO_READOPT, with_peer ? 0 : HELLO_READOPT);
	CHECK_EQ(count, !with_peer);
	CHECK_EQ(m.header.generation, !with_peer);
	if (!with_peer)
		close(s.bell);
	CHECK_EQ(dray_close(port), 0);
	fake_forget();
}

int main(void)
{
	fake_listen();
	try_session(false);
	try_session(true);
	fake_close();
	return 0;
}
