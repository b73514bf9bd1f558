/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dray_wait for one side of a queue: it leaves the other side to another thread, and while a thread
 * sleeps on each side, both wake for what is theirs: a move of the link, the end of the peer and
 * its successor, events, and buffers that a third thread releases.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rawend.h"
#include "unending.h"

#define ALL 4096
#define MOVES 30
#define PEERS 8
#define FLOOD_MS 100
#define RX DRAY_WAIT_RX
#define TX DRAY_WAIT_TX
#define ONE DRAY_WAIT_ONE_SIDE

/* One call of dray_wait in a thread of its own. */
struct waiter {
	struct dray_port *port;
	unsigned what;
	struct sleeper sleeper;
	pthread_t thread;
	_Atomic bool over;
	int result;
};

static void *wait_for_it(void *argument)
{
	struct waiter *w = argument;

	sleeper = &w->sleeper;
	w->result = dray_wait(w->port, 0, w->what | ONE, -1);
	atomic_store(&w->over, true);
	return NULL;
}

static void waiter_start(struct waiter *w, struct dray_port *port, unsigned what)
{
	*w = (struct waiter){.port = port, .what = what};
	CHECK_EQ(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
	until_asleep(&w->sleeper);
}

static void waiter_woke(struct waiter *w, int result)
{
	CHECK_EQ(pthread_join(w->thread, NULL), 0);
	CHECK_EQ(w->result, result);
}

static struct dray_pkt buffers[ALL];

/* Take every buffer that a port can send. Returns how many there are. */
static unsigned use_up(struct dray_port *port, struct dray_pkt *pkts)
{
	unsigned n = dray_tx_alloc(port, 0, pkts, ALL, 64);

	CHECK(n > 1 && n < ALL);
	return n;
}

static void errors(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);

	CHECK_EQ(dray_wait(p.a, 0, ONE, 0), -EINVAL);
	CHECK_EQ(dray_wait(p.a, 0, RX | TX | ONE, 0), -EINVAL);
	CHECK_EQ(dray_wait(p.a, 0, RX | DRAY_WAIT_MESSAGE | ONE, 0), -EINVAL);
	CHECK_EQ(dray_wait(p.a, 0, RX | ONE << 1, 0), -EINVAL);
	CHECK_EQ(dray_wait(p.a, 1, RX | ONE, 0), -EINVAL);
	CHECK_EQ(dray_wait(NULL, 0, RX | ONE, 0), -EBADF);
	CHECK_EQ(dray_wait(p.a, 0, RX | ONE, 0), 0);
	CHECK_EQ(dray_wait(p.a, 0, TX | ONE, 0), TX);
	UNTIL(dray_events(p.a, &(struct dray_event){0}, 1) == 0, );
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_EVENT | ONE, 20), 0);
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
}

/* A port that never sleeps spins on one side. */
static void busy(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);

	CHECK_EQ(dray_wait(p.a, 0, RX | ONE, 5), 0);
	CHECK_EQ(dray_wait(p.a, 0, TX | DRAY_WAIT_MESSAGE | ONE, 5), TX);
	test_send(p.b, 0, 64, 1);
	CHECK_EQ(dray_wait(p.a, 0, RX | ONE, -1), RX);
	test_receive(p.a, 0, 64, 1);
	test_pair_close(&p);
}

/* While a thread waits on one side, the other is free, and that one is not. */
static void sides_are_apart(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	struct waiter w;
	struct dray_pkt none;
	unsigned n;

	waiter_start(&w, p.a, RX);
	test_send(p.a, 0, 64, 1);
	CHECK_EQ(dray_wait(p.a, 0, TX | ONE, -1), TX);
	CHECK_EQ(test_stats(p.a).misuse, 0);
	CHECK_EQ(dray_rx_burst(p.a, 0, &none, 1), 0);
	CHECK_EQ(dray_wait(p.a, 0, TX, -1), 0); /* without the bit it is a call of both sides */
	CHECK_EQ(test_stats(p.a).misuse, 2);
	test_send(p.b, 0, 64, 2);
	waiter_woke(&w, RX);
	test_receive(p.a, 0, 64, 2);

	n = use_up(p.a, buffers);
	waiter_start(&w, p.a, TX);
	test_send(p.b, 0, 64, 3);
	CHECK_EQ(dray_wait(p.a, 0, RX | ONE, -1), RX);
	test_receive(p.a, 0, 64, 3);
	CHECK_EQ(dray_tx_alloc(p.a, 0, &none, 1, 64), 0);
	CHECK_EQ(test_stats(p.a).misuse, 3);
	CHECK(!atomic_load(&w.over));
	test_release_elsewhere(&buffers[0]);
	waiter_woke(&w, TX);
	dray_release(&buffers[1], n - 1);
	test_pair_close(&p);
}

/* What a third thread releases wakes the thread whose buffer it is, and that one alone. */
static void released_elsewhere(void)
{
	static struct dray_pkt its[ALL];
	struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	struct waiter rx, tx;
	struct dray_pkt held;
	unsigned m, n;

	test_send(p.b, 0, 64, 1);
	UNTIL(dray_rx_burst(p.a, 0, &held, 1) == 1, );
	m = use_up(p.b, its);
	n = use_up(p.a, buffers);
	waiter_start(&rx, p.a, RX);
	waiter_start(&tx, p.a, TX);

	test_release_elsewhere(&held);
	UNTIL(dray_tx_alloc(p.b, 0, &its[m], 1, 64) == 1, usleep(100));
	until_asleep(&rx.sleeper);
	test_release_elsewhere(&buffers[0]);
	waiter_woke(&tx, TX);
	until_asleep(&rx.sleeper);
	CHECK(!atomic_load(&rx.over));

	its[m].length = 64;
	CHECK_EQ(dray_tx_burst(p.b, 0, &its[m], 1), 1);
	waiter_woke(&rx, RX);
	dray_release(&buffers[1], n - 1);
	dray_release(its, m);
	test_pair_close(&p);
}

