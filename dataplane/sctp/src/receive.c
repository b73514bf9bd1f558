/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: frames from the pair. A message longer than the application's buffer stays there for
 * the next call, as in Linux, and so poll goes on to report it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "address.h"
#include "calls.h"
#include "real.h"
#include "sock.h"

/* The pump, which has written the begin of a frame, gets this to go on: it may have no CPU. */
#define PART_MS 60000

/* `size` bytes, or what is there of them: 0 at the end, -EAGAIN if there is nothing. */
static ssize_t some(int fd, void *to, size_t size, int flags)
{
	ssize_t n = REAL(recv)(fd, to, size, MSG_DONTWAIT | flags);

	return n < 0 ? -errno : n;
}

/* All of them, of a frame of which the beginning was there. */
static ssize_t all(struct sock *sock, int fd, char *to, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = some(fd, to + have, size - have, 0);

		if (n == -EAGAIN)
			n = sock_wait(sock, fd, POLLIN, PART_MS);
		else if (n == 0)
			n = -ECONNRESET;
		if (n < 0 && n != -EINTR)
			return n;
		if (n > 0)
			have += (size_t)n;
	}
	return (ssize_t)size;
}

/* The next frame's head, if none is begun: 1, 0 at the end, -errno. */
static int begin(struct sock *sock, int fd)
{
	char *head = (char *)&sock->frame;
	ssize_t n;

	if (sock->unread > 0)
		return 1;
	n = some(fd, head, sizeof(sock->frame), 0);
	if (n <= 0)
		return (int)n;
	if ((size_t)n < sizeof(sock->frame)) {
		n = all(sock, fd, head + n, sizeof(sock->frame) - (size_t)n);
		if (n < 0)
			return (int)n;
	}
	sock->unread = sock->frame.length;
	return 1;
}

/* The frame's data into the message's buffers. */
static ssize_t fill(struct sock *sock, int fd, const struct msghdr *message)
{
	size_t done = 0;

	for (size_t i = 0; i < message->msg_iovlen && sock->unread > 0; i++) {
		size_t want = message->msg_iov[i].iov_len;
		ssize_t n;

		if (want > sock->unread)
			want = sock->unread;
		n = all(sock, fd, message->msg_iov[i].iov_base, want);
		if (n < 0) {
			sock->unread = 0;
			return n;
		}
		sock->unread -= (uint32_t)want;
		done += want;
	}
	return (ssize_t)done;
}

/* MSG_PEEK: the same, and it all stays. */
static ssize_t peek(struct sock *sock, int fd, const struct msghdr *message)
{
	size_t want = message->msg_iovlen > 0 ? message->msg_iov[0].iov_len : 0;

	if (want > sock->unread)
		want = sock->unread;
	return want > 0 ? some(fd, message->msg_iov[0].iov_base, want, MSG_PEEK) : 0;
}

static void add_control(struct msghdr *message, size_t *used, int type, const void *data,
			size_t size)
{
	struct cmsghdr *control;

	if (*used + CMSG_SPACE(size) > message->msg_controllen) {
		message->msg_flags |= MSG_CTRUNC;
		return;
	}
	control = (struct cmsghdr *)(void *)((char *)message->msg_control + *used);
	*control = (struct cmsghdr){
		.cmsg_level = IPPROTO_SCTP, .cmsg_type = type, .cmsg_len = CMSG_LEN(size)};
	memcpy(CMSG_DATA(control), data, size);
	*used += CMSG_SPACE(size);
}

/* What is said of a message besides its data. */
static void describe(struct sock *sock, struct msghdr *message)
{
	const struct k_rcvinfo *info = &sock->frame.info;
	struct k_sndrcvinfo old = {.stream = info->sid,
				   .ssn = info->ssn,
				   .flags = info->flags,
				   .ppid = info->ppid,
				   .context = info->context,
				   .tsn = info->tsn,
				   .cumtsn = info->cumtsn,
				   .assoc_id = info->assoc_id};
	bool wants_old, wants_new;
	size_t used = 0;

	message->msg_flags = sock->frame.flags & K_MSG_NOTIFICATION;
	if (sock->unread == 0)
		message->msg_flags |= sock->frame.flags & MSG_EOR;
	if (message->msg_name && address_size(sock->frame.from.ss_family) > 0)
		address_give((struct sockaddr *)&sock->frame.from, message->msg_name,
			     &message->msg_namelen);
	else
		message->msg_namelen = 0;
	pthread_mutex_lock(&sock->lock);
	wants_old = sock->events[K_DATA_IO - K_BASE] != 0;
	wants_new = sock->wants_rcvinfo;
	pthread_mutex_unlock(&sock->lock);
	if (message->msg_control && !(message->msg_flags & K_MSG_NOTIFICATION)) {
		if (wants_new)
			add_control(message, &used, K_RCVINFO, info, sizeof(*info));
		if (wants_old)
			add_control(message, &used, K_SNDRCV, &old, sizeof(old));
	}
	message->msg_controllen = used;
}

/* One message, or a part: its size, 0 at the end, -EAGAIN if there is none. */
static ssize_t take(struct sock *sock, int fd, struct msghdr *message, int flags)
{
	ssize_t n;

	pthread_mutex_lock(&sock->reading);
	n = begin(sock, fd);
	if (n > 0) {
		n = flags & MSG_PEEK ? peek(sock, fd, message) : fill(sock, fd, message);
		if (n >= 0)
			describe(sock, message);
	} else if (n == 0) {
		message->msg_flags = 0;
		message->msg_controllen = 0;
		message->msg_namelen = 0;
		n = -sock_error(sock);
	}
	pthread_mutex_unlock(&sock->reading);
	return n;
}

ssize_t call_receive(struct sock *sock, int fd, struct msghdr *message, int flags)
{
	bool waits = call_waits(fd, flags), connected;
	ssize_t n;
	int ms;

	pthread_mutex_lock(&sock->lock);
	connected =
		sock->style == SOCK_SEQPACKET || sock->linked || sock->connecting || sock->error;
	ms = sock->receive_ms;
	pthread_mutex_unlock(&sock->lock);
	if (!connected || (sock->listening && sock->style == SOCK_STREAM))
		return -ENOTCONN;
	/* Other flags do nothing, as in Linux: sctp_recvmsg passes on what its caller's variable
	 * held. */
	while ((n = take(sock, fd, message, flags)) == -EAGAIN && waits) {
		int result = sock_wait(sock, fd, POLLIN, ms);

		if (result < 0)
			return result;
	}
	return n;
}
