/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port in adaptive mode learns from when packets come, and sleeps at once while they come late.
 * With a time of polling that the application sets it learns nothing.
 */
#include <errno.h>

#include "port.h"
#include "test.h"

#define PACKETS 200
#define LATE_US 300u /* after the longest polling that is learned */

static struct dray_port *open_b(struct broker *broker, uint32_t spin_us)
{
	struct dray_options o = {.size = sizeof(o),
				 .directory = broker_directory(broker),
				 .mode = DRAY_MODE_ADAPTIVE,
				 .spin_us = spin_us,
				 .timeout_ms = 60000};
	struct dray_port *port = NULL;

	CHECK_EQ(dray_open("b", &o, &port), 0);
	return port;
}

/* Packets come late. Returns before how many of them the first empty poll let the thread sleep. */
static unsigned late_packets(struct pair *p, bool waits)
{
	unsigned at_once = 0;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct dray_pkt r;

		CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 0);
		at_once += dray_may_sleep(p->b, 0) == 1;
		if (i % 50 == 0)
			CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX, 1), 0);
		else
			usleep(LATE_US);
		test_send(p->a, 0, 64, i);
		if (waits)
			CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
		test_receive(p->b, 0, 64, i);
	}
	return at_once;
}

/* dray_wait finds packets at once; that they are taken late does not make them late. */
static void taken_late(struct pair *p)
{
	const struct idle *idle = &p->b->queues[0].rx.idle;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct dray_pkt r;

		CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 0);
		test_send(p->a, 0, 64, i);
		CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
		usleep(LATE_US);
		test_receive(p->b, 0, 64, i);
	}
	CHECK(idle->cost <= idle->longest);
}

static void run(uint32_t spin_us, void (*check)(struct pair *))
{
	struct pair p = {.broker = broker_start(NULL)};

	p.a = test_open(p.broker, "a", DRAY_MODE_ADAPTIVE, 0);
	p.b = open_b(p.broker, spin_us);
	UNTIL(test_up(p.a) && test_up(p.b), test_service(p.a, p.b));
	check(&p);
	test_pair_close(&p);
}

static void learns(struct pair *p)
{
	const struct idle *idle = &p->b->queues[0].rx.idle;

	CHECK(late_packets(p, false) > PACKETS / 2);
	CHECK(idle->cost > idle->longest);
	CHECK(late_packets(p, true) > PACKETS / 2);
	taken_late(p);
	CHECK_EQ(dray_may_sleep(p->b, DRAY_MAX_QUEUES), -EINVAL);
	CHECK_EQ(dray_may_sleep(NULL, 0), -EBADF);
}

static void does_not(struct pair *p)
{
	CHECK_EQ(late_packets(p, false), 0);
	CHECK_EQ(late_packets(p, true), 0);
}

int main(void)
{
	struct pair p;

	run(0, learns);
	run(LATE_US, does_not);
	p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	CHECK_EQ(dray_may_sleep(p.a, 0), -ENOTSUP);
	test_pair_close(&p);
	return 0;
}