/* An event wakes the thread that waits for it, whichever thread served the port. */
static void events(void)
{
	for (unsigned i = 0; i < MOVES; i++) {
		struct pair p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
		struct waiter rx, tx;
		unsigned n = use_up(p.a, buffers);

		while (dray_events(p.a, &(struct dray_event){0}, 1))
			;
		waiter_start(&rx, p.a, RX | DRAY_WAIT_EVENT);
		waiter_start(&tx, p.a, TX);
		broker_move_shm(p.broker);
		UNTIL(atomic_load(&rx.over) && atomic_load(&tx.over), {
			CHECK(dray_service(p.a) >= 0);
			CHECK(dray_service(p.b) >= 0);
		});
		waiter_woke(&rx, DRAY_WAIT_EVENT);
		waiter_woke(&tx, TX); /* the new memory has buffers */
		dray_release(buffers, n);
		test_pair_close(&p);
	}
}

/* A peer that answers the first packet, and keeps all of them. */
static void hold_all(struct broker *broker)
{
	struct dray_port *port = test_open(broker, "b", DRAY_MODE_SLEEPING, 0);
	static struct dray_pkt kept[ALL];
	unsigned n = 0;

	for (;;) {
		unsigned got = dray_rx_burst(port, 0, &kept[n], ALL - n);

		if (n == 0 && got)
			test_send(port, 0, 64, 8);
		n += got;
		CHECK(dray_wait(port, 0, RX, 20) >= 0);
	}
}

static pid_t start_peer(struct broker *broker)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		sleeper = NULL;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_all(broker);
	}
	return pid;
}

static void send_all(struct dray_port *port)
{
	struct dray_pkt p;

	while (dray_tx_alloc(port, 0, &p, 1, 64) == 1) {
		test_fill(&p, 64, 7);
		CHECK_EQ(dray_tx_burst(port, 0, &p, 1), 1);
	}
}

/* Both sleep when it is killed, sleep on without a link, and wake for its successor. */
static void peers_are_killed(uint32_t flags)
{
	struct broker *broker = broker_start(NULL);
	pid_t pid = start_peer(broker);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_SLEEPING, flags);
	struct waiter rx, tx;

	UNTIL(test_up(a), test_service(a, NULL));
	for (unsigned i = 0; i < PEERS; i++) {
		send_all(a);
		if (i == 0)
			test_receive(a, 0, 64, 8);
		waiter_start(&rx, a, RX);
		waiter_start(&tx, a, TX);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		UNTIL(!test_up(a), usleep(1000));
		until_asleep(&rx.sleeper);
		until_asleep(&tx.sleeper);
		pid = start_peer(broker);
		waiter_woke(&tx, TX);
		test_send(a, 0, 64, 7);
		waiter_woke(&rx, RX);
		test_receive(a, 0, 64, 8);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

/* A peer that rings, and publishes nothing. */
struct ringer_thread {
	const char *directory;
	struct rawend end;
	_Atomic bool joined, stop;
	pthread_t thread;
};

static void *ring_in_vain(void *argument)
{
	struct ringer_thread *r = argument;
	const char one = 1;

	r->end = rawend_join(r->directory, "b");
	atomic_store(&r->joined, true);
	while (!atomic_load(&r->stop))
		(void)!send(r->end.bells[0], &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	rawend_leave(&r->end);
	return NULL;
}

static void *wait_in_vain(void *argument)
{
	struct waiter *w = argument;

	w->result = dray_wait(w->port, 0, w->what | ONE, FLOOD_MS);
	return NULL;
}

/* Each thread finds rings that may be the other's, again and again: both waits end in time. */
static void rung_in_vain(void)
{
	struct broker *broker = broker_start(NULL);
	struct ringer_thread r = {.directory = broker_directory(broker)};
	struct waiter w[2] = {{.what = RX}, {.what = TX}};
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	uint64_t start;
	unsigned n;

	CHECK_EQ(pthread_create(&r.thread, NULL, ring_in_vain, &r), 0);
	UNTIL(test_up(a) && atomic_load(&r.joined), test_service(a, NULL));
	n = use_up(a, buffers);
	start = clock_ns();
	for (unsigned i = 0; i < 2; i++) {
		w[i].port = a;
		CHECK_EQ(pthread_create(&w[i].thread, NULL, wait_in_vain, &w[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		waiter_woke(&w[i], 0);
	CHECK(clock_ns() - start < test_patience_ns() / 4);
	atomic_store(&r.stop, true);
	CHECK_EQ(pthread_join(r.thread, NULL), 0);
	dray_release(buffers, n);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

int main(void)
{
	errors();
	busy();
	sides_are_apart();
	released_elsewhere();
	events();
	peers_are_killed(0);
	peers_are_killed(DRAY_SERVICE_THREAD);
	rung_in_vain();
	return 0;
}
