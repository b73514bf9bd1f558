/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What usrsctp sends. The linker gives its calls of sendmsg to __wrap_sendmsg (--wrap).
 *
 * usrsctp knows no routes: a socket that is bound to no address sends from any of the host's in
 * turn. The source of such an IPv4 packet is left empty: the kernel then takes that of the route.
 * Neither IPv6 nor UDP needs this: usrsctp gives the kernel no source there.
 *
 * A path without a route is one that loses packets: usrsctp's timers then take another. The error
 * itself it forgets, timer and all.
 */
#include "wire.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include "real.h"

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

static _Atomic(uint32_t) sockets[65536]; /* by port: how many are bound to certain addresses */

void wire_bound(uint16_t port, bool bound)
{
	if (bound)
		atomic_fetch_add(&sockets[port], 1);
	else
		atomic_fetch_sub(&sockets[port], 1);
}

/* The bytes at `offset` of the message; false if it has not so many. */
static bool bytes_at(const struct msghdr *message, size_t offset, void *to, size_t size)
{
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];

		if (offset + size <= part->iov_len) {
			memcpy(to, (const char *)part->iov_base + offset, size);
			return true;
		}
		if (offset < part->iov_len)
			return false; /* usrsctp splits no header */
		offset -= part->iov_len;
	}
	return false;
}

/* Whether this is a packet with its IPv4 header: usrsctp sends UDP's without, to a port. */
static bool is_packet(const struct msghdr *message)
{
	const struct sockaddr_in *to = message->msg_name;
	struct iphdr header;

	return to && message->msg_namelen == sizeof(*to) && to->sin_family == AF_INET &&
	       to->sin_port == 0 && message->msg_iovlen > 0 &&
	       message->msg_iov[0].iov_len >= sizeof(header) &&
	       bytes_at(message, 0, &header, sizeof(header)) && header.version == 4 &&
	       header.protocol == IPPROTO_SCTP;
}

static bool is_path(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN ||
	       error == EHOSTDOWN;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	static const uint32_t of_route = INADDR_ANY;
	uint16_t port;
	ssize_t n;

	if (is_packet(message) && bytes_at(message, sizeof(struct iphdr), &port, sizeof(port)) &&
	    atomic_load(&sockets[port]) == 0)
		memcpy((char *)message->msg_iov[0].iov_base + offsetof(struct iphdr, saddr),
		       &of_route, sizeof(of_route));
	n = REAL(sendmsg)(fd, message, flags);
	return n < 0 && is_path(errno) ? 0 : n;
}
