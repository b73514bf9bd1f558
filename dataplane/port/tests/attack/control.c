/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the broker through the socket of a port: garbage, good messages in a wrong order, floods,
 * half-open connections, descriptors that make close wait, and hanging up at any time.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "attack.h"
#include "linger.h"
#include "scribble.h"
#include "test.h"

#define OPEN 24	      /* connections at once */
#define DEAF_EVERY 32 /* waiting sockets of one deaf server */

struct attacker {
	const char *port;
	struct tally *tally;
	uint64_t seed;
	int open[OPEN];
	unsigned waiting;
};

static uint64_t any(struct attacker *a)
{
	return scribble_random(&a->seed);
}

static int connection(struct attacker *a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unsigned which = (unsigned)(any(a) % OPEN);

	if (a->open[which] >= 0 && any(a) % 8)
		return a->open[which];
	if (a->open[which] >= 0)
		close(a->open[which]); /* at whatever point it is */
	a->open[which] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", attack_directory(), a->port);
	(void)!connect(a->open[which], (struct sockaddr *)&address, sizeof(address));
	return a->open[which];
}

static int descriptor(struct attacker *a)
{
	int fd;

	if (any(a) % 2)
		return any(a) % 2 ? memfd_create("attack", MFD_ALLOW_SEALING | MFD_CLOEXEC)
				  : open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (++a->waiting % DEAF_EVERY == 0) {
		deaf_end();
		deaf_begin();
	}
	fd = waiting_socket();
	if (any(a) % 8 == 0)
		stop_waiting(fd);
	return fd;
}

/* A well-formed message of any type, and most of the time with plausible fields. */
static void message(struct attacker *a, struct wire_message *m)
{
	enum wire_type type = (enum wire_type)(1 + any(a) % (WIRE_TYPES - 1));

	wire_begin(m, any(a) % 8 ? FROM_END : FROM_BROKER, type, (uint32_t)any(a) % 4);
	if (any(a) % 4 == 0)
		for (uint32_t i = 0; i < m->header.length; i++)
			m->raw[i] = (uint8_t)any(a);
	if (type == WIRE_HELLO && any(a) % 8) {
		m->hello.features = any(a) % 4 ? FEATURES_KNOWN : any(a);
		strcpy(m->hello.port, a->port);
		m->hello.flags = (uint32_t)any(a) % 2;
		m->hello.mode = (uint32_t)any(a) % 4;
		m->hello.queues = (uint32_t)any(a) % 20;
	}
	if (any(a) % 16 == 0)
		((uint8_t *)m)[any(a) % sizeof(*m)] ^= (uint8_t)any(a);
}

static void say(struct attacker *a, int fd)
{
	unsigned count = any(a) % 16 ? 0 : (unsigned)any(a) % (WIRE_MAX_FDS + 1);
	struct wire_message m = {0};
	int fds[WIRE_MAX_FDS];

	message(a, &m);
	if (m.header.length > sizeof(m.raw))
		m.header.length = sizeof(m.raw);
	for (unsigned i = 0; i < count; i++)
		fds[i] = descriptor(a);
	atomic_fetch_add(&a->tally->attempts, 1);
	if (wire_send(fd, &m, fds, count))
		for (unsigned i = 0; i < count; i++)
			stop_waiting(fds[i]);
	while (count)
		close(fds[--count]);
}

static void garbage(struct attacker *a, int fd)
{
	uint64_t bytes[256];

	for (unsigned i = 0; i < 256; i++)
		bytes[i] = any(a);
	atomic_fetch_add(&a->tally->attempts, 1);
	(void)!send(fd, bytes, any(a) % sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void act(struct attacker *a)
{
	int fd = connection(a);
	uint8_t answer[WIRE_MAX];

	switch (any(a) % 8) {
	case 0:
		garbage(a, fd);
		break;
	case 1:
		for (unsigned i = 0; i < 100; i++)
			say(a, fd);
		break;
	case 2:
		(void)shutdown(fd, (int)(any(a) % 3));
		break;
	case 3:
		(void)!recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		break;
	default:
		say(a, fd);
	}
}

static void life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns)
{
	struct attacker a = {.port = port, .tally = tally, .seed = seed};

	for (unsigned i = 0; i < OPEN; i++)
		a.open[i] = -1;
	deaf_begin();
	while (clock_ns() < until_ns)
		act(&a);
	deaf_end();
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
