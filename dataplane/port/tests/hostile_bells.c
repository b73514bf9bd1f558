/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that attaches sockets to its rings: TCP sockets that make close wait. No call of the
 * victim waits, on a kernel that can refuse descriptors and on one that cannot, and its other link
 * goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "fakebroker.h"
#include "linger.h"
#include "rawend.h"
#include "rights.h"
#include "test.h"

/* Half of what the attack takes: a busy machine takes seconds for nothing at all. */
#define QUICK_NS (LINGER_S * 500000000ull)
#define ROUNDS 60

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

static bool kernel_refuses(void)
{
	int pair[2], zero = 0, ret;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ret = setsockopt(pair[0], SOL_SOCKET, SO_PASSRIGHTS, &zero, sizeof(zero));
	close(pair[0]);
	close(pair[1]);
	return ret == 0;
}

static unsigned threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

#define QUICKLY(...)                                                                               \
	do {                                                                                       \
		uint64_t begin_ = clock_ns();                                                      \
		__VA_ARGS__;                                                                       \
		CHECK(clock_ns() - begin_ < QUICK_NS && "at once: " #__VA_ARGS__);                 \
	} while (0)

/* Everything that an application does with a port. */
static void use(struct dray_port *port)
{
	struct dray_pkt p;

	QUICKLY(CHECK_EQ(dray_rx_burst(port, 0, &p, 1), 0));
	QUICKLY(CHECK(dray_wait(port, 0, DRAY_WAIT_RX, 2) >= 0));
	QUICKLY(CHECK(dray_service(port) >= 0));
}

static void use_other(struct pair *other)
{
	QUICKLY(test_send(other->a, 0, 64, 7));
	QUICKLY(test_receive(other->b, 0, 64, 7));
}

/* A victim with a hostile peer, and a link to another one. */
struct scene {
	struct broker *broker;
	struct dray_port *victim;
	struct rawend peer;
	struct pair other;
	unsigned threads, fds;
	_Atomic bool attached;
};

static void *join(void *argument)
{
	struct scene *s = argument;

	s->peer = rawend_join(broker_directory(s->broker), "b");
	return NULL;
}

/* The peer comes, and the link is up. */
static void meet(struct scene *s)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, join, s), 0);
	UNTIL(test_up(s->victim), use(s->victim));
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void begin(struct scene *s, uint32_t mode, uint32_t flags)
{
	s->fds = test_open_fds();
	s->attached = false;
	s->other = test_pair(NULL, mode, 0);
	s->broker = broker_start(NULL);
	s->victim = test_open(s->broker, "a", mode, flags);
	s->threads = threads();
	deaf_begin();
	meet(s);
}

static void end(struct scene *s)
{
	deaf_end();
	UNTIL(threads() <= s->threads, usleep(1000));
	test_pair_close(&s->other);
	broker_stop(s->broker);
	UNTIL(test_open_fds() == s->fds, usleep(1000));
}

typedef void conduct(struct scene *s);

/* With a kernel that refuses descriptors, the link goes on; without, it is left. */
static void it_rings(struct scene *s)
{
	bool sent = attach(s->peer.bells[0]);

	for (unsigned i = 0; i < ROUNDS; i++) {
		use(s->victim);
		use_other(&s->other);
	}
	if (!sent) {
		CHECK(test_up(s->victim));
	} else {
		use(s->victim);
		(void)attach(s->peer.bells[0]);
		use(s->victim);
	}
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
	use_other(&s->other);
	rawend_leave(&s->peer);
}

static void it_rings_and_dies(struct scene *s)
{
	(void)attach(s->peer.bells[0]);
	rawend_leave(&s->peer);
	UNTIL(!test_up(s->victim), use(s->victim));
	for (unsigned i = 0; i < ROUNDS; i++) {
		use(s->victim);
		use_other(&s->other);
	}
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
}

static void it_rings_before_close(struct scene *s)
{
	(void)attach(s->peer.bells[0]);
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
	use_other(&s->other);
	rawend_leave(&s->peer);
}

/* The last buffer, and with it the generation, goes back after close. */
static void it_rings_before_release(struct scene *s)
{
	struct dray_pkt p;

	CHECK_EQ(dray_tx_alloc(s->victim, 0, &p, 1, 64), 1);
	(void)attach(s->peer.bells[0]);
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
	QUICKLY(dray_release(&p, 1));
	use_other(&s->other);
	rawend_leave(&s->peer);
}

