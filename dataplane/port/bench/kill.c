/* SPDX-License-Identifier: Apache-2.0 */
/* The survivor, its peers, and the count of what was lost between them. */
#include "kill.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "broker.h"
#include "dray.h"
#include "wire.h"

#define BURST 32
#define ENOUGH 2000u /* packets of a peer before it is killed */
#define SLOTS 256u
#define STALL_NS 1000000000ull
#define GIVE_UP_NS 20000000000ull
#define LEAK_NS 10000000000ull

/* What a packet says: of whose life it is, and which. */
struct load {
	uint64_t run, number;
};

struct survivor {
	struct kills *kills;
	struct broker_options options;
	char directory[32];
	struct broker *broker;
	struct dray_port *port;
	_Atomic uint64_t *published; /* of each run, by its sender; shared */
	uint64_t run, next;	     /* the run that packets come from now; the number that comes next */
	uint64_t runs;		     /* started */
	uint64_t starved;	     /* bench_starved_ns when this turn began */
};

static void die(const char *what)
{
	fprintf(stderr, "bench: kill: %s\n", what);
	exit(1);
}

/* A peer, in its own process: sends what it can, takes what comes, until it is killed. */
static _Noreturn void peer(const struct survivor *s, uint64_t run)
{
	struct dray_options o = {.size = sizeof(o), .directory = s->directory};
	struct dray_port *port;
	struct dray_pkt p[BURST];
	uint64_t number = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_pin(1);
	while (dray_open("b", &o, &port))
		usleep(200);
	for (unsigned turn = 0;; turn++) {
		unsigned n = dray_tx_alloc(port, 0, p, BURST, 64);

		for (unsigned i = 0; i < n; i++) {
			*(struct load *)p[i].data = (struct load){run, number + i};
			p[i].length = 64;
		}
		number += dray_tx_burst(port, 0, p, n);
		atomic_store_explicit(&s->published[run], number, memory_order_release);
		dray_release(p, dray_rx_burst(port, 0, p, BURST));
		if (turn % 64 == 0 || n == 0)
			dray_service(port);
	}
}

static pid_t start_peer(struct survivor *s)
{
	uint64_t run = ++s->runs;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0)
		peer(s, run);
	return pid;
}

static void took(struct survivor *s, uint64_t since)
{
	uint64_t ns = clock_ns() - since;

	if (ns > s->kills->longest) {
		s->kills->longest = ns;
		s->kills->starved = bench_starved_ns() - s->starved;
	}
	s->kills->stalls += ns > STALL_NS;
}

static void check(struct survivor *s, const struct load *load)
{
	if (load->run != s->run) {
		/* What a run had published comes before anything of the next. */
		uint64_t published = s->run ? atomic_load_explicit(&s->published[s->run], memory_order_acquire) : 0;

		s->kills->packets += s->next;
		if (published > s->next)
			s->kills->lost += published - s->next;
		s->kills->lost += load->run < s->run;
		s->run = load->run;
		s->next = 0;
	}
	s->kills->lost += load->number != s->next;
	s->next = load->number + 1;
}

/* One turn of the survivor's life: send, receive, service; each call is timed. */
static void live(struct survivor *s)
{
	struct dray_pkt p[BURST];
	uint64_t since;
	unsigned n;

	s->starved = bench_starved_ns();
	since = clock_ns();
	n = dray_tx_alloc(s->port, 0, p, BURST, 64);
	took(s, since);
	for (unsigned i = 0; i < n; i++)
		p[i].length = 64;
	since = clock_ns();
	dray_release(p, n - dray_tx_burst(s->port, 0, p, n));
	took(s, since);
	since = clock_ns();
	n = dray_rx_burst(s->port, 0, p, BURST);
	took(s, since);
	for (unsigned i = 0; i < n; i++)
		check(s, p[i].data);
	since = clock_ns();
	dray_release(p, n);
	dray_service(s->port);
	took(s, since);
}

static void live_until_traffic(struct survivor *s, uint64_t run, uint64_t packets)
{
	uint64_t end = clock_ns() + GIVE_UP_NS;

	while (s->run != run || s->next < packets) {
		live(s);
		if (clock_ns() > end)
			die("no traffic with the successor for 20 s");
	}
}

/* Nothing of older generations stays mapped, and every buffer of the present one can be had. */
static void look_for_leaks(struct survivor *s)
{
	static struct dray_pkt all[SLOTS];
	struct dray_stats stats = {.size = sizeof(stats)};
	uint64_t end = clock_ns() + LEAK_NS;
	unsigned n;

	for (;;) {
		live(s);
		n = dray_tx_alloc(s->port, 0, all, SLOTS, 64);
		dray_release(all, n);
		dray_stats(s->port, DRAY_ALL_QUEUES, &stats);
		if (n == SLOTS && stats.maps == 1 && stats.held == 0)
			return;
		if (clock_ns() > end)
			break;
		for (uint64_t pause = clock_ns() + 20000; clock_ns() < pause;)
			clock_relax(); /* the peer has to return what this turn sent */
		dray_service(s->port);
	}
	s->kills->leaked += SLOTS - n + stats.held + (stats.maps > 1 ? stats.maps - 1 : 0);
}

