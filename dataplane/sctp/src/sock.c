/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and their sockets. */
#include "sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

#include "pump.h"
#include "real.h"
#include "start.h"
#include "wire.h"

#define FILLER 4096	   /* bytes; more than SMALLEST may hold */
#define SMALLEST 1	   /* bytes; the kernel takes its least, some 4.5 KiB */
#define WHOLE (128 * 1024) /* bytes; longer messages may come in parts */
#define END_MS 2000	   /* how long a process that ends waits for its associations */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t over;
	_Atomic(struct sock *) of[SOCK_TABLE];
	struct sock *free; /* sockets are never freed: a late call of usrsctp's finds one here */
	unsigned open;	   /* not over */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

static struct sock *allocate(void)
{
	struct sock *sock;

	pthread_mutex_lock(&table.lock);
	sock = table.free;
	if (sock)
		table.free = sock->next_free;
	pthread_mutex_unlock(&table.lock);
	if (!sock) {
		sock = calloc(1, sizeof(*sock));
		if (!sock)
			return NULL;
		pthread_mutex_init(&sock->lock, NULL);
		pthread_mutex_init(&sock->reading, NULL);
		pthread_cond_init(&sock->changed, NULL);
	}
	return sock;
}

static void reset(struct sock *sock)
{
	sock->listening = sock->token = sock->connecting = sock->linked = sock->plugged = false;
	sock->bound = sock->wants_rcvinfo = false;
	memset(sock->events, 0, sizeof(sock->events));
	sock->error = sock->lost_error = 0;
	sock->lost = 0;
	sock->wire_port = 0;
	sock->receive_ms = sock->send_ms = -1;
	sock->unread = 0;
	sock->rest_size = sock->rest_sent = 0;
	sock->ended = sock->asked = sock->over = false;
	atomic_store(&sock->closing, false);
}

static void give_back(struct sock *sock)
{
	pthread_mutex_lock(&table.lock);
	sock->next_free = table.free;
	table.free = sock;
	pthread_mutex_unlock(&table.lock);
}

static void upcall(struct socket *so, void *argument, int flags)
{
	(void)so;
	(void)flags;
	pump_mark(argument);
}

/* What each socket of usrsctp has. */
static int prepare(struct sock *sock)
{
	int on = 1, whole = WHOLE; /* NODELAY: see README.md */
	struct sctp_event event = {
		.se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = SCTP_ASSOC_CHANGE, .se_on = 1};
	struct sctp_udpencaps udp = {.sue_address.ss_family = AF_INET,
				     .sue_port = htons((uint16_t)start_udp_port())};

	if (usrsctp_set_non_blocking(sock->so, 1) < 0 ||
	    usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof(event)) < 0 ||
	    usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof(on)) < 0 ||
	    usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on)) < 0 ||
	    usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_PARTIAL_DELIVERY_POINT, &whole,
			       sizeof(whole)) < 0)
		return -1;
	/* As Linux: peers with IPv4 addresses have mapped ones on an IPv6 socket. */
	if (sock->family == AF_INET6 &&
	    usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_I_WANT_MAPPED_V4_ADDR, &on,
			       sizeof(on)) < 0)
		return -1;
	if (udp.sue_port && usrsctp_setsockopt(sock->so, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT,
					       &udp, sizeof(udp)) < 0)
		return -1;
	return usrsctp_set_upcall(sock->so, upcall, sock);
}

/* The application's end is close-on-exec too: it means nothing to another program. */
static int pair(int flags, int ends[2])
{
	int smallest = SMALLEST;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	if (ends[0] >= SOCK_TABLE) {
		errno = EMFILE;
	} else if (REAL(setsockopt)(ends[0], SOL_SOCKET, SO_SNDBUF, &smallest, sizeof(smallest)) ==
			   0 &&
		   REAL(fcntl)(ends[0], F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0) == 0) {
		return 0;
	}
	REAL(close)(ends[0]);
	REAL(close)(ends[1]);
	ends[0] = ends[1] = -1;
	return -1;
}

