/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No wake-up is lost. Proof that needs no fast machine: each poll of a sleeper goes through here,
 * with a short time-out. The kernel looks at the descriptors once more when the time is over; so a
 * sleep that ends by time-out, although what it waits for was published and rung for before that
 * time, was not rung for at all. Pauses of random length are put around every system call of the
 * bells.
 *
 * usage: test-wakeups [naps of each kind]
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "still.h"
#include "test.h"

#define NAP_MS 20
#define SLOTS 128u
#define MESSAGES 64u
#define MESSAGE 4096u
#define STAMPS 4096u
#define BURST 32
#define SPIN_US 5u

/* What one thread hands to another: how much so far, and when each was done, its ring included. */
struct stream {
	_Atomic uint64_t count;
	_Atomic uint64_t stamp[STAMPS];
};

/* What a thread waits for: item `next` of a stream. NULL: it is no sleeper under test. */
static _Thread_local const struct stream *awaited;
static _Thread_local uint64_t next;
static _Thread_local uint64_t dice = 88172645463325252ull;
static _Atomic uint64_t naps, lost;
/* somebody should be held up on the way to sleep, while the link moves */
static _Atomic bool moving;

static void done(struct stream *s, uint64_t n)
{
	uint64_t at = atomic_load_explicit(&s->count, memory_order_relaxed), now = clock_ns();

	for (uint64_t i = at; i < at + n; i++)
		atomic_store_explicit(&s->stamp[i % STAMPS], now, memory_order_relaxed);
	atomic_store_explicit(&s->count, at + n, memory_order_release);
}

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	return dice ^= dice << 17;
}

static void pause_a_little(void)
{
	uint64_t r = roll() % 64;
	struct timespec t = {.tv_nsec = (long)(roll() % 30000)};

	if (r == 0)
		nanosleep(&t, NULL);
	else if (r < 4)
		sched_yield();
	else if (r < 16)
		for (uint64_t i = roll() % 200; i; i--)
			clock_relax();
}

/* A nap is over by time-out: should somebody have rung? */
static void judge(uint64_t until)
{
	if (atomic_load_explicit(&awaited->count, memory_order_acquire) <= next)
		return;
	if (atomic_load_explicit(&awaited->stamp[next % STAMPS], memory_order_relaxed) < until)
		atomic_fetch_add(&lost, 1);
}

/* These three are the library's too: it is linked into this program. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	bool sleeper = awaited && ms != 0;
	struct timespec t;
	uint64_t start;
	int ret;

	if (sleeper) {
		ms = ms < 0 || ms > NAP_MS ? NAP_MS : ms;
		atomic_fetch_add_explicit(&naps, 1, memory_order_relaxed);
		pause_a_little();
		if (atomic_exchange(&moving, false))
			usleep(3000);
	}
	t = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
	start = clock_ns();
	ret = (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t, NULL, 0);
	if (sleeper && ret == 0)
		judge(start + (uint64_t)ms * 1000000);
	if (sleeper)
		pause_a_little();
	return ret;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	pause_a_little();
	return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	ssize_t ret;

	pause_a_little();
	ret = syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
	pause_a_little();
	return ret;
}

struct kind {
	const char *name;
	uint32_t mode, flags;
	bool by_fd;    /* sleep on dray_fd, else in dray_wait */
	unsigned hold; /* the receiver keeps up to so many bursts */
	bool moves;
	bool messages; /* instead of packets */
	bool learns;   /* how long to poll */
};

struct run {
	const struct kind *kind;
	struct broker *broker;
	struct dray_port *a, *b;
	struct stream published, released;
	uint64_t target;
	_Atomic bool stop;
};

static void take(const struct dray_pkt *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++, next++)
		CHECK_EQ(*(uint64_t *)p[i].data, next);
}

