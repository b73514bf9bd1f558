/* SPDX-License-Identifier: Apache-2.0 */
/* UDP sockets: one that receives from any address, or one connected socket for each flow. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "frame.h"
#include "io.h"
#include "packet.h"

#define BUF_BYTES 65536u

struct control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(uint32_t))];
};

struct io_udp {
	struct io io;
	uint32_t headers; /* of the frames that carry its datagrams */
	unsigned batch;	  /* datagrams in one system call, at most */
	unsigned sockets;
	int fds[PACKET_FLOWS];
	unsigned receiving; /* the socket to look at next */
	int received_on;
	uint64_t drops;
	uint32_t drops_seen[PACKET_FLOWS];
	struct mmsghdr tx[UDP_BATCH], rx[UDP_BATCH];
	struct iovec tx_parts[UDP_BATCH], rx_parts[UDP_BATCH];
	union address from[UDP_BATCH];
	struct control controls[UDP_BATCH];
	uint8_t *tx_memory, *rx_memory;
};

static unsigned udp_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			  uint32_t longest)
{
	struct io_udp *p = (struct io_udp *)io;

	(void)flow;
	(void)longest;
	if (n > p->batch)
		n = p->batch;
	for (unsigned i = 0; i < n; i++) {
		bufs[i].index = i;
		bufs[i].data = p->tx_memory + (size_t)i * BUF_BYTES;
		p->tx_parts[i].iov_len = bufs[i].length;
	}
	return n;
}

static int send_messages(int fd, struct mmsghdr *messages, unsigned n)
{
	int ret = sendmmsg(fd, messages, n, MSG_DONTWAIT);

	if (ret >= 0)
		return ret;
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
}

static int udp_send(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_udp *p = (struct io_udp *)io;

	return send_messages(p->fds[flow % p->sockets], &p->tx[bufs[0].index], n);
}

static void udp_discard(struct io *io, struct io_buf *bufs, unsigned n)
{
	(void)io;
	(void)bufs;
	(void)n;
}

/* With each datagram the kernel reports how many it has dropped before, modulo 2^32. */
static void look_at_drops(struct io_udp *p, unsigned which, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		uint32_t seen;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
			continue;
		memcpy(&seen, CMSG_DATA(c), sizeof(seen));
		p->drops += seen - p->drops_seen[which];
		p->drops_seen[which] = seen;
	}
}

static int receive_from(struct io_udp *p, unsigned which, struct io_buf *bufs, unsigned n)
{
	int got;

	if (n > p->batch)
		n = p->batch;
	for (unsigned i = 0; i < n; i++) {
		p->rx[i].msg_hdr.msg_namelen = sizeof(p->from[i]);
		p->rx[i].msg_hdr.msg_controllen = sizeof(p->controls[i]);
		p->rx_parts[i].iov_len = BUF_BYTES;
	}
	got = recvmmsg(p->fds[which], p->rx, n, MSG_DONTWAIT, NULL);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED ? 0 : -errno;
	for (int i = 0; i < got; i++) {
		look_at_drops(p, which, &p->rx[i].msg_hdr);
		bufs[i] = (struct io_buf){.data = p->rx_memory + (size_t)i * BUF_BYTES,
					  .length = p->rx[i].msg_len,
					  .headers = p->headers,
					  .index = (uint32_t)i};
	}
	p->received_on = p->fds[which];
	return got;
}

static int udp_receive(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_udp *p = (struct io_udp *)io;

	for (unsigned turn = 0; turn < p->sockets; turn++) {
		unsigned which = p->receiving;
		int got = receive_from(p, which, bufs, n);

		p->receiving = (p->receiving + 1) % p->sockets;
		if (got)
			return got;
	}
	return 0;
}

static unsigned udp_reply(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_udp *p = (struct io_udp *)io;
	unsigned sent = 0;

	for (unsigned i = 0; i < n; i++) {
		struct msghdr *m = &p->rx[bufs[i].index].msg_hdr;

		p->rx_parts[bufs[i].index].iov_len = bufs[i].length;
		m->msg_controllen = 0;
	}
	while (sent < n) {
		int ret = send_messages(p->received_on, &p->rx[bufs[sent].index], n - sent);

		if (ret == 0)
			return sent;
		sent += ret > 0 ? (unsigned)ret : 0;
		/* ECONNREFUSED is the error of an earlier datagram: try again. */
		if (ret < 0 && ret != -ECONNREFUSED)
			return sent;
	}
	return sent;
}

static void udp_done(struct io *io)
{
	(void)io;
}

static int udp_wait(struct io *io, unsigned what, uint64_t until_ns)
{
	struct io_udp *p = (struct io_udp *)io;
	struct pollfd fds[PACKET_FLOWS];
	int ret;

	for (unsigned i = 0; i < p->sockets; i++)
		fds[i] = (struct pollfd){.fd = p->fds[i],
					 .events = (short)((what & IO_RX ? POLLIN : 0) |
							   (what & IO_TX ? POLLOUT : 0))};
	ret = io_poll(fds, p->sockets, until_ns);
	return ret < 0 ? ret : 0;
}

static uint64_t udp_drops(struct io *io)
{
	return ((struct io_udp *)io)->drops;
}

