/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping and adaptive ends are woken for packets and for buffers, burn no CPU meanwhile, and
 * dray_fd works with poll.
 */
#include <errno.h>
#include <pthread.h>

#include "unending.h"

#define ROUNDS 2000

static uint64_t cpu_ns(void)
{
	return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void *echo(void *argument)
{
	struct dray_port *port = argument;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct dray_pkt r;

		CHECK_EQ(dray_wait(port, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
		CHECK_EQ(dray_rx_burst(port, 0, &r, 1), 1);
		test_check(&r, 64, i);
		CHECK_EQ(dray_tx_burst(port, 0, &r, 1), 1); /* received, sent on: copied */
	}
	return NULL;
}

static void ping_pong(struct pair *p)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, echo, p->b), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		test_send(p->a, 0, 64, i);
		CHECK_EQ(dray_wait(p->a, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
		test_receive(p->a, 0, 64, i);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(test_stats(p->b).tx_copied, ROUNDS);
}

static void idle(struct pair *p)
{
	uint64_t before = cpu_ns();

	CHECK_EQ(dray_wait(p->a, 0, DRAY_WAIT_RX, 700), 0);
	CHECK(cpu_ns() - before < 70000000); /* a tenth of the time would be a lot */
}

static void *give_back_later(void *argument)
{
	struct dray_pkt *held = argument;

	usleep(50000);
	dray_release(&held[1], 100);
	return NULL;
}

static void for_buffers(struct pair *p)
{
	static struct dray_pkt t[128], r[128];
	struct dray_pkt one;
	unsigned n = dray_tx_alloc(p->a, 0, t, 128, 64);
	pthread_t thread;

	CHECK_EQ(n, 128);
	for (unsigned i = 0; i < n; i++)
		test_fill(&t[i], 64, i);
	CHECK_EQ(dray_tx_burst(p->a, 0, t, n), n);
	CHECK_EQ(dray_tx_alloc(p->a, 0, &one, 1, 64), 0);
	CHECK_EQ(dray_wait(p->a, 0, DRAY_WAIT_TX, 10), 0);
	CHECK_EQ(dray_rx_burst(p->b, 0, r, 128), 128);
	CHECK_EQ(pthread_create(&thread, NULL, give_back_later, r), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	dray_release(r, 1);		 /* the owner's */
	dray_rx_burst(p->b, 0, &one, 1); /* and the others' */
	CHECK_EQ(dray_wait(p->a, 0, DRAY_WAIT_TX, 20000), DRAY_WAIT_TX);
	CHECK_EQ(dray_tx_alloc(p->a, 0, &one, 1, 64), 1);
	dray_release(&one, 1);
	dray_release(&r[101], 27);
}

#define SPELLS 150

static void *take_slowly(void *argument)
{
	struct dray_port *port = argument;
	static struct dray_pkt r[128];

	for (unsigned taken = 0; taken < SPELLS * 128;) {
		unsigned n;

		CHECK_EQ(dray_wait(port, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
		n = dray_rx_burst(port, 0, r, 128);
		usleep(1000); /* the sender sleeps by now */
		dray_release(r, n);
		taken += n;
	}
	return NULL;
}

/* The receiver rings when buffers are back: no sleep of the sender ends by itself. */
static void rung_for_buffers(struct pair *p)
{
	static struct dray_pkt t[128];
	struct sleeper sender = {0};
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, take_slowly, p->b), 0);
	sleeper = &sender;
	for (unsigned sent = 0; sent < SPELLS * 128;) {
		unsigned n = dray_tx_alloc(p->a, 0, t, 128, 64);

		for (unsigned i = 0; i < n; i++)
			t[i].length = 64;
		sent += dray_tx_burst(p->a, 0, t, n);
		CHECK_EQ(dray_wait(p->a, 0, DRAY_WAIT_TX, 20000), DRAY_WAIT_TX);
	}
	sleeper = NULL;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(sender.sleeps > 0);
}

/* Take what is left, and poll on until the port has asked to be woken. */
static void until_asked(struct dray_port *port)
{
	struct dray_pkt r;

	do
		while (dray_rx_burst(port, 0, &r, 1))
			dray_release(&r, 1);
	while (dray_may_sleep(port, 0) == 0);
}

static void by_fd(struct pair *p)
{
	struct pollfd fd = {.fd = dray_fd(p->b), .events = POLLIN};

	CHECK(fd.fd >= 0);
	for (uint32_t i = 0; i < 200; i++) {
		until_asked(p->b);
		test_send(p->a, 0, 64, i);
		CHECK_EQ(poll(&fd, 1, 20000), 1);
		CHECK(dray_service(p->b) >= 0);
		test_receive(p->b, 0, 64, i);
	}
	until_asked(p->b);
	dray_service(p->b);
	CHECK_EQ(poll(&fd, 1, 20), 0);
}

static void run(uint32_t mode)
{
	struct pair p = test_pair(NULL, mode, 0);

	ping_pong(&p);
	idle(&p);
	for_buffers(&p);
	if (mode == DRAY_MODE_SLEEPING)
		rung_for_buffers(&p);
	by_fd(&p);
	CHECK_EQ(dray_wait(p.a, 0, 0, 1), -EINVAL);
	test_pair_close(&p);
}

int main(void)
{
	struct pair p;

	run(DRAY_MODE_SLEEPING);
	run(DRAY_MODE_ADAPTIVE);
	p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	CHECK_EQ(dray_fd(p.a), -ENOTSUP);
	test_send(p.b, 0, 64, 1);
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_RX | DRAY_WAIT_TX, 1000), DRAY_WAIT_RX | DRAY_WAIT_TX);
	test_pair_close(&p);
	return 0;
}