static void sleep_for_packets(struct run *r)
{
	struct pollfd fd = {.fd = dray_fd(r->b), .events = POLLIN};

	if (!r->kind->by_fd) {
		CHECK(dray_wait(r->b, 0, DRAY_WAIT_RX, 3 * NAP_MS) >= 0);
	} else if (dray_may_sleep(r->b, 0) == 1) {
		CHECK(poll(&fd, 1, -1) >= 0);
		if (!(r->kind->flags & DRAY_SERVICE_THREAD) || roll() % 16 == 0)
			CHECK(dray_service(r->b) >= 0);
	}
}

static void *receiver(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];

	dice ^= 0x9e3779b97f4a7c15ull;
	awaited = &r->published;
	while (!atomic_load(&r->stop) || next < atomic_load(&r->published.count)) {
		unsigned n = dray_rx_burst(r->b, 0, p, 1 + (unsigned)(roll() % BURST));

		if (n == 0) {
			sleep_for_packets(r);
			continue;
		}
		take(p, n);
		for (unsigned turns = r->kind->hold ? (unsigned)(roll() % r->kind->hold) : 0; turns;
		     turns--)
			pause_a_little();
		dray_release(p, n);
		done(&r->released, n);
	}
	awaited = NULL;
	return NULL;
}

/* Until the receiver has gone to sleep, mostly. */
static void let_it_sleep(void)
{
	if (roll() % 32 == 0)
		usleep(50);
	for (uint64_t i = roll() % 400; i; i--)
		clock_relax();
}

/* The release of the oldest buffer is what there is to wait for. */
static void wait_for_buffers(struct run *r, uint64_t sent)
{
	next = sent - (r->kind->messages ? MESSAGES : SLOTS);
	CHECK(dray_wait(r->a, 0, r->kind->messages ? DRAY_WAIT_MESSAGE : DRAY_WAIT_TX,
			3 * NAP_MS) >= 0);
}

static void *sender(void *argument)
{
	struct run *r = argument;
	struct dray_pkt p[BURST];
	uint64_t sent = 0;

	awaited = r->kind->moves ? NULL : &r->released;
	while (!atomic_load(&r->stop)) {
		bool late = r->kind->moves && test_generation(r->b) > test_generation(r->a);
		unsigned n;

		if (late)
			usleep(3000); /* the receiver has moved, and sleeps */
		n = dray_tx_alloc(r->a, 0, p, 1 + (unsigned)(roll() % (r->kind->hold ? BURST : 2)),
				  r->kind->messages ? MESSAGE : 64);

		if (n == 0) {
			wait_for_buffers(r, sent);
			continue;
		}
		for (unsigned i = 0; i < n; i++) {
			*(uint64_t *)p[i].data = sent + i;
			p[i].length = 64;
		}
		CHECK_EQ(dray_tx_burst(r->a, 0, p, n), n);
		sent += n;
		done(&r->published, n);
		if (!r->kind->hold)
			let_it_sleep();
		if (late)
			usleep(1500 * NAP_MS); /* the last in the old lane, with nothing after it
						  for long */
		if (late || roll() % (r->kind->moves ? 512 : 16) == 0)
			dray_service(r->a);
	}
	awaited = NULL;
	return NULL;
}