/* Whatever it does in each generation, no more than one thread of the victim waits. */
static void it_comes_and_goes(struct scene *s)
{
	for (unsigned i = 0; i < 12; i++) {
		(void)attach(s->peer.bells[0]);
		rawend_leave(&s->peer);
		UNTIL(!test_up(s->victim), use(s->victim));
		meet(s);
		UNTIL(threads() <= s->threads + 1, usleep(1000));
	}
	use_other(&s->other);
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
	rawend_leave(&s->peer);
	UNTIL(threads() <= s->threads + 1, usleep(1000));
}

static void it_meets_many_ports(struct scene *s)
{
	for (unsigned i = 0; i < 4; i++) {
		(void)attach(s->peer.bells[0]);
		QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
		rawend_leave(&s->peer);
		s->victim = test_open(s->broker, "a", DRAY_MODE_SLEEPING, 0);
		meet(s);
		UNTIL(threads() <= s->threads + 1, usleep(1000));
	}
	CHECK_EQ(dray_close(s->victim), 0);
	rawend_leave(&s->peer);
}

/* A thread of the victim on one side of its queue. */
struct side {
	struct dray_port *port;
	unsigned what;
	pthread_t thread;
};

static void *use_side(void *argument)
{
	struct side *side = argument;

	for (unsigned i = 0; i < ROUNDS; i++)
		QUICKLY(CHECK(dray_wait(side->port, 0, side->what | DRAY_WAIT_ONE_SIDE, 2) >= 0));
	return NULL;
}

/* As attach: if the bell is closed before the socket is here, it is this thread that waits. */
static void *attach_in_time(void *argument)
{
	struct scene *s = argument;
	int fd = waiting_socket();

	if (!attach_to(s->peer.bells[0], fd))
		stop_waiting(fd);
	atomic_store(&s->attached, true);
	close(fd);
	return NULL;
}

/*
 * Two threads read one bell: neither of them takes a ring that only the other one has looked at.
 */
static void it_rings_at_two_threads(struct scene *s)
{
	struct side sides[2] = {{s->victim, DRAY_WAIT_RX, 0}, {s->victim, DRAY_WAIT_MESSAGE, 0}};
	pthread_t thread;
	char one = 1;

	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&sides[i].thread, NULL, use_side, &sides[i]), 0);
	for (unsigned i = 0; i < 10 * ROUNDS; i++) {
		(void)!send(s->peer.bells[0], &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (i == 5 * ROUNDS) {
			CHECK_EQ(pthread_create(&thread, NULL, attach_in_time, s), 0);
			CHECK_EQ(pthread_detach(thread), 0);
		}
		usleep(i % 8 ? 0 : 100);
	}
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(sides[i].thread, NULL), 0);
	UNTIL(atomic_load(&s->attached), usleep(100));
	use_other(&s->other);
	QUICKLY(CHECK_EQ(dray_close(s->victim), 0));
	rawend_leave(&s->peer);
}

static conduct *const attacks[] = {
	it_rings,	   it_rings_and_dies,	it_rings_before_close,	it_rings_before_release,
	it_comes_and_goes, it_meets_many_ports, it_rings_at_two_threads};

static void try_attack(conduct *attack, uint32_t mode, uint32_t flags)
{
	struct scene s;

	begin(&s, mode, flags);
	attack(&s);
	end(&s);
}

/* A ring with a descriptor is a violation, and the last that is read of the peer. */
static void counts(void)
{
	struct scene s;
	bool sent;

	begin(&s, DRAY_MODE_SLEEPING, 0);
	sent = attach(s.peer.bells[0]);
	for (unsigned i = 0; i < ROUNDS; i++)
		use(s.victim);
	CHECK_EQ(test_stats(s.victim).violations[DRAY_BAD_BELL], sent);
	CHECK_EQ(test_up(s.victim), !sent);
	CHECK_EQ(sent, old_kernel || !kernel_refuses());
	rawend_leave(&s.peer);
	CHECK_EQ(dray_close(s.victim), 0);
	end(&s);
}

