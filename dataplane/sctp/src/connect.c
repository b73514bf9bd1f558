/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sockets, and how associations begin and end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <usrsctp.h>

#include "address.h"
#include "calls.h"
#include "pump.h"
#include "real.h"
#include "sock.h"

bool call_waits(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK);
}

/* usrsctp takes addresses that may be written to, but writes to none of these. */
static struct sockaddr *writable(const void *address)
{
	union {
		const void *from;
		struct sockaddr *to;
	} of = {.from = address};

	return of.to;
}

static bool is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr ==
		       INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(
		&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

int call_bind(struct sock *sock, const struct sockaddr *address, socklen_t size)
{
	if (!address_valid(address, size))
		return -EINVAL;
	if (address->sa_family != sock->family && sock->family == AF_INET)
		return -EAFNOSUPPORT;
	if (usrsctp_bind(sock->so, writable(address), address_size(address->sa_family)) < 0)
		return -errno;
	if (!is_any(address))
		sock_bound(sock);
	return 0;
}

int call_bindx(struct sock *sock, const void *addresses, size_t size, bool add)
{
	int count = address_count(addresses, size);

	if (count <= 0)
		return -EINVAL;
	if (usrsctp_bindx(sock->so, writable(addresses), count,
			  add ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR) < 0)
		return -errno;
	if (!is_any(addresses))
		sock_bound(sock);
	return 0;
}

int call_listen(struct sock *sock, int backlog)
{
	if (usrsctp_listen(sock->so, backlog) < 0)
		return -errno;
	pthread_mutex_lock(&sock->lock);
	sock->listening = backlog > 0 || sock->style == SOCK_STREAM;
	pthread_mutex_unlock(&sock->lock);
	return 0;
}

/* 0: up; -EALREADY: not yet; else what it failed with. */
static int association_state(struct sock *sock, uint32_t id)
{
	struct sctp_status status = {.sstat_assoc_id = id};
	socklen_t size = sizeof(status);

	if (usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_STATUS, &status, &size) < 0)
		return sock->lost == id && sock->lost_error ? -sock->lost_error : -ECONNREFUSED;
	if (status.sstat_state == SCTP_COOKIE_WAIT || status.sstat_state == SCTP_COOKIE_ECHOED)
		return -EALREADY;
	return 0;
}

/* A one-to-many socket: its other associations go on meanwhile, so nothing is plugged. */
static int wait_many(struct sock *sock, int fd, uint32_t id)
{
	struct timespec until;
	int state, ms;

	if (!call_waits(fd, 0))
		return -EINPROGRESS;
	pthread_mutex_lock(&sock->lock);
	ms = sock->send_ms;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	/* The pump tells of each notification; one may be for this. */
	while ((state = association_state(sock, id)) == -EALREADY) {
		if (ms < 0)
			pthread_cond_wait(&sock->changed, &sock->lock);
		else if (pthread_cond_timedwait(&sock->changed, &sock->lock, &until) != 0)
			break;
	}
	pthread_mutex_unlock(&sock->lock);
	return state == -EALREADY ? -EINPROGRESS : state;
}

static int wait_one(struct sock *sock, int fd)
{
	int result, ms;

	if (!call_waits(fd, 0))
		return -EINPROGRESS;
	pthread_mutex_lock(&sock->lock);
	ms = sock->send_ms;
	pthread_mutex_unlock(&sock->lock);
	result = sock_wait(sock, fd, POLLOUT, ms);
	if (result < 0)
		return result == -EAGAIN ? -EINPROGRESS : result;
	return -sock_error(sock);
}

static int start_one(struct sock *sock, int fd)
{
	int result = 0;

	pthread_mutex_lock(&sock->lock);
	if (sock->connecting)
		result = -EALREADY;
	else if (sock->linked)
		result = -EISCONN;
	sock->connecting = sock->connecting || result == 0;
	pthread_mutex_unlock(&sock->lock);
	if (result == 0)
		sock_plug(sock, fd);
	return result;
}

/* What connect returns. Without waiting, an answer that was that quick comes with SO_ERROR too. */
static int failed_one(struct sock *sock, int fd, int error)
{
	bool later = error == ECONNREFUSED && !call_waits(fd, 0);

	pthread_mutex_lock(&sock->lock);
	sock->connecting = false;
	sock->error = later ? error : 0;
	sock_unplug_locked(sock);
	pthread_mutex_unlock(&sock->lock);
	return later ? -EINPROGRESS : -error;
}

