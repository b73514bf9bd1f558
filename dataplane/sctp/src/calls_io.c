/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libc that this library replaces: sending and receiving. */
/* libc's other forms of these functions would be in the way of their definitions. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls.h"
#include "real.h"
#include "sock.h"

#define PUBLIC __attribute__((visibility("default")))

static ssize_t done(struct sock *sock, ssize_t result)
{
	sock_put(sock);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* These take data that the functions promise to leave alone. */
static void *writable(const void *data)
{
	union {
		const void *from;
		void *to;
	} of = {.from = data};

	return of.to;
}

static ssize_t send_one(struct sock *sock, int fd, const void *data, size_t size, int flags,
			const struct sockaddr *to, socklen_t to_size)
{
	struct iovec part = {writable(data), size};
	struct msghdr message = {.msg_name = writable(to),
				 .msg_namelen = to_size,
				 .msg_iov = &part,
				 .msg_iovlen = 1};

	return done(sock, call_send(sock, fd, &message, flags));
}

static ssize_t receive_one(struct sock *sock, int fd, void *to, size_t size, int flags,
			   struct sockaddr *from, socklen_t *from_size)
{
	struct iovec part = {to, size};
	struct msghdr message = {.msg_name = from,
				 .msg_namelen = from_size ? *from_size : 0,
				 .msg_iov = &part,
				 .msg_iovlen = 1};
	ssize_t n = call_receive(sock, fd, &message, flags);

	if (n >= 0 && from_size)
		*from_size = message.msg_namelen;
	return done(sock, n);
}

PUBLIC ssize_t send(int fd, const void *data, size_t size, int flags)
{
	struct sock *sock = sock_get(fd);

	return sock ? send_one(sock, fd, data, size, flags, NULL, 0)
		    : REAL(send)(fd, data, size, flags);
}

PUBLIC ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size)
{
	struct sock *sock = sock_get(fd);

	return sock ? send_one(sock, fd, data, size, flags, to, to_size)
		    : REAL(sendto)(fd, data, size, flags, to, to_size);
}

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_send(sock, fd, message, flags))
		    : REAL(sendmsg)(fd, message, flags);
}

PUBLIC ssize_t write(int fd, const void *data, size_t size)
{
	struct sock *sock = sock_get(fd);

	return sock ? send_one(sock, fd, data, size, 0, NULL, 0) : REAL(write)(fd, data, size);
}

PUBLIC ssize_t writev(int fd, const struct iovec *parts, int count)
{
	struct sock *sock = sock_get(fd);
	struct msghdr message = {.msg_iov = writable(parts), .msg_iovlen = (size_t)count};

	if (!sock)
		return REAL(writev)(fd, parts, count);
	return done(sock, count < 0 ? -EINVAL : call_send(sock, fd, &message, 0));
}

PUBLIC ssize_t recv(int fd, void *to, size_t size, int flags)
{
	struct sock *sock = sock_get(fd);

	return sock ? receive_one(sock, fd, to, size, flags, NULL, NULL)
		    : REAL(recv)(fd, to, size, flags);
}

PUBLIC ssize_t recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
			socklen_t *from_size)
{
	struct sock *sock = sock_get(fd);

	return sock ? receive_one(sock, fd, to, size, flags, from, from_size)
		    : REAL(recvfrom)(fd, to, size, flags, from, from_size);
}

PUBLIC ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct sock *sock = sock_get(fd);

	return sock ? done(sock, call_receive(sock, fd, message, flags))
		    : REAL(recvmsg)(fd, message, flags);
}

PUBLIC ssize_t read(int fd, void *to, size_t size)
{
	struct sock *sock = sock_get(fd);

	return sock ? receive_one(sock, fd, to, size, 0, NULL, NULL) : REAL(read)(fd, to, size);
}

PUBLIC ssize_t readv(int fd, const struct iovec *parts, int count)
{
	struct sock *sock = sock_get(fd);
	struct msghdr message = {.msg_iov = writable(parts), .msg_iovlen = (size_t)count};

	if (!sock)
		return REAL(readv)(fd, parts, count);
	return done(sock, count < 0 ? -EINVAL : call_receive(sock, fd, &message, 0));
}

/* The first message of several: a caller must reckon with fewer than it gave. */
PUBLIC int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	struct sock *sock = sock_get(fd);
	ssize_t n;

	if (!sock)
		return REAL(sendmmsg)(fd, messages, count, flags);
	if (count == 0)
		return (int)done(sock, 0);
	n = done(sock, call_send(sock, fd, &messages->msg_hdr, flags));
	messages->msg_len = n > 0 ? (unsigned)n : 0;
	return n < 0 ? -1 : 1;
}

PUBLIC int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
		    struct timespec *timeout)
{
	struct sock *sock = sock_get(fd);
	ssize_t n;

	if (!sock)
		return REAL(recvmmsg)(fd, messages, count, flags, timeout);
	if (count == 0)
		return (int)done(sock, 0);
	n = done(sock, call_receive(sock, fd, &messages->msg_hdr, flags & ~MSG_WAITFORONE));
	messages->msg_len = n > 0 ? (unsigned)n : 0;
	return n < 0 ? -1 : 1;
}

/* What programs compiled with _FORTIFY_SOURCE call instead. */
_Noreturn void __chk_fail(void);
PUBLIC ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
PUBLIC ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
PUBLIC ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
			      struct sockaddr *from, socklen_t *from_size);

ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
	if (size > room)
		__chk_fail();
	return read(fd, to, size);
}

ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	if (size > room)
		__chk_fail();
	return recv(fd, to, size, flags);
}

ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *from,
		       socklen_t *from_size)
{
	if (size > room)
		__chk_fail();
	return recvfrom(fd, to, size, flags, from, from_size);
}
