/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each end of a link has a thread that sends and one that receives, and all four sleep: packets are
 * echoed, with so few buffers that the senders sleep, too. Every packet comes back, in order, and
 * no sleep has to end by time.
 *
 * usage: test-both_sleep [packets of each kind]
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "rights.h"
#include "still.h"
#include "unending.h"

#define SLOTS 32u
#define MESSAGES 8u
#define MESSAGE 4096u
#define BURST 8
#define PASSED 16u /* packets on their way from the thread that receives to the one that sends */
#define MOVE_MAPS 4

struct kind {
	const char *name;
	uint32_t mode, flags;
	enum { BY_WAIT, BY_FD, BY_QUEUE_FD } receive; /* what receivers sleep on */
	bool messages, moves;
	bool old_kernel; /* a bell may have descriptors in it: there is a look before each read */
};

/* Before Linux 6.16 there is no such option. This file is linked with --wrap=setsockopt. */
static bool old_kernel;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	if (old_kernel && level == SOL_SOCKET && name == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return __real_setsockopt(fd, level, name, value, length);
}

/* From the receiving thread of "b" to its sending thread. */
struct passage {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct dray_pkt pkts[PASSED];
	unsigned first, count;
};

struct run {
	const struct kind *kind;
	struct pair pair;
	struct passage passage;
	uint64_t target;
	uint32_t moved; /* the generation that the last move was from */
	struct sleeper a_sends, a_receives, b_sends, b_receives;
	_Atomic uint64_t received;
};

static void pass(struct passage *q, const struct dray_pkt *pkts, unsigned n)
{
	pthread_mutex_lock(&q->lock);
	for (unsigned i = 0; i < n; i++) {
		while (q->count == PASSED)
			pthread_cond_wait(&q->changed, &q->lock);
		q->pkts[(q->first + q->count++) % PASSED] = pkts[i];
		pthread_cond_broadcast(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
}

static unsigned passed(struct passage *q, struct dray_pkt *pkts, unsigned n)
{
	unsigned got = 0;

	pthread_mutex_lock(&q->lock);
	while (q->count == 0)
		pthread_cond_wait(&q->changed, &q->lock);
	for (; got < n && q->count; q->count--)
		pkts[got++] = q->pkts[q->first++ % PASSED];
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return got;
}

static uint32_t size_of(const struct run *r)
{
	return r->kind->messages ? MESSAGE : 64;
}

static void wait_for_buffers(const struct run *r, struct dray_port *port)
{
	const unsigned what = r->kind->messages ? DRAY_WAIT_MESSAGE : DRAY_WAIT_TX;

	CHECK(dray_wait(port, 0, what | DRAY_WAIT_ONE_SIDE, -1) >= 0);
}

static void wait_for_packets(const struct run *r, struct dray_port *port)
{
	struct pollfd fd = {.events = POLLIN};

	if (r->kind->receive == BY_WAIT) {
		CHECK(dray_wait(port, 0, DRAY_WAIT_RX | DRAY_WAIT_ONE_SIDE, -1) >= 0);
		return;
	}
	fd.fd = r->kind->receive == BY_FD ? dray_fd(port) : dray_queue_fd(port, 0);
	CHECK(poll(&fd, 1, -1) == 1);
	if (r->kind->receive == BY_FD)
		CHECK(dray_service(port) >= 0);
}

/* Wait if nothing came. Returns how many packets did. */
static unsigned receive(const struct run *r, struct dray_port *port, struct dray_pkt *pkts)
{
	unsigned n = dray_rx_burst(port, 0, pkts, BURST);

	if (n == 0)
		wait_for_packets(r, port);
	return n;
}

static void *a_sends(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];

	sleeper = &r->a_sends;
	for (uint64_t sent = 0; sent < r->target;) {
		uint64_t left = r->target - sent;
		unsigned n = dray_tx_alloc(r->pair.a, 0, p, left < BURST ? (unsigned)left : BURST,
					   size_of(r));

		for (unsigned i = 0; i < n; i++) {
			memcpy(p[i].data, &sent, sizeof(sent));
			sent++;
			p[i].length = size_of(r);
		}
		for (unsigned used = 0; used < n;) {
			used += dray_tx_burst(r->pair.a, 0, &p[used], n - used);
			if (used < n) /* the link moved, and these are copied */
				wait_for_buffers(r, r->pair.a);
		}
		if (n == 0)
			wait_for_buffers(r, r->pair.a);
	}
	return NULL;
}

static void *b_receives(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];

	sleeper = &r->b_receives;
	for (uint64_t got = 0; got < r->target;) {
		unsigned n = receive(r, r->pair.b, p);

		pass(&r->passage, p, n);
		got += n;
	}
	return NULL;
}