static void enter(struct sock *sock, int fd)
{
	pthread_mutex_lock(&table.lock);
	sock->fds = 1;
	sock->calls = 0;
	table.open++;
	atomic_store_explicit(&table.of[fd], sock, memory_order_release);
	pthread_mutex_unlock(&table.lock);
}

static void abandon(struct sock *sock, const int ends[2])
{
	int error = errno;

	if (sock->so)
		usrsctp_close(sock->so);
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= 0)
			REAL(close)(ends[i]);
	}
	give_back(sock);
	errno = error;
}

int sock_open(int family, int style, int flags, struct socket *so)
{
	struct sock *sock = allocate();
	int ends[2] = {-1, -1};

	if (!sock) {
		if (so)
			usrsctp_close(so);
		errno = ENOMEM;
		return -1;
	}
	reset(sock);
	sock->family = family;
	sock->style = style;
	sock->linked = so != NULL;
	sock->so = so ? so : usrsctp_socket(family, style, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!sock->so || pair(flags, ends) < 0 || prepare(sock) < 0)
		goto failed;
	sock->lib = ends[1];
	errno = -pump_add(sock);
	if (errno != 0)
		goto failed;
	enter(sock, ends[0]);
	/* What came before the first call of upcall. */
	pump_mark(sock);
	return ends[0];
failed:
	abandon(sock, ends);
	return -1;
}

struct sock *sock_get(int fd)
{
	struct sock *sock;

	/* Most descriptors are none of this library. Partner: enter, sock_share. */
	if (fd < 0 || fd >= SOCK_TABLE ||
	    !atomic_load_explicit(&table.of[fd], memory_order_acquire))
		return NULL;
	pthread_mutex_lock(&table.lock);
	sock = atomic_load(&table.of[fd]);
	if (sock)
		sock->calls++;
	pthread_mutex_unlock(&table.lock);
	return sock;
}

void sock_put(struct sock *sock)
{
	bool last;

	pthread_mutex_lock(&table.lock);
	last = --sock->calls == 0 && sock->fds == 0;
	pthread_mutex_unlock(&table.lock);
	if (last)
		pump_mark(sock);
}

int sock_share(struct sock *sock, int fd)
{
	if (fd < 0)
		return fd;
	if (fd >= SOCK_TABLE) {
		REAL(close)(fd);
		errno = EMFILE;
		return -1;
	}
	pthread_mutex_lock(&table.lock);
	sock->fds++;
	atomic_store_explicit(&table.of[fd], sock, memory_order_release);
	pthread_mutex_unlock(&table.lock);
	return fd;
}

bool sock_drop(int fd)
{
	struct sock *sock;
	bool last = false;

	if (fd < 0 || fd >= SOCK_TABLE ||
	    !atomic_load_explicit(&table.of[fd], memory_order_acquire))
		return false;
	pthread_mutex_lock(&table.lock);
	sock = atomic_load(&table.of[fd]);
	atomic_store(&table.of[fd], NULL);
	if (sock)
		last = --sock->fds == 0;
	if (last)
		atomic_store(&sock->closing, true);
	pthread_mutex_unlock(&table.lock);
	if (last)
		pump_mark(sock);
	return sock != NULL;
}

