/* SPDX-License-Identifier: Apache-2.0 */
/* A broker for tests: PROTOCOL.md, section 2, for one link, with a journal for restarts. */
#include "broker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dray.h"
#include "must.h"

#define SEALS_AT_ONCE (F_SEAL_SHRINK | F_SEAL_GROW)
#define CAPTURE_UNANSWERED -1
#define CAPTURE_UNSENT -2
#define SEALS_LIVE (SEALS_AT_ONCE | F_SEAL_SEAL | 0x10)

struct end {
	int listener, fd, telemetry;
	struct wire_hello hello;
	bool welcomed, mapped, active;
	int presented; /* the memfd that a live end brought along */
	uint32_t presented_generation;
};

struct journal {
	uint32_t generation; /* of the link; 0: none yet */
	uint32_t live;
	uint64_t inode;
	struct geometry geometry;
};

struct broker {
	struct broker_options options;
	char directory[64];
	bool own_directory;
	struct end ends[2];
	struct journal journal;
	int memfd;
	bool netdev;
	char devices[2][IFNAMSIZ];
	struct wire_capture capture;
	int capture_memfd;
	_Atomic int captured;
	int command[2];
	pthread_t thread;
	pid_t pid;
};

static char *path_of(const struct broker *b, const char *name, char path[108])
{
	snprintf(path, 108, "%s/%s", b->directory, name);
	return path;
}

static void save(const struct broker *b)
{
	char path[108];
	FILE *f = fopen(path_of(b, "journal", path), "w");

	must(f && fwrite(&b->journal, sizeof(b->journal), 1, f) == 1 && fclose(f) == 0, "journal");
}

static void load(struct broker *b)
{
	char path[108];
	FILE *f = fopen(path_of(b, "journal", path), "r");

	if (!f)
		return;
	must(fread(&b->journal, sizeof(b->journal), 1, f) == 1, "journal");
	fclose(f);
}

static int listen_at(const struct broker *b, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	path_of(b, name, address.sun_path);
	unlink(address.sun_path);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		     listen(fd, 8) == 0,
	     "listen");
	return fd;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forget(struct end *e)
{
	close_fd(&e->fd);
	close_fd(&e->presented);
	e->welcomed = e->mapped = e->active = false;
}

/*
 * One end is gone: its peer learns it, and a new generation is due when there are two again. But an
 * end that gave up waiting for its welcome dials again, and the link that it had may still live.
 */
static void end_gone(struct broker *b, unsigned i, uint32_t reason)
{
	struct end *peer = &b->ends[1 - i];
	const bool welcomed = b->ends[i].welcomed;
	struct wire_message m;

	forget(&b->ends[i]);
	if (!welcomed)
		return;
	close_fd(&b->memfd);
	if (b->journal.live && peer->welcomed) {
		wire_begin(&m, FROM_BROKER, WIRE_REBIND, b->journal.generation);
		m.rebind.reason = reason;
		(void)wire_send(peer->fd, &m, NULL, 0);
	}
	b->journal.live = 0;
	peer->mapped = peer->active = false;
	save(b);
}

static void begin_offer(struct broker *b, struct wire_message *m, unsigned i, uint32_t kind)
{
	const struct wire_hello *mine = &b->ends[i].hello, *theirs = &b->ends[1 - i].hello;
	uint32_t known = b->options.features ? (uint32_t)b->options.features : FEATURES_KNOWN;

	wire_begin(m, FROM_BROKER, WIRE_OFFER, b->journal.generation);
	m->offer.kind = kind;
	m->offer.side = i;
	m->offer.peer_mode = theirs->mode;
	m->offer.queues = b->options.queues ? b->options.queues : 1;
	if (mine->queues && mine->queues < m->offer.queues)
		m->offer.queues = mine->queues;
	if (theirs->queues && theirs->queues < m->offer.queues)
		m->offer.queues = theirs->queues;
	m->offer.features = mine->features & theirs->features & known;
	m->offer.clock = mine->clock;
}

