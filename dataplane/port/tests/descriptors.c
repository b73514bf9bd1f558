/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be slept on: dray_event_fd tells of the control plane and of no packet, dray_queue_fd of
 * one queue and of no other.
 */
#include <errno.h>
#include <poll.h>

#include "test.h"

#define SOON_MS 20

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* In busy mode too: the application polls for packets, and sleeps on events. */
static void events(uint32_t mode)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *b, *a = test_open(broker, "a", mode, 0);
	struct dray_event e[8];
	int fd = dray_event_fd(a);

	CHECK(fd >= 0);
	CHECK_EQ(dray_event_fd(a), fd);
	b = test_open(broker, "b", DRAY_MODE_BUSY, 0);
	UNTIL(test_up(a) && test_up(b), {
		CHECK(dray_service(b) >= 0);
		if (readable(fd, 1))
			dray_service(a);
	});
	UNTIL(!readable(fd, 0), test_service(a, b));
	CHECK_EQ(dray_events(a, e, 8), 1);
	test_send(b, 0, 64, 1);
	CHECK(!readable(fd, SOON_MS));
	test_receive(a, 0, 64, 1);
	CHECK_EQ(dray_close(b), 0);
	CHECK(readable(fd, 20000));
	UNTIL(!test_up(a), test_service(a, NULL));
	UNTIL(!readable(fd, 0), test_service(a, NULL));
	CHECK_EQ(dray_events(a, e, 8), 1);
	CHECK_EQ(e[0].type, DRAY_EVENT_PEER_DOWN);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

/* A descriptor that is asked for when the link is up sees the peer's end as well. */
static void events_of_a_live_link(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	int fd = dray_event_fd(p.a);

	CHECK(fd >= 0);
	UNTIL(!readable(fd, 0), test_service(p.a, p.b));
	CHECK_EQ(dray_close(p.b), 0);
	CHECK(readable(fd, 20000));
	CHECK_EQ(dray_close(p.a), 0);
	broker_stop(p.broker);
}

/* Take everything, until the queue has asked for a ring. */
static void exhaust(struct dray_port *port, unsigned queue, int fd)
{
	struct dray_pkt p;

	UNTIL(dray_rx_burst(port, queue, &p, 1) == 0 && !readable(fd, 0), );
}

static void queues(void)
{
	struct broker_options o = {.queues = 2};
	struct pair p = test_pair(&o, DRAY_MODE_SLEEPING, 0);
	int fd[2] = {dray_queue_fd(p.a, 0), dray_queue_fd(p.a, 1)};

	CHECK(fd[0] >= 0 && fd[1] >= 0 && fd[0] != fd[1]);
	for (uint32_t i = 0; i < 20; i++) {
		exhaust(p.a, 0, fd[0]);
		exhaust(p.a, 1, fd[1]);
		test_send(p.b, i % 2, 64, i);
		CHECK(readable(fd[i % 2], 20000));
		CHECK(!readable(fd[1 - i % 2], 0));
		test_receive(p.a, i % 2, 64, i);
	}
	CHECK_EQ(dray_queue_fd(p.a, 2), -EINVAL);
	test_pair_close(&p);
}

/* A link that comes up while the application sleeps on a queue wakes it with the first packet. */
static void a_new_generation(void)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *b, *a = test_open(broker, "a", DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD);
	int fd = dray_queue_fd(a, 0);
	struct dray_pkt none;

	for (uint32_t i = 0; i < 3; i++) {
		b = test_open(broker, "b", DRAY_MODE_BUSY, DRAY_SERVICE_THREAD);
		CHECK_EQ(dray_rx_burst(a, 0, &none, 1), 0);
		test_send(b, 0, 64, i);
		CHECK(readable(fd, 20000));
		test_receive(a, 0, 64, i);
		CHECK_EQ(dray_close(b), 0);
		UNTIL(!test_up(a), usleep(1000));
		UNTIL(!readable(fd, 0), dray_rx_burst(a, 0, &none, 1));
	}
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);

	CHECK_EQ(dray_queue_fd(p.a, 0), -ENOTSUP);
	CHECK_EQ(dray_event_fd(NULL), -EBADF);
	CHECK_EQ(dray_queue_fd(NULL, 0), -EBADF);
	test_pair_close(&p);
	events(DRAY_MODE_BUSY);
	events(DRAY_MODE_ADAPTIVE);
	events_of_a_live_link();
	queues();
	a_new_generation();
	return 0;
}