void sock_plug(struct sock *sock, int fd)
{
	static const char filler[FILLER];

	pthread_mutex_lock(&sock->lock);
	if (!sock->plugged)
		sock->plugged =
			REAL(send)(fd, filler, sizeof(filler), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
	pthread_mutex_unlock(&sock->lock);
	pump_plugged();
}

void sock_unplug_locked(struct sock *sock)
{
	char filler[FILLER];

	if (!sock->plugged)
		return;
	sock->plugged = false;
	while (REAL(recv)(sock->lib, filler, sizeof(filler), MSG_DONTWAIT) > 0)
		;
}

void sock_unplug(struct sock *sock)
{
	pthread_mutex_lock(&sock->lock);
	sock_unplug_locked(sock);
	pthread_mutex_unlock(&sock->lock);
}

int sock_wait(struct sock *sock, int fd, short events, int ms)
{
	struct pollfd at = {.fd = fd, .events = events};
	int n = poll(&at, 1, ms);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -EAGAIN;
	/* Another thread closed it; the number may be another's by now. */
	return atomic_load(&sock->closing) ? -EBADF : 0;
}

void sock_bound(struct sock *sock)
{
	struct sockaddr *all;
	bool counted;

	pthread_mutex_lock(&sock->lock);
	counted = sock->bound;
	sock->bound = true;
	pthread_mutex_unlock(&sock->lock);
	if (counted || usrsctp_getladdrs(sock->so, 0, &all) <= 0)
		return;
	/* Addresses of both families have it at the same place. */
	sock->wire_port = ((struct sockaddr_in *)(void *)all)->sin_port;
	wire_bound(sock->wire_port, true);
	usrsctp_freeladdrs(all);
}

int sock_error(struct sock *sock)
{
	int error;

	pthread_mutex_lock(&sock->lock);
	error = sock->error;
	sock->error = 0;
	pthread_mutex_unlock(&sock->lock);
	return error;
}

void sock_over(struct sock *sock)
{
	pthread_mutex_lock(&table.lock);
	if (!sock->over) {
		sock->over = true;
		table.open--;
		pthread_cond_broadcast(&table.over);
	}
	pthread_mutex_unlock(&table.lock);
}

bool sock_unused(struct sock *sock)
{
	bool unused;

	pthread_mutex_lock(&table.lock);
	unused = sock->calls == 0 && sock->fds == 0;
	pthread_mutex_unlock(&table.lock);
	return unused;
}

void sock_bury(struct sock *sock)
{
	usrsctp_close(sock->so);
	if (sock->wire_port)
		wire_bound(sock->wire_port, false);
	REAL(close)(sock->lib);
	free(sock->rest);
	sock->rest = NULL;
	give_back(sock);
}

void sock_vanished(struct sock *sock)
{
	pthread_mutex_lock(&table.lock);
	for (int fd = 0; sock->fds > 0 && fd < SOCK_TABLE; fd++) {
		if (atomic_load(&table.of[fd]) != sock)
			continue;
		atomic_store(&table.of[fd], NULL);
		sock->fds--;
	}
	atomic_store(&sock->closing, true);
	pthread_mutex_unlock(&table.lock);
}

void sock_end_all(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_MS / 1000;
	pthread_mutex_lock(&table.lock);
	for (int fd = 0; fd < SOCK_TABLE; fd++) {
		struct sock *sock = atomic_load(&table.of[fd]);

		if (!sock)
			continue;
		atomic_store(&sock->closing, true);
		pump_mark(sock);
	}
	while (table.open > 0 && pthread_cond_timedwait(&table.over, &table.lock, &until) == 0)
		;
	pthread_mutex_unlock(&table.lock);
}

void sock_before_fork(void)
{
	pthread_mutex_lock(&table.lock);
}

/* The child must neither read what is its parent's nor keep the connection from ending. */
static void kill_copies(void)
{
	int dead = REAL(socket)(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int fd = 0; fd < SOCK_TABLE; fd++) {
		struct sock *sock = atomic_load(&table.of[fd]);

		if (!sock)
			continue;
		REAL(close)(sock->lib);
		if (dead >= 0)
			REAL(dup3)(dead, fd, O_CLOEXEC);
		atomic_store(&table.of[fd], NULL);
	}
	if (dead >= 0)
		REAL(close)(dead);
}

void sock_after_fork(bool child)
{
	if (child)
		kill_copies();
	pthread_mutex_unlock(&table.lock);
}