static void offer_shm(struct broker *b)
{
	int fds[2][WIRE_MAX_FDS];
	struct wire_message m;
	struct stat st;
	uint32_t queues;

	begin_offer(b, &m, 0, DRAY_LINK_SHM);
	queues = m.offer.queues;
	struct broker_options o = b->options;
	o.queues = queues;
	b->journal.geometry = broker_geometry(&o);
	close_fd(&b->memfd);
	b->memfd = broker_memfd(b->journal.geometry.size, SEALS_AT_ONCE);
	must(fstat(b->memfd, &st) == 0, "fstat");
	b->journal.inode = st.st_ino;
	fds[0][0] = fds[1][0] = b->memfd;
	for (uint32_t q = 0; q < queues; q++) {
		int bell[2];

		must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bell) == 0,
		     "socketpair");
		fds[0][q + 1] = bell[0];
		fds[1][q + 1] = bell[1];
	}
	for (unsigned i = 0; i < 2; i++) {
		begin_offer(b, &m, i, DRAY_LINK_SHM);
		m.offer.geometry = b->journal.geometry;
		(void)wire_send(b->ends[i].fd, &m, fds[i], queues + 1);
		for (uint32_t q = 0; q < queues; q++)
			close(fds[i][q + 1]);
	}
}

static int packet_socket(const char *device)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	address.sll_ifindex = (int)if_nametoindex(device);
	must(fd >= 0 && address.sll_ifindex &&
		     bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
	     "packet socket");
	return fd;
}

static void offer_netdev(struct broker *b)
{
	for (unsigned i = 0; i < 2; i++) {
		int fd = packet_socket(b->devices[i]);
		struct wire_message m;

		begin_offer(b, &m, i, DRAY_LINK_NETDEV);
		m.offer.queues = 1;
		(void)wire_send(b->ends[i].fd, &m, &fd, 1);
		close(fd);
	}
}

static void next_generation(struct broker *b)
{
	b->journal.generation++;
	b->journal.live = 1;
	for (unsigned i = 0; i < 2; i++)
		b->ends[i].mapped = b->ends[i].active = false;
	if (b->netdev)
		offer_netdev(b);
	else
		offer_shm(b);
	save(b);
}

/* Both brought the memfd of the journal: the link goes on. */
static bool adopted(struct broker *b)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct end *e = &b->ends[i];
		struct stat st;

		if (e->presented < 0 || e->presented_generation != b->journal.generation ||
		    fstat(e->presented, &st) < 0 || st.st_ino != b->journal.inode ||
		    (uint64_t)st.st_size != b->journal.geometry.size ||
		    (fcntl(e->presented, F_GET_SEALS) & SEALS_LIVE) != SEALS_LIVE)
			return false;
	}
	return true;
}

static void say_classes(struct broker *b, struct end *e)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_CLASSES, 0);
	m.classes = b->options.classes;
	e->welcomed = e->welcomed && wire_send(e->fd, &m, NULL, 0) == 0;
}

static void welcome(struct broker *b, struct end *e, bool readopted)
{
	struct wire_message m;
	struct wire_welcome *w = &m.welcome;
	struct telemetry_header *h;
	const bool classes = e == &b->ends[0] && b->options.classes.classes;

	wire_begin(&m, FROM_BROKER, WIRE_WELCOME, readopted ? b->journal.generation : 0);
	w->features =
		e->hello.features & (b->options.features ? b->options.features : FEATURES_KNOWN);
	memcpy(w->port, e->hello.port, PORT_NAME);
	memcpy(w->mac, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)e->hello.port[0]}, 6);
	memcpy(w->ip4, (uint8_t[]){10, 0, 0, (uint8_t)(e->hello.port[0] - 'a' + 1)}, 4);
	w->ip4_prefix = 24;
	w->mtu = b->options.mtu ? b->options.mtu : 1500;
	w->queues = b->options.queues ? b->options.queues : 1;
	w->sample_shift = b->options.sample_all	    ? 0
			  : b->options.sample_shift ? b->options.sample_shift
						    : 6;
	w->hold_quota = b->options.hold_quota;
	w->hold_policy = b->options.hold_policy;
	w->telemetry_size = LAYOUT_PAGE + (uint64_t)TELEMETRY_BLOCK * w->queues;
	w->flags = (readopted ? WELCOME_READOPTED : 0) | (classes ? WELCOME_CLASSES : 0);
	close_fd(&e->telemetry);
	e->telemetry = broker_memfd(w->telemetry_size, SEALS_AT_ONCE | F_SEAL_SEAL);
	h = mmap(NULL, w->telemetry_size, PROT_READ | PROT_WRITE, MAP_SHARED, e->telemetry, 0);
	must(h != MAP_FAILED, "telemetry");
	atomic_store(&h->sample_shift, w->sample_shift);
	munmap(h, w->telemetry_size);
	e->welcomed = wire_send(e->fd, &m, &e->telemetry, 1) == 0;
	if (classes)
		say_classes(b, e);
}

