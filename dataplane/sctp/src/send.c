/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: directly to usrsctp, in the application's thread. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <usrsctp.h>

#include "address.h"
#include "calls.h"
#include "flags.h"
#include "sock.h"

/* What control messages say of a message. */
struct about {
	bool given;
	struct sctp_sendv_spa spa;
};

/* A message as one piece. */
struct piece {
	void *data;
	size_t size;
	void *copy; /* to free */
};

/* 0, or -EINVAL for a policy that usrsctp does not have. */
static int policy(struct about *about, uint16_t from, uint32_t value)
{
	switch (from & K_PR_MASK) {
	case 0:
		/* In Linux a lifetime alone is enough. */
		if (value == 0)
			return 0;
		about->spa.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL;
		break;
	case K_PR_TTL:
		about->spa.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL;
		break;
	case K_PR_RTX:
		about->spa.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX;
		break;
	default:
		return -EINVAL;
	}
	about->spa.sendv_prinfo.pr_value = value;
	about->spa.sendv_flags |= SCTP_SEND_PRINFO_VALID;
	return 0;
}

/* What either kind of message says; only the older one, K_SNDRCV, has a lifetime in it. */
static int read_info(struct about *about, const struct cmsghdr *control)
{
	const bool older = control->cmsg_type == K_SNDRCV;
	struct k_sndrcvinfo both = {0};
	struct k_sndinfo info;

	if (control->cmsg_len < CMSG_LEN(older ? sizeof(both) : sizeof(info)))
		return -EINVAL;
	if (older) {
		memcpy(&both, CMSG_DATA(control), sizeof(both));
		info = (struct k_sndinfo){both.stream, both.flags, both.ppid, both.context,
					  both.assoc_id};
	} else {
		memcpy(&info, CMSG_DATA(control), sizeof(info));
	}
	about->spa.sendv_sndinfo = (struct sctp_sndinfo){
		.snd_sid = info.sid,
		.snd_flags = flags_to_send(info.flags),
		.snd_ppid = info.ppid,
		.snd_context = info.context,
		.snd_assoc_id = (uint32_t)info.assoc_id,
	};
	about->spa.sendv_flags |= SCTP_SEND_SNDINFO_VALID;
	about->given = true;
	return older ? policy(about, both.flags, both.timetolive) : 0;
}

static int read_prinfo(struct about *about, const struct cmsghdr *control)
{
	struct k_prinfo info;

	if (control->cmsg_len < CMSG_LEN(sizeof(info)))
		return -EINVAL;
	memcpy(&info, CMSG_DATA(control), sizeof(info));
	about->given = true;
	return policy(about, info.policy, info.value);
}

static int read_control(struct about *about, const struct msghdr *message)
{
	struct msghdr copy = *message; /* CMSG_NXTHDR takes one that may be written to */
	int result = 0;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(&copy); at && result == 0;
	     at = CMSG_NXTHDR(&copy, at)) {
		if (at->cmsg_level != IPPROTO_SCTP)
			continue;
		if (at->cmsg_type == K_SNDRCV || at->cmsg_type == K_SNDINFO)
			result = read_info(about, at);
		else if (at->cmsg_type == K_PRINFO)
			result = read_prinfo(about, at);
		else
			result = -EINVAL;
	}
	return result;
}

static int gather(const struct msghdr *message, struct piece *piece)
{
	static char nothing[1];
	char *at;

	*piece = (struct piece){.data = nothing}; /* usrsctp takes no NULL */
	if (message->msg_iovlen == 1 && message->msg_iov[0].iov_base) {
		piece->data = message->msg_iov[0].iov_base;
		piece->size = message->msg_iov[0].iov_len;
		return 0;
	}
	for (size_t i = 0; i < message->msg_iovlen; i++)
		piece->size += message->msg_iov[i].iov_len;
	at = piece->data = piece->copy = malloc(piece->size + 1);
	if (!at)
		return -ENOBUFS;
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		memcpy(at, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		at += message->msg_iov[i].iov_len;
	}
	return 0;
}

/* Once: the bytes sent, -EAGAIN if there is no room. */
static ssize_t try(struct sock *sock, const struct piece *piece, struct sockaddr *to,
		   struct about *about)
{
	ssize_t n = usrsctp_sendv(sock->so, piece->data, piece->size, to, to ? 1 : 0,
				  about->given ? &about->spa : NULL,
				  about->given ? sizeof(about->spa) : 0,
				  about->given ? SCTP_SENDV_SPA : SCTP_SENDV_NOINFO, 0);

	if (n >= 0)
		return n;
	/* usrsctp has names of its own for a socket without an association. */
	return errno == ENOENT ? -ENOTCONN : -errno;
}

ssize_t call_send(struct sock *sock, int fd, const struct msghdr *message, int flags)
{
	struct about about = {0};
	struct sockaddr *to = message->msg_name;
	struct piece piece;
	ssize_t n = read_control(&about, message);
	int ms;

	if (n < 0)
		return n;
	if (to && message->msg_namelen > 0 && !address_valid(to, message->msg_namelen))
		return -EINVAL;
	if (message->msg_namelen == 0)
		to = NULL;
	n = gather(message, &piece);
	if (n < 0)
		return n;
	pthread_mutex_lock(&sock->lock);
	ms = sock->send_ms;
	/* Sending to an address connects: the pump looks at such a socket too. */
	if (to && sock->style == SOCK_STREAM)
		sock->linked = true;
	pthread_mutex_unlock(&sock->lock);
	while ((n = try(sock, &piece, to, &about)) == -EAGAIN) {
		sock_plug(sock, fd);
		if (!call_waits(fd, flags))
			break;
		n = sock_wait(sock, fd, POLLOUT, ms);
		if (n < 0)
			break;
	}
	free(piece.copy);
	return n;
}
