/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that owns a queue sleeps; another thread gives back what the sender waits for: it gets
 * it, though the queue's thread never wakes by itself.
 */
#include <pthread.h>

#include "memory.h"
#include "unending.h"

#define ROUNDS 9
#define ALL 4096
/* CPU time in 300 ms of sleep: far above what it takes, and far below what polling does */
#define IDLE_NS 100000000u

static struct dray_pkt received[ALL], allocated[ALL];
static struct dray_pkt taken[2 * ROUNDS]; /* by the sender, so that it has none again */
static unsigned takings;

static bool take_one(struct dray_port *sender)
{
	unsigned n = dray_tx_alloc(sender, 0, &taken[takings], 1, 64);

	takings += n;
	return n == 1;
}

static void close_all(struct pair *p)
{
	dray_release(taken, takings);
	takings = 0;
	test_pair_close(p);
}

/* All that "a" can send is with the application of "b". */
static unsigned use_up(struct pair *p)
{
	struct dray_pkt t;
	unsigned sent = 0, got = 0;

	for (; dray_tx_alloc(p->a, 0, &t, 1, 64) == 1; sent++) {
		t.length = 64;
		CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	}
	CHECK(sent > ROUNDS && sent <= ALL);
	UNTIL(got == sent, got += dray_rx_burst(p->b, 0, &received[got], sent - got));
	return sent;
}

struct waiter {
	struct dray_port *port;
	unsigned what;
	struct sleeper sleeper;
	pthread_t thread;
	int result;
};

static void *sleep_on_it(void *argument)
{
	struct waiter *w = argument;

	sleeper = &w->sleeper;
	w->result = dray_wait(w->port, 0, w->what, -1);
	return NULL;
}

/* Give one back after the other; the sender takes each. */
static void give_back(struct pair *p, struct waiter *w)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		until_asleep(&w->sleeper);
		test_release_elsewhere(&received[i]);
		UNTIL(take_one(p->a), usleep(50));
	}
}

/* The thread waits for packets; one ends its wait. */
static void while_waiting_for_packets(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	struct waiter w = {.port = p.b, .what = DRAY_WAIT_RX};
	unsigned n = use_up(&p);

	CHECK_EQ(pthread_create(&w.thread, NULL, sleep_on_it, &w), 0);
	give_back(&p, &w);
	test_release_elsewhere(&received[ROUNDS]);
	test_send(p.a, 0, 64, 1);
	CHECK_EQ(pthread_join(w.thread, NULL), 0);
	CHECK_EQ(w.result, DRAY_WAIT_RX);
	dray_release(&received[ROUNDS + 1], n - ROUNDS - 1);
	close_all(&p);
}

/* The thread waits for a buffer to send, which another thread gives back, too. */
static void while_waiting_for_buffers(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	struct waiter w = {.port = p.b, .what = DRAY_WAIT_TX};
	unsigned n = use_up(&p), mine = dray_tx_alloc(p.b, 0, allocated, ALL, 64);

	CHECK_EQ(pthread_create(&w.thread, NULL, sleep_on_it, &w), 0);
	give_back(&p, &w);
	test_release_elsewhere(&allocated[0]);
	CHECK_EQ(pthread_join(w.thread, NULL), 0);
	CHECK_EQ(w.result, DRAY_WAIT_TX);
	dray_release(&received[ROUNDS], n - ROUNDS);
	dray_release(&allocated[1], mine - 1);
	close_all(&p);
}

static void take_turn(struct dray_port *port)
{
	struct dray_pkt none;

	CHECK(dray_service(port) >= 0);
	CHECK_EQ(dray_rx_burst(port, 0, &none, 1), 0);
}

/* The thread sleeps on a descriptor by itself, and is notified nowhere else. */
static void while_polling(struct pair *p, int fd, unsigned first)
{
	struct pollfd sleep = {.fd = fd, .events = POLLIN};

	CHECK(fd >= 0);
	for (unsigned i = first; i < first + ROUNDS; i++) {
		UNTIL(poll(&sleep, 1, 0) == 0, take_turn(p->b));
		CHECK(!take_one(p->a));
		test_release_elsewhere(&received[i]);
		CHECK_EQ(poll(&sleep, 1, 20000), 1);
		take_turn(p->b);
		CHECK(take_one(p->a));
	}
}

/*
 * A ring between a look for packets and a wait wakes nobody in vain: whoever waits sleeps for all
 * of the time.
 */
static void rung_before_waiting(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	unsigned n = use_up(&p);
	uint64_t cpu;

	take_turn(p.b); /* asks to be rung */
	test_release_elsewhere(&received[0]);
	cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
	CHECK_EQ(dray_wait(p.b, 0, DRAY_WAIT_RX, 300), 0);
	CHECK(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu < IDLE_NS);
	CHECK(take_one(p.a));
	dray_release(&received[1], n - 1);
	close_all(&p);
}

/* What others gave back is looked at between asking to be woken and sleeping. */
static void before_sleep(void)
{
	struct bed bed = bed_make(0, 0, FEATURES_KNOWN);
	struct dray_owner *tx = &bed.tx->owner, *rx = &bed.rx->owner;
	struct dray_pkt p;

	CHECK_EQ(tx->ops->alloc(tx, &p, 1, 64), 1);
	p.length = 64;
	CHECK_EQ(tx->ops->send(tx, &p, 1), 1);
	CHECK_EQ(rx->ops->recv(rx, &p, 1), 1);
	test_release_elsewhere(&p);
	CHECK_EQ(atomic_load(&bed.view.words->returned.value), 0);
	CHECK(!rx->ops->arm(rx));
	CHECK_EQ(atomic_load(&bed.view.words->returned.value), 1);
	bed_free(&bed);
}

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	unsigned n = use_up(&p);

	take_turn(p.b);
	while_polling(&p, dray_fd(p.b), 0);
	while_polling(&p, dray_queue_fd(p.b, 0), ROUNDS);
	dray_release(&received[2 * ROUNDS], n - 2 * ROUNDS);
	close_all(&p);
	while_waiting_for_packets();
	while_waiting_for_buffers();
	rung_before_waiting();
	before_sleep();
	return 0;
}