static void on_hello(struct broker *b, unsigned i, const struct wire_message *m, const int *fds,
		     unsigned count)
{
	struct end *e = &b->ends[i], *peer = &b->ends[1 - i];

	e->hello = m->hello;
	e->presented = count ? fds[0] : -1;
	e->presented_generation = m->header.generation;
	if (count && !b->journal.live && m->header.generation > b->journal.generation)
		b->journal.generation =
			m->header.generation; /* generations rise even if the journal is lost */
	/*
	 * An end that is live waits for its peer to say the same, so that both are adopted or
	 * neither: unless that came, and did not.
	 */
	if (count && b->journal.live && !b->netdev && peer->presented < 0 && !peer->welcomed)
		return;
	if (adopted(b)) {
		for (unsigned k = 0; k < 2; k++) {
			welcome(b, &b->ends[k], true);
			b->ends[k].mapped = b->ends[k].active = true;
		}
		b->memfd = dup(e->presented);
		return;
	}
	welcome(b, e, false);
	if (peer->fd >= 0 && peer->hello.port[0] && !peer->welcomed)
		welcome(b, peer, false);
	if (e->welcomed && peer->welcomed)
		next_generation(b);
}

static void on_mapped(struct broker *b, unsigned i, const struct wire_message *m)
{
	struct wire_message sealed;

	if (m->header.generation != b->journal.generation || m->mapped.inode != b->journal.inode)
		return;
	b->ends[i].mapped = true;
	if (!b->ends[1 - i].mapped)
		return;
	must(fcntl(b->memfd, F_ADD_SEALS, SEALS_LIVE) == 0, "seal");
	wire_begin(&sealed, FROM_BROKER, WIRE_SEALED, b->journal.generation);
	for (unsigned k = 0; k < 2; k++)
		(void)wire_send(b->ends[k].fd, &sealed, NULL, 0);
}

static void on_end(struct broker *b, unsigned i)
{
	struct end *e = &b->ends[i];
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count;
	int ret = wire_receive(e->fd, &m, fds, &count, FROM_END);

	if (ret == -EAGAIN || ret == 1)
		return;
	if (ret < 0 || m.header.type == WIRE_ERROR || m.header.type == WIRE_BYE) {
		if (ret == 0 && m.header.type == WIRE_ERROR)
			fprintf(stderr, "test broker: end %u: error %u: %s\n", i, m.error.code,
				m.error.text);
		end_gone(b, i, ret ? REBIND_DIED : REBIND_LEFT);
	} else if (m.header.type == WIRE_HELLO) {
		on_hello(b, i, &m, fds, count);
	} else if (m.header.type == WIRE_MAPPED) {
		on_mapped(b, i, &m);
	} else if (m.header.type == WIRE_ACTIVE) {
		e->active = true;
	} else if (m.header.type == WIRE_CAPTURE) {
		atomic_store(&b->captured, (int)m.captured.error);
	}
}