static void run(const struct kind *kind, uint64_t target)
{
	struct run *r = calloc(1, sizeof(*r));
	struct dray_options o = {.size = sizeof(o),
				 .mode = kind->mode,
				 .flags = kind->flags,
				 .spin_us = kind->learns ? 0 : SPIN_US,
				 .timeout_ms = 60000};
	const struct broker_options messages = {.geometry = {.msg_slots = MESSAGES,
							     .msg_stride = MESSAGE + 128,
							     .msg_headroom = 128}};
	uint64_t before = atomic_load(&naps), bad = atomic_load(&lost),
		 end = clock_ns() + 4000000000ull + target * 100000;
	pthread_t threads[2];
	uint32_t moved = 0;

	CHECK(r != NULL);
	r->kind = kind;
	r->broker = broker_start(kind->messages ? &messages : NULL);
	o.directory = broker_directory(r->broker);
	CHECK_EQ(dray_open("b", &o, &r->b), 0);
	/* asleep before there is a link */
	CHECK_EQ(pthread_create(&threads[0], NULL, receiver, r), 0);
	CHECK_EQ(dray_open("a", &o, &r->a), 0);
	UNTIL(test_up(r->a), test_service(r->a, NULL));
	CHECK_EQ(pthread_create(&threads[1], NULL, sender, r), 0);
	while ((kind->moves ? test_generation(r->a) <= target / 250
			    : atomic_load(&naps) < before + target) &&
	       clock_ns() < end) {
		usleep(kind->moves ? 1000 + (unsigned)(roll() % 4000) : 1000);
		/*
		 * A fifth generation that the receiver had no time to look at would be dropped with
		 * its packets. An order that comes before the last move is through replaces its
		 * offer.
		 */
		if (kind->moves && test_stats(r->b).maps < 5 && test_stats(r->a).maps < 7 &&
		    test_generation(r->b) == test_generation(r->a) &&
		    test_generation(r->a) != moved) {
			moved = test_generation(r->a);
			atomic_store(&moving, kind->flags & DRAY_SERVICE_THREAD);
			broker_move_shm(r->broker);
		}
	}
	atomic_store(&r->stop, true);
	CHECK_EQ(pthread_join(threads[1], NULL), 0);
	CHECK_EQ(pthread_join(threads[0], NULL), 0);
	printf("%-60s %8llu sleeps, %llu packets, %u moves, %llu wake-ups lost\n", kind->name,
	       (unsigned long long)(atomic_load(&naps) - before),
	       (unsigned long long)atomic_load(&r->published.count), test_generation(r->a) - 1,
	       (unsigned long long)(atomic_load(&lost) - bad));
	fflush(stdout);
	CHECK_EQ(dray_close(r->a), 0);
	CHECK_EQ(dray_close(r->b), 0);
	broker_stop(r->broker);
	free(r);
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = {
		{"sleeping, dray_fd", DRAY_MODE_SLEEPING, 0, true, 0, false, false, false},
		{"sleeping, dray_wait", DRAY_MODE_SLEEPING, 0, false, 0, false, false, false},
		{"sleeping, dray_fd, the sender waits for buffers", DRAY_MODE_SLEEPING, 0, true, 20,
		 false, false, false},
		{"sleeping, dray_wait, the sender waits for buffers", DRAY_MODE_SLEEPING, 0, false,
		 20, false, false, false},
		{"adaptive, dray_fd", DRAY_MODE_ADAPTIVE, 0, true, 0, false, false, false},
		{"adaptive, dray_wait", DRAY_MODE_ADAPTIVE, 0, false, 0, false, false, false},
		{"adaptive, dray_wait, the sender waits for buffers", DRAY_MODE_ADAPTIVE, 0, false,
		 20, false, false, false},
		{"adaptive, learning, dray_fd", DRAY_MODE_ADAPTIVE, 0, true, 0, false, false, true},
		{"adaptive, learning, dray_wait", DRAY_MODE_ADAPTIVE, 0, false, 0, false, false,
		 true},
		{"sleeping, dray_wait, the sender waits for message buffers", DRAY_MODE_SLEEPING, 0,
		 false, 20, false, true, false},
		{"sleeping, dray_fd, the link moves", DRAY_MODE_SLEEPING, 0, true, 0, true, false,
		 false},
		{"sleeping, dray_wait, the link moves", DRAY_MODE_SLEEPING, 0, false, 0, true,
		 false, false},
		{"sleeping, dray_fd, service thread", DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD, true,
		 0, false, false, false},
		{"sleeping, dray_fd, service thread, the link moves", DRAY_MODE_SLEEPING,
		 DRAY_SERVICE_THREAD, true, 0, true, false, false},
		{"sleeping, dray_wait, service thread, the link moves", DRAY_MODE_SLEEPING,
		 DRAY_SERVICE_THREAD, false, 0, true, false, false},
	};
	uint64_t target = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	if (target == 0)
		target = 2000;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		run(&kinds[i], target);
	CHECK_EQ(atomic_load(&lost), 0);
	return 0;
}