static void udp_close(struct io *io)
{
	struct io_udp *p = (struct io_udp *)io;

	for (unsigned i = 0; i < p->sockets; i++)
		close(p->fds[i]);
	free(p->tx_memory);
	free(p->rx_memory);
	free(p);
}

static const struct io_ops ops = {
	.alloc = udp_alloc,
	.send = udp_send,
	.discard = udp_discard,
	.receive = udp_receive,
	.reply = udp_reply,
	.done = udp_done,
	.wait = udp_wait,
	.drops = udp_drops,
	.close = udp_close,
};

static void set_buffers(int fd, uint64_t bytes)
{
	int half = (int)(bytes / 2), one = 1; /* the kernel doubles it */

	/*
	 * An unprivileged process gets at most the system's limit. Less is not an error: drops
	 * are counted.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &half, sizeof(half)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half));
	(void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
}

/* No fragments; an IPv6 socket takes no IPv4. */
static bool keep_whole(int fd, bool ip6)
{
	int whole = ip6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO, one = 1;

	if (!ip6)
		return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole)) == 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole, sizeof(whole)) == 0 &&
	       setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0;
}

/* What is sent has it in its header. The kernel's default is 0. */
static bool set_dscp(int fd, bool ip6, uint8_t dscp)
{
	int octet = dscp_octet(dscp);

	if (octet == 0)
		return true;
	return ip6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof(octet)) == 0
		   : setsockopt(fd, IPPROTO_IP, IP_TOS, &octet, sizeof(octet)) == 0;
}

/* A socket for one flow. Returns it, or -errno. */
static int open_socket(const struct options *o, unsigned flow, union address *at)
{
	uint8_t dscp = flow < o->flows ? (uint8_t)o->dscp : o->bulk.dscp;
	int fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*at);
	int error;

	if (fd < 0)
		return -errno;
	set_buffers(fd, o->buffer);
	if (keep_whole(fd, address_is6(at)) && set_dscp(fd, address_is6(at), dscp) &&
	    bind(fd, &at->any, address_length(at)) == 0 &&
	    (o->role == ROLE_SINK || connect(fd, &o->to.any, address_length(&o->to)) == 0) &&
	    getsockname(fd, &at->any, &length) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static bool make_memory(struct io_udp *p)
{
	p->tx_memory = calloc(UDP_BATCH, BUF_BYTES);
	p->rx_memory = calloc(UDP_BATCH, BUF_BYTES);
	if (!p->tx_memory || !p->rx_memory)
		return false;
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		p->tx_parts[i].iov_base = p->tx_memory + (size_t)i * BUF_BYTES;
		p->rx_parts[i].iov_base = p->rx_memory + (size_t)i * BUF_BYTES;
		p->tx[i].msg_hdr = (struct msghdr){.msg_iov = &p->tx_parts[i], .msg_iovlen = 1};
		p->rx[i].msg_hdr = (struct msghdr){.msg_iov = &p->rx_parts[i],
						   .msg_iovlen = 1,
						   .msg_name = &p->from[i],
						   .msg_control = &p->controls[i]};
	}
	return true;
}

/* Both addresses, before there is a socket. */
static bool read_addresses(const struct options *o, const char *name, union address *at,
			   struct io_error *error)
{
	const char *wrong = address_read(name, at);

	if (!wrong && address_lacks_interface(at))
		wrong = "needs its interface: [fe80::1%IFACE]:PORT";
	if (wrong) {
		io_fail(error, "udp:%s: %s %s", name, name, wrong);
		return false;
	}
	if (!io_sends(o))
		return true;
	if (address_is6(at) != address_is6(&o->to))
		io_fail(error, "udp:%s cannot send to %s: one is IPv4, the other IPv6", name,
			o->to_text);
	else if (address_lacks_interface(&o->to))
		io_fail(error, "--to: %s needs its interface: [fe80::1%%IFACE]:PORT", o->to_text);
	else
		return true;
	return false;
}

struct io *io_udp_open(const struct options *o, const char *name, struct io_error *error)
{
	struct io_udp *p;
	unsigned wanted = io_sends(o) ? o->flows + o->bulk.flows : 1;
	union address at, bound;
	char text[ADDRESS_TEXT];
	int fd = -ENOMEM;

	if (!read_addresses(o, name, &at, error))
		return NULL;
	bound = at;
	p = calloc(1, sizeof(*p));
	if (p && make_memory(p))
		while (p->sockets < wanted && (fd = open_socket(o, p->sockets, &at)) >= 0) {
			if (p->sockets == 0)
				bound = at;
			p->fds[p->sockets++] = fd;
			address_set_port(&at, 0); /* the other flows come from anywhere */
		}
	if (fd < 0) {
		io_fail(error, "udp:%s: %s", name, strerror(-fd));
		if (p)
			udp_close(&p->io);
		return NULL;
	}
	p->headers = frame_headers(address_is6(&bound));
	p->batch = o->batch;
	p->io = (struct io){.ops = &ops,
			    .frame_max = PACKET_MAX + p->headers > FRAME_MAX
						 ? FRAME_MAX
						 : PACKET_MAX + p->headers};
	address_print(&bound, text);
	snprintf(p->io.name, sizeof(p->io.name), "udp:%s", text);
	return &p->io;
}