static void on_listener(struct broker *b, unsigned i)
{
	struct wire_message m;
	int fd = accept4(b->ends[i].listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (b->ends[i].fd < 0) {
		b->ends[i].fd = fd;
		memset(&b->ends[i].hello, 0, sizeof(b->ends[i].hello));
		return;
	}
	wire_error(&m, FROM_BROKER, EBUSY, WIRE_HELLO, "the port is open");
	(void)wire_send(fd, &m, NULL, 0);
	close(fd);
}

static void send_capture(struct broker *b)
{
	struct wire_message m;

	wire_begin(&m, FROM_BROKER, WIRE_CAPTURE, 0);
	m.capture = b->capture;
	(void)wire_send(b->ends[0].fd, &m, &b->capture_memfd, b->capture_memfd >= 0);
	close_fd(&b->capture_memfd);
	atomic_store(&b->captured, CAPTURE_UNANSWERED);
}

static bool on_command(struct broker *b)
{
	char c;

	if (read(b->command[0], &c, 1) != 1 || c == 'q')
		return false;
	if (c == 'c') {
		send_capture(b);
		return true;
	}
	b->netdev = c == 'n';
	for (unsigned i = 0; i < 2; i++) {
		struct wire_message m;

		wire_begin(&m, FROM_BROKER, WIRE_REBIND, b->journal.generation);
		m.rebind.reason = REBIND_MOVES;
		m.rebind.next = b->netdev ? DRAY_LINK_NETDEV : DRAY_LINK_SHM;
		(void)wire_send(b->ends[i].fd, &m, NULL, 0);
	}
	next_generation(b);
	return true;
}

static void *run(void *argument)
{
	struct broker *b = argument;

	for (;;) {
		struct pollfd p[5];

		/* Ends first: whoever takes the place of a dead end finds it empty. */
		for (unsigned i = 0; i < 2; i++) {
			p[i] = (struct pollfd){.fd = b->ends[i].fd, .events = POLLIN};
			p[2 + i] = (struct pollfd){.fd = b->ends[i].listener, .events = POLLIN};
		}
		p[4] = (struct pollfd){.fd = b->command[0], .events = POLLIN};
		if (poll(p, 5, -1) < 0)
			continue;
		for (unsigned i = 0; i < 2; i++)
			if (p[i].revents)
				on_end(b, i);
		for (unsigned i = 0; i < 2; i++)
			if (!p[i].revents && p[2 + i].revents)
				on_listener(b, i);
		if (p[4].revents && !on_command(b))
			return NULL;
	}
}

/* The broker that owns a directory, and the process that does. */
static struct broker *newest;
static pid_t newest_owner;

static struct broker *make(const struct broker_options *options)
{
	struct broker *b = calloc(1, sizeof(*b));

	must(b != NULL, "memory");
	if (options)
		b->options = *options;
	if (b->options.directory) {
		snprintf(b->directory, sizeof(b->directory), "%s", b->options.directory);
	} else {
		const char *tmp = getenv("TMPDIR");

		snprintf(b->directory, sizeof(b->directory), "%s/dray-test-XXXXXX",
			 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
		must(mkdtemp(b->directory) != NULL, "directory");
		b->own_directory = true;
		newest = b;
		newest_owner = getpid();
	}
	b->memfd = b->capture_memfd = -1;
	for (unsigned i = 0; i < 2; i++) {
		b->ends[i] = (struct end){.fd = -1, .telemetry = -1, .presented = -1};
		b->ends[i].listener = listen_at(b, i ? "b" : "a");
	}
	must(pipe2(b->command, O_CLOEXEC) == 0, "pipe");
	load(b);
	return b;
}

struct broker *broker_start(const struct broker_options *options)
{
	struct broker *b = make(options);

	must(pthread_create(&b->thread, NULL, run, b) == 0, "thread");
	return b;
}

struct broker *broker_fork(const struct broker_options *options)
{
	struct broker *b = make(options);

	b->pid = fork();
	must(b->pid >= 0, "fork");
	if (b->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(b->command[1]);
		run(b);
		_exit(0);
	}
	for (unsigned i = 0; i < 2; i++)
		close_fd(&b->ends[i].listener);
	return b;
}

static void remove_directory(struct broker *b)
{
	static const char *const names[] = {"a", "b", "journal"};
	char path[108];

	for (unsigned i = 0; i < 3; i++)
		unlink(path_of(b, names[i], path));
	rmdir(b->directory);
}

void broker_clean_up(void)
{
	if (newest && newest_owner == getpid())
		remove_directory(newest);
}

void broker_stop(struct broker *b)
{
	if (newest == b)
		newest = NULL;
	if (b->pid) {
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
	} else {
		must(write(b->command[1], "q", 1) == 1, "command");
		pthread_join(b->thread, NULL);
	}
	for (unsigned i = 0; i < 2; i++) {
		forget(&b->ends[i]);
		close_fd(&b->ends[i].listener);
		close_fd(&b->ends[i].telemetry);
		close_fd(&b->command[i]);
	}
	close_fd(&b->memfd);
	if (b->own_directory)
		remove_directory(b);
	free(b);
}

const char *broker_directory(const struct broker *b)
{
	return b->directory;
}

int broker_telemetry(const struct broker *b, unsigned end)
{
	return b->ends[end].telemetry;
}

pid_t broker_pid(const struct broker *b)
{
	return b->pid;
}

void broker_move_netdev(struct broker *b, const char *device_a, const char *device_b)
{
	snprintf(b->devices[0], IFNAMSIZ, "%s", device_a);
	snprintf(b->devices[1], IFNAMSIZ, "%s", device_b);
	must(write(b->command[1], "n", 1) == 1, "command");
}

void broker_capture(struct broker *b, const struct wire_capture *start, int fd)
{
	b->capture = start ? *start : (struct wire_capture){0};
	b->capture_memfd = fd;
	atomic_store(&b->captured, CAPTURE_UNSENT);
	must(write(b->command[1], "c", 1) == 1, "command");
	while (atomic_load(&b->captured) == CAPTURE_UNSENT)
		usleep(100);
}

int broker_captured(const struct broker *b)
{
	return atomic_load(&b->captured);
}

void broker_move_shm(struct broker *b)
{
	must(write(b->command[1], "s", 1) == 1, "command");
}