int call_connectx(struct sock *sock, int fd, const void *addresses, size_t size, int32_t *id)
{
	int count = address_count(addresses, size), result, error;
	sctp_assoc_t made = 0;

	if (count <= 0)
		return -EINVAL;
	if (sock->style == SOCK_STREAM) {
		result = start_one(sock, fd);
		if (result < 0)
			return result;
	}
	result = count == 1 ? usrsctp_connect(sock->so, writable(addresses), (socklen_t)size)
			    : usrsctp_connectx(sock->so, addresses, count, &made);
	error = errno;
	if (result < 0 && error != EINPROGRESS)
		return sock->style == SOCK_STREAM ? failed_one(sock, fd, error) : -error;
	if (made == 0)
		made = usrsctp_getassocid(sock->so, writable(addresses));
	if (id)
		*id = (int32_t)made;
	pump_mark(sock); /* it may have gone well already */
	return sock->style == SOCK_STREAM ? wait_one(sock, fd) : wait_many(sock, fd, made);
}

int call_connect(struct sock *sock, int fd, const struct sockaddr *address, socklen_t size)
{
	if (!address_valid(address, size))
		return -EINVAL;
	return call_connectx(sock, fd, address, address_size(address->sa_family), NULL);
}

/*
 * What accept takes, if there is one, and its peer's address, which only usrsctp_accept knows for
 * sure: right afterwards the association may be gone. The byte on the pair says whether there are
 * more.
 */
static struct socket *take(struct sock *sock, int fd, struct sockaddr_storage *peer)
{
	socklen_t size = sizeof(*peer);
	struct socket *so;
	char byte;
	int error;

	pthread_mutex_lock(&sock->lock);
	so = usrsctp_accept(sock->so, (struct sockaddr *)peer, &size);
	error = errno;
	if (sock->token && !(usrsctp_get_events(sock->so) & SCTP_EVENT_READ))
		sock->token = REAL(recv)(fd, &byte, 1, MSG_DONTWAIT) != 1;
	pthread_mutex_unlock(&sock->lock);
	pump_mark(sock);
	errno = error;
	return so;
}

/* What an accepted socket has of its listener. */
static void inherit(struct sock *listener, int fd)
{
	struct sock *accepted = sock_get(fd);

	if (!accepted)
		return;
	if (listener->bound)
		sock_bound(accepted);
	sock_put(accepted);
}

int call_accept(struct sock *sock, int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	struct sockaddr_storage peer = {0};
	struct socket *so;
	int made, result;

	if (sock->style != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC) || !sock->listening)
		return -EINVAL;
	while (!(so = take(sock, fd, &peer))) {
		if (errno != EAGAIN || !call_waits(fd, 0))
			return -errno;
		result = sock_wait(sock, fd, POLLIN, sock->receive_ms);
		if (result < 0)
			return result;
	}
	made = sock_open(sock->family, SOCK_STREAM, flags, so);
	if (made < 0)
		return -errno;
	inherit(sock, made);
	peer = address_for(sock->family, &peer);
	address_give((struct sockaddr *)&peer, address, size);
	return made;
}

int call_peeloff(struct sock *sock, int32_t id, int flags)
{
	struct socket *so;
	int made;

	if (sock->style != SOCK_SEQPACKET)
		return -EINVAL;
	so = usrsctp_peeloff(sock->so, (sctp_assoc_t)id);
	if (!so)
		return -errno;
	made = sock_open(sock->family, SOCK_STREAM, flags, so);
	if (made < 0)
		return -errno;
	inherit(sock, made);
	return made;
}

/* As in Linux, SHUT_RD does nothing. */
int call_shutdown(struct sock *sock, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (sock->style != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (how == SHUT_RD)
		return 0;
	return usrsctp_shutdown(sock->so, SHUT_WR) < 0 ? -errno : 0;
}

int call_getsockname(struct sock *sock, struct sockaddr *address, socklen_t *size)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = {.in6 = {.sin6_family = (sa_family_t)sock->family}};
	struct sockaddr *all = NULL;
	int count = usrsctp_getladdrs(sock->so, 0, &all);

	pthread_mutex_lock(&sock->lock);
	if (count > 0 && (sock->bound || sock->linked) && address_size(all->sa_family) > 0)
		memcpy(&name, all, address_size(all->sa_family));
	else if (count > 0) /* bound to all: both families have the port at the same place */
		name.in.sin_port = ((struct sockaddr_in *)(void *)all)->sin_port;
	pthread_mutex_unlock(&sock->lock);
	if (count > 0)
		usrsctp_freeladdrs(all);
	address_give(&name.any, address, size);
	return 0;
}

/* The primary path of the only association. */
int call_getpeername(struct sock *sock, struct sockaddr *address, socklen_t *size)
{
	struct sctp_status status = {0};
	struct sockaddr_storage name;
	socklen_t length = sizeof(status);

	if (sock->style != SOCK_STREAM ||
	    usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0 ||
	    address_size(status.sstat_primary.spinfo_address.ss_family) == 0)
		return -ENOTCONN;
	name = address_for(sock->family, &status.sstat_primary.spinfo_address);
	address_give((struct sockaddr *)&name, address, size);
	return 0;
}