static void begin(struct survivor *s, struct kills *kills)
{
	size_t size = (3 * (size_t)kills->rounds + 4) * sizeof(*s->published);
	struct dray_options o = {.size = sizeof(o)};

	*s = (struct survivor){.kills = kills, .directory = "/tmp/dray-bench-XXXXXX"};
	s->published = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->published == MAP_FAILED || !mkdtemp(s->directory))
		die("memory, or a directory in /tmp");
	s->options = (struct broker_options){.directory = s->directory};
	s->options.geometry.pkt_slots = SLOTS;
	s->options.geometry.ring_size = 2 * SLOTS;
	bench_unpin();
	s->broker = broker_fork(&s->options);
	o.directory = s->directory;
	bench_pin(0);
	if (dray_open("a", &o, &s->port))
		die("open");
}

static void end(struct survivor *s)
{
	static const char *const names[] = {"a", "b", "journal"};
	char path[64];

	dray_close(s->port);
	broker_stop(s->broker);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", s->directory, names[i]);
		unlink(path);
	}
	rmdir(s->directory);
	munmap((void *)s->published, (3 * (size_t)s->kills->rounds + 4) * sizeof(*s->published));
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void note(struct kills *k, unsigned round, uint64_t death)
{
	uint64_t ns = clock_ns() - death;

	k->recovery[round] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void kill_busy(struct kills *kills, bool with_broker)
{
	struct survivor s;
	pid_t victim, successor;

	begin(&s, kills);
	victim = start_peer(&s);
	for (unsigned i = 0; i < kills->rounds; i++) {
		uint64_t death;

		live_until_traffic(&s, s.runs, ENOUGH);
		if (with_broker)
			broker_stop(s.broker);
		successor = start_peer(&s);
		live(&s);
		death = clock_ns();
		kill(victim, SIGKILL);
		if (with_broker) {
			bench_unpin(); /* the broker inherits it */
			s.broker = broker_fork(&s.options);
			bench_pin(0);
		}
		live_until_traffic(&s, s.runs, 1);
		note(kills, i, death);
		waitpid(victim, NULL, 0);
		victim = successor;
		look_for_leaks(&s);
	}
	reap(victim);
	end(&s);
}

void kill_under_load(struct kills *kills)
{
	kill_busy(kills, false);
}

void kill_without_broker(struct kills *kills)
{
	kill_busy(kills, true);
}

static bool hear(int fd, enum wire_type type, struct wire_message *m, int *memfd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int fds[WIRE_MAX_FDS];
	unsigned count;

	while (poll(&p, 1, 5000) == 1 && wire_receive(fd, m, fds, &count, FROM_BROKER) == 0) {
		if (m->header.type != type)
			continue;
		if (type == WIRE_OFFER)
			*memfd = fds[0];
		return true;
	}
	return false;
}

/* Do a handshake by hand up to a step; false if the broker did not go along. */
static bool handshake(const struct survivor *s, unsigned step)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), memfd = -1;
	struct wire_message m;
	struct stat st;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/b", s->directory);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return false;
	if (step == 0)
		return true;
	wire_begin(&m, FROM_END, WIRE_HELLO, 0);
	m.hello.features = FEATURES_KNOWN;
	m.hello.port[0] = 'b';
	m.hello.clock = CLOCK_KIND_HERE;
	m.hello.tick_hz = 1000000000;
	if (wire_send(fd, &m, NULL, 0) < 0)
		return false;
	if (step == 1)
		return true;
	if (!hear(fd, WIRE_WELCOME, &m, &memfd) || step == 2)
		return step == 2;
	if (!hear(fd, WIRE_OFFER, &m, &memfd) || step == 3)
		return step == 3;
	if (fstat(memfd, &st) < 0)
		return false;
	wire_begin(&m, FROM_END, WIRE_MAPPED, m.header.generation);
	m.mapped.inode = st.st_ino;
	if (wire_send(fd, &m, NULL, 0) < 0 || step == 4)
		return step == 4;
	if (!hear(fd, WIRE_SEALED, &m, &memfd) || step == 5)
		return step == 5;
	wire_begin(&m, FROM_END, WIRE_ACTIVE, m.header.generation);
	return wire_send(fd, &m, NULL, 0) == 0;
}

/* A peer that dies by its own hand after a step: by SIGKILL if it came so far. */
static pid_t start_dying(const struct survivor *s, unsigned step)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (handshake(s, step))
			raise(SIGKILL);
		_exit(1);
	}
	return pid;
}

void kill_in_handshake(struct kills *kills, unsigned step)
{
	struct survivor s;

	begin(&s, kills);
	for (unsigned i = 0; i < kills->rounds;) {
		pid_t pid = start_dying(&s, step);
		uint64_t death;
		int status;

		while (waitpid(pid, &status, WNOHANG) == 0)
			live(&s);
		if (!WIFSIGNALED(status)) {
			usleep(200); /* the broker has not noticed yet that the one before is gone */
			continue;
		}
		death = clock_ns();
		pid = start_peer(&s);
		live_until_traffic(&s, s.runs, 1);
		note(kills, i++, death);
		look_for_leaks(&s);
		reap(pid);
	}
	end(&s);
}
