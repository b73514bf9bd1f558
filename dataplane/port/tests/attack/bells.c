/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the other end of a link through its bell: attach descriptors of every kind, those that
 * make close wait among them, flood it, send junk, never read, and hang up.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "attack.h"
#include "linger.h"
#include "scribble.h"
#include "test.h"

#define ROUND 32 /* attempts with one deaf server */

static int unix_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int one_of(uint64_t r)
{
	switch (r % 9) {
	case 0:
		return memfd_create("attack", MFD_CLOEXEC);
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return eventfd(0, EFD_CLOEXEC);
	case 3:
		return epoll_create1(EPOLL_CLOEXEC);
	case 4:
		return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	case 5:
		return inotify_init1(IN_CLOEXEC);
	case 6:
		return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	case 7:
		return open("/", O_PATH | O_CLOEXEC);
	default:
		return unix_socket();
	}
}

/* A socket that carries itself: only the kernel's collector of such sockets frees it. */
static void attach_cycle(int bell)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	(void)attach_to(pair[0], pair[1]);
	(void)attach_to(pair[1], pair[0]);
	(void)attach_to(bell, pair[0]);
	close(pair[0]);
	close(pair[1]);
}

static void flood(int bell, uint64_t r)
{
	static const char junk[4096];

	for (uint64_t i = 0; i < r % 512; i++)
		(void)!send(bell, junk, (r >> 16) % sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void ring(const struct rawend *e, uint64_t r)
{
	int bell = e->bells[0], fd;

	switch (r >> 8 & 7) {
	case 0:
		(void)attach(bell);
		break;
	case 1:
		attach_cycle(bell);
		break;
	case 2:
	case 3:
		flood(bell, r >> 16);
		break;
	case 4:
		(void)attach_to(bell, r & 1 ? bell : e->fd); /* the bell itself, the control */
		break;
	case 5:
		if (r >> 16 & 31)
			(void)!recv(bell, (char[64]){0}, 64, MSG_DONTWAIT);
		else
			(void)shutdown(bell, (int)(r % 3));
		break;
	default:
		fd = one_of(r >> 16);
		(void)attach_to(bell, fd);
		close(fd);
	}
}

static void life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns)
{
	struct rawend e = rawend_join(attack_directory(), port);

	while (clock_ns() < until_ns) {
		deaf_begin();
		for (unsigned i = 0; i < ROUND && clock_ns() < until_ns; i++) {
			ring(&e, scribble_random(&seed));
			atomic_fetch_add(&tally->attempts, 1);
			atomic_store(&e.tx.words->sender_bell.value, (uint32_t)seed);
			atomic_store(&e.rx.words->receiver_bell.value, (uint32_t)seed);
		}
		deaf_end();
	}
	rawend_leave(&e);
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