/* A bell with too many rings from a peer that is honest otherwise is read as ever. */
static void rings_are_read(void)
{
	struct scene s;
	char one = 1;

	begin(&s, DRAY_MODE_SLEEPING, 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(send(s.peer.bells[0], &one, 1, MSG_DONTWAIT), 1);
	use(s.victim);
	use(s.victim);
	CHECK_EQ(test_stats(s.victim).violations[DRAY_BAD_BELL], 0);
	CHECK(test_up(s.victim));
	CHECK_EQ(dray_wait(s.victim, 0, DRAY_WAIT_RX, 20), 0);
	rawend_leave(&s.peer);
	CHECK_EQ(dray_close(s.victim), 0);
	end(&s);
}

/* Bells that are filled before the link is live: the generation never is, or is at once left. */

struct session {
	bool (*go)(int fd);
	_Atomic bool ready, over;
};

/* Returns the other end of the last bell. */
static int offer(int fd, uint32_t generation, unsigned queues)
{
	struct broker_options options = {.queues = queues};
	struct wire_message m;
	int fds[1 + DRAY_MAX_QUEUES], bell[2] = {-1, -1};

	wire_begin(&m, FROM_BROKER, WIRE_OFFER, generation);
	m.offer.kind = DRAY_LINK_SHM;
	m.offer.queues = queues;
	m.offer.features = FEATURES_KNOWN;
	m.offer.clock = CLOCK_KIND_HERE;
	m.offer.geometry = broker_geometry(&options);
	fds[0] = broker_memfd(m.offer.geometry.size, FAKE_SEALS);
	for (unsigned q = 0; q < queues; q++) {
		if (q)
			close(bell[1]);
		CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bell), 0);
		CHECK(attach(bell[1]));
		fds[1 + q] = bell[0];
	}
	(void)wire_send(fd, &m, fds, 1 + queues);
	for (unsigned i = 0; i < 1 + queues; i++)
		close(fds[i]);
	return bell[1];
}

static bool offers_refused(int fd)
{
	close(offer(fd, 1, 2));
	return !fake_hear(fd, WIRE_MAPPED);
}

static bool offers_dropped(int fd)
{
	close(offer(fd, 1, 1));
	if (!fake_hear(fd, WIRE_MAPPED))
		return false;
	close(offer(fd, 2, 1));
	return fake_hear(fd, WIRE_MAPPED);
}

static bool offers_unread(int fd)
{
	close(offer(fd, 1, 1));
	close(offer(fd, 2, 1));
	return true;
}

/*
 * Each offer takes the place of the one before, whose bell cannot be closed. Its other end learns
 * that it is over all the same.
 */
static bool offers_many(int fd)
{
	struct pollfd before = {.fd = -1};

	for (uint32_t i = 1; i < 400; i++) {
		int bell = offer(fd, i, 1);
		bool mapped = fake_hear(fd, WIRE_MAPPED);

		if (mapped && i > 1) {
			CHECK_EQ(poll(&before, 1, 20000), 1);
			CHECK(before.revents & POLLHUP);
		}
		close(before.fd);
		before.fd = bell;
		if (!mapped) {
			close(bell);
			return i > 100;
		}
	}
	return false;
}

static void *serve(void *argument)
{
	struct session *s = argument;
	int fd = fake_accept();

	fake_greet(fd);
	CHECK(s->go(fd));
	atomic_store(&s->ready, true);
	while (!atomic_load(&s->over))
		usleep(100);
	close(fd);
	return NULL;
}

static void try_offer(bool (*go)(int fd), bool read)
{
	struct dray_options o = {
		.size = sizeof(o), .directory = fake_directory(), .timeout_ms = 60000};
	struct session s = {.go = go};
	unsigned before = test_open_fds(), threads_before = threads();
	struct dray_port *port;
	pthread_t thread;

	deaf_begin();
	CHECK_EQ(pthread_create(&thread, NULL, serve, &s), 0);
	CHECK_EQ(dray_open("a", &o, &port), 0);
	while (!atomic_load(&s.ready)) /* each step of the broker has a limit of its own */
		if (read)
			use(port);
	QUICKLY(CHECK_EQ(dray_close(port), 0));
	UNTIL(threads() <= threads_before + 2, usleep(1000));
	atomic_store(&s.over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	fake_forget();
	deaf_end();
	UNTIL(threads() <= threads_before && test_open_fds() == before, usleep(1000));
}

static void try_kernel(void)
{
	for (unsigned i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		try_attack(attacks[i], DRAY_MODE_BUSY, 0);
		try_attack(attacks[i], DRAY_MODE_ADAPTIVE, 0);
		try_attack(attacks[i], DRAY_MODE_SLEEPING, 0);
		try_attack(attacks[i], DRAY_MODE_SLEEPING, DRAY_SERVICE_THREAD);
	}
	counts();
	rings_are_read();
	try_offer(offers_refused, true);
	try_offer(offers_dropped, true);
	try_offer(offers_unread, false);
	try_offer(offers_many, true);
}

int main(void)
{
	fake_listen();
	try_kernel();
	old_kernel = true;
	try_kernel();
	fake_close();
	return 0;
}