/* The copies go to "a", and the originals back to the other thread of this end. */
static void *b_sends(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];

	sleeper = &r->b_sends;
	for (uint64_t sent = 0; sent < r->target;) {
		unsigned n = passed(&r->passage, p, BURST);

		for (unsigned used = 0; used < n;) {
			used += dray_tx_burst(r->pair.b, 0, &p[used], n - used);
			if (used < n)
				wait_for_buffers(r, r->pair.b);
		}
		sent += n;
	}
	return NULL;
}

static void *a_receives(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];
	uint64_t next = 0, seen;

	sleeper = &r->a_receives;
	while (next < r->target) {
		unsigned n = receive(r, r->pair.a, p);

		for (unsigned i = 0; i < n; i++, next++) {
			memcpy(&seen, p[i].data, sizeof(seen));
			CHECK_EQ(seen, next);
			CHECK_EQ(p[i].length, size_of(r));
		}
		if (next / 1024 != (next - n) / 1024)
			usleep(500); /* until all senders have run out of buffers */
		dray_release(p, n);
		atomic_store(&r->received, next);
	}
	return NULL;
}

/*
 * One move at a time: an order that comes before the last move is through replaces its offer, and a
 * broker with more orders than it can follow goes on long after the packets have come. More moves
 * than an end has maps for would have to wait.
 */
static void move(struct run *r)
{
	struct pair *p = &r->pair;
	uint32_t from = test_generation(p->a);

	if (from == r->moved || from != test_generation(p->b) ||
	    test_stats(p->a).maps >= MOVE_MAPS || test_stats(p->b).maps >= MOVE_MAPS)
		return;
	r->moved = from;
	broker_move_shm(p->broker);
}

static void report(struct run *r)
{
	printf("%-50s %llu packets, %u moves, sleeps: %llu %llu %llu %llu\n", r->kind->name,
	       (unsigned long long)r->target, test_generation(r->pair.a) - 1,
	       (unsigned long long)r->a_sends.sleeps, (unsigned long long)r->b_receives.sleeps,
	       (unsigned long long)r->b_sends.sleeps, (unsigned long long)r->a_receives.sleeps);
	fflush(stdout);
}

static void run(const struct kind *kind, uint64_t target)
{
	const struct broker_options o = {
		.geometry = {.ring_size = 64,
			     .pkt_slots = SLOTS,
			     .msg_slots = kind->messages ? MESSAGES : 0,
			     .msg_stride = kind->messages ? MESSAGE + 128 : 0,
			     .msg_headroom = kind->messages ? 128 : 0}};
	static void *(*const threads[])(void *) = {a_sends, b_receives, b_sends, a_receives};
	struct run r = {.kind = kind, .target = target};
	pthread_t thread[4];

	old_kernel = kind->old_kernel;
	pthread_mutex_init(&r.passage.lock, NULL);
	pthread_cond_init(&r.passage.changed, NULL);
	r.pair = test_pair(&o, kind->mode, kind->flags);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, threads[i], &r), 0);
	while (atomic_load(&r.received) < target) {
		usleep(2000);
		if (kind->moves)
			move(&r);
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	report(&r);
	CHECK_EQ(test_stats(r.pair.a).misuse + test_stats(r.pair.b).misuse, 0);
	CHECK(r.a_sends.sleeps && r.b_sends.sleeps && r.b_receives.sleeps && r.a_receives.sleeps);
	test_pair_close(&r.pair);
	pthread_cond_destroy(&r.passage.changed);
	pthread_mutex_destroy(&r.passage.lock);
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = {
		{"sleeping", DRAY_MODE_SLEEPING, 0, BY_WAIT, false, false, false},
		{"adaptive", DRAY_MODE_ADAPTIVE, 0, BY_WAIT, false, false, false},
		{"sleeping, messages", DRAY_MODE_SLEEPING, 0, BY_WAIT, true, false, false},
		{"sleeping, a look before each read", DRAY_MODE_SLEEPING, 0, BY_WAIT, false, false,
		 true},
		{"receivers sleep on dray_fd", DRAY_MODE_SLEEPING, 0, BY_FD, false, false, false},
		{"receivers sleep on dray_queue_fd", DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD,
		 BY_QUEUE_FD, false, false, false},
		{"the link moves", DRAY_MODE_SLEEPING, 0, BY_WAIT, false, true, false},
		{"the link moves, service thread", DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD, BY_WAIT,
		 false, true, false},
		{"the link moves, dray_fd", DRAY_MODE_SLEEPING, 0, BY_FD, false, true, false},
		{"the link moves, dray_queue_fd", DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD,
		 BY_QUEUE_FD, false, true, false},
	};
	uint64_t target = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		run(&kinds[i], target ? target : 20000);
	return 0;
}
