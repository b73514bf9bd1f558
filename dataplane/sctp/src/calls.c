/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libc that this library replaces: sockets and descriptors. On what is none of its
 * sockets they are libc's. libsctp's functions (sctp_bindx and the like) call these.
 */
/* libc's other forms of these functions would be in the way of their definitions. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "real.h"
#include "sock.h"
#include "start.h"

#define PUBLIC __attribute__((visibility("default")))

/* The result of a call on a socket of this library, which is let go of. */
static int done(struct sock *sock, int result)
{
	sock_put(sock);
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

PUBLIC int socket(int domain, int type, int protocol)
{
	int style = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), started;
	bool ours = (style == SOCK_STREAM && protocol == IPPROTO_SCTP) ||
		    (style == SOCK_SEQPACKET && (protocol == IPPROTO_SCTP || protocol == 0));

	if ((domain != AF_INET && domain != AF_INET6) || !ours)
		return REAL(socket)(domain, type, protocol);
	started = start();
	if (started == 0)
		return REAL(socket)(domain, type, protocol);
	if (started > 0)
		return sock_open(domain, style, type, NULL);
	errno = -started;
	return -1;
}

PUBLIC int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_bind(sock, address, size)) : REAL(bind)(fd, address, size);
}

PUBLIC int listen(int fd, int backlog)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_listen(sock, backlog)) : REAL(listen)(fd, backlog);
}

PUBLIC int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_connect(sock, fd, address, size))
		    : REAL(connect)(fd, address, size);
}

PUBLIC int accept(int fd, struct sockaddr *address, socklen_t *size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_accept(sock, fd, address, size, 0))
		    : REAL(accept)(fd, address, size);
}

PUBLIC int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_accept(sock, fd, address, size, flags))
		    : REAL(accept4)(fd, address, size, flags);
}

PUBLIC int shutdown(int fd, int how)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_shutdown(sock, how)) : REAL(shutdown)(fd, how);
}

PUBLIC int getsockname(int fd, struct sockaddr *address, socklen_t *size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_getsockname(sock, address, size))
		    : REAL(getsockname)(fd, address, size);
}

PUBLIC int getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_getpeername(sock, address, size))
		    : REAL(getpeername)(fd, address, size);
}

PUBLIC int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_setsockopt(sock, fd, level, option, value, size))
		    : REAL(setsockopt)(fd, level, option, value, size);
}

PUBLIC int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_getsockopt(sock, fd, level, option, value, size))
		    : REAL(getsockopt)(fd, level, option, value, size);
}

PUBLIC int close(int fd)
{
	sock_drop(fd);
	return REAL(close)(fd);
}

/* What is closed in one go. */
static void drop_range(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < SOCK_TABLE; fd++)
		sock_drop((int)fd);
}

PUBLIC int close_range(unsigned first, unsigned last, int flags)
{
	/* With a flag they stay open: CLOSE_RANGE_CLOEXEC marks them as they are already. */
	if (flags == 0)
		drop_range(first, last);
	return REAL(close_range)(first, last, flags);
}

PUBLIC void closefrom(int first)
{
	drop_range(first > 0 ? (unsigned)first : 0, SOCK_TABLE);
	REAL(closefrom)(first);
}

PUBLIC int dup(int fd)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, sock_share(sock, REAL(dup)(fd))) : REAL(dup)(fd);
}

PUBLIC int dup3(int fd, int to, int flags)
{
	struct sock *sock = sock_get(fd);

	if (fd != to)
		sock_drop(to);
	return sock ? done(sock, sock_share(sock, REAL(dup3)(fd, to, flags)))
		    : REAL(dup3)(fd, to, flags);
}

PUBLIC int dup2(int fd, int to)
{
	struct sock *sock;

	if (fd == to)
		return REAL(dup2)(fd, to);
	sock = sock_get(fd);
	sock_drop(to);
	return sock ? done(sock, sock_share(sock, REAL(dup2)(fd, to))) : REAL(dup2)(fd, to);
}

/* Of all its commands, two make another descriptor. */
static int duplicate(int fd, int command, void *argument)
{
	struct sock *sock = sock_get(fd);
	int made = REAL(fcntl)(fd, command, argument);

	return sock ? done(sock, sock_share(sock, made)) : made;
}

PUBLIC int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return duplicate(fd, command, argument);
	return REAL(fcntl)(fd, command, argument);
}

/* Programs with 64-bit file sizes call it by this name. */
PUBLIC int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return duplicate(fd, command, argument);
	return REAL(fcntl64)(fd, command, argument);
}
