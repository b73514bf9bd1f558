/* SPDX-License-Identifier: Apache-2.0 */
/* getsockopt. */
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <usrsctp.h>

#include "address.h"
#include "calls.h"
#include "flags.h"
#include "options.h"
#include "sock.h"

#define ADDRESSES_MAX 4096 /* bytes of addresses that connectx takes */

static int get(struct sock *sock, int option, void *value, size_t size)
{
	socklen_t room = (socklen_t)size;

	return usrsctp_getsockopt(sock->so, IPPROTO_SCTP, option, value, &room) < 0 ? -errno : 0;
}

/* As much of the value as there is room for. */
static int give(const void *from, size_t whole, void *value, socklen_t *size)
{
	if (*size > whole)
		*size = (socklen_t)whole;
	memcpy(value, from, *size);
	return 0;
}

/* The association that a value begins with names. */
static int named(const void *value, socklen_t size, uint32_t *id)
{
	if (size < sizeof(*id))
		return -EINVAL;
	memcpy(id, value, sizeof(*id));
	return 0;
}

static int path_state(int32_t state)
{
	return state == SCTP_ACTIVE	   ? K_ACTIVE
	       : state == SCTP_UNCONFIRMED ? K_UNCONFIRMED
					   : K_INACTIVE;
}

static struct k_paddrinfo path(const struct sock *sock, const struct sctp_paddrinfo *from,
			       uint32_t id)
{
	return (struct k_paddrinfo){.assoc_id = (int32_t)id,
				    .address = address_for(sock->family, &from->spinfo_address),
				    .state = path_state(from->spinfo_state),
				    .cwnd = from->spinfo_cwnd,
				    .srtt = from->spinfo_srtt,
				    .rto = from->spinfo_rto,
				    .mtu = from->spinfo_mtu};
}

static int32_t association_state(int32_t state)
{
	switch (state) {
	case SCTP_COOKIE_WAIT:
		return K_COOKIE_WAIT;
	case SCTP_COOKIE_ECHOED:
		return K_COOKIE_ECHOED;
	case SCTP_ESTABLISHED:
		return K_ESTABLISHED;
	case SCTP_SHUTDOWN_PENDING:
		return K_SHUTDOWN_PENDING;
	case SCTP_SHUTDOWN_SENT:
		return K_SHUTDOWN_SENT;
	case SCTP_SHUTDOWN_RECEIVED:
		return K_SHUTDOWN_RECEIVED;
	case SCTP_SHUTDOWN_ACK_SENT:
		return K_SHUTDOWN_ACK_SENT;
	default:
		return K_CLOSED;
	}
}

static int get_status(struct sock *sock, void *value, socklen_t *size)
{
	struct sctp_status from = {0};
	struct k_status to = {0};
	int result = named(value, *size, &from.sstat_assoc_id);

	if (result == 0)
		result = get(sock, SCTP_STATUS, &from, sizeof(from));
	if (result < 0)
		return result;
	to.assoc_id = (int32_t)from.sstat_assoc_id;
	to.state = association_state(from.sstat_state);
	to.rwnd = from.sstat_rwnd;
	to.unackdata = from.sstat_unackdata;
	to.penddata = from.sstat_penddata;
	to.instrms = from.sstat_instrms;
	to.outstrms = from.sstat_outstrms;
	to.fragmentation_point = from.sstat_fragmentation_point;
	to.primary = path(sock, &from.sstat_primary, from.sstat_assoc_id);
	return give(&to, sizeof(to), value, size);
}

static int get_peer_info(struct sock *sock, void *value, socklen_t *size)
{
	struct k_paddrinfo asked;
	struct sctp_paddrinfo from = {0};
	int result;

	if (*size < sizeof(asked))
		return -EINVAL;
	memcpy(&asked, value, sizeof(asked));
	from.spinfo_assoc_id = (uint32_t)asked.assoc_id;
	from.spinfo_address = asked.address;
	result = get(sock, SCTP_GET_PEER_ADDR_INFO, &from, sizeof(from));
	if (result < 0)
		return result;
	asked = path(sock, &from, from.spinfo_assoc_id);
	return give(&asked, sizeof(asked), value, size);
}

static int get_assocparams(struct sock *sock, void *value, socklen_t *size)
{
	struct sctp_assocparams from = {0};
	struct k_assocparams to;
	int result = named(value, *size, &from.sasoc_assoc_id);

	if (result == 0)
		result = get(sock, SCTP_ASSOCINFO, &from, sizeof(from));
	if (result < 0)
		return result;
	to = (struct k_assocparams){.assoc_id = (int32_t)from.sasoc_assoc_id,
				    .asocmaxrxt = from.sasoc_asocmaxrxt,
				    .number_peer_destinations = from.sasoc_number_peer_destinations,
				    .peer_rwnd = from.sasoc_peer_rwnd,
				    .local_rwnd = from.sasoc_local_rwnd,
				    .cookie_life = from.sasoc_cookie_life};
	return give(&to, sizeof(to), value, size);
}

static int get_paddrparams(struct sock *sock, void *value, socklen_t *size)
{
	struct k_paddrparams to;
	struct sctp_paddrparams from = {0};
	int result;

	if (*size < offsetof(struct k_paddrparams, hbinterval))
		return -EINVAL;
	memcpy(&to, value, *size < sizeof(to) ? *size : sizeof(to));
	from.spp_assoc_id = (uint32_t)to.assoc_id;
	from.spp_address = to.address;
	if (from.spp_address.ss_family == 0)
		from.spp_address.ss_family = AF_INET; /* 0.0.0.0: what holds for new paths */
	result = get(sock, SCTP_PEER_ADDR_PARAMS, &from, sizeof(from));
	if (result < 0)
		return result;
	to = (struct k_paddrparams){.assoc_id = (int32_t)from.spp_assoc_id,
				    .address = from.spp_address,
				    .hbinterval = from.spp_hbinterval,
				    .pathmaxrxt = from.spp_pathmaxrxt,
				    .pathmtu = from.spp_pathmtu};
	to.flags = from.spp_flags & (K_SPP_HB | K_SPP_HB_TIME_IS_ZERO);
	to.flags |= from.spp_flags & SPP_PMTUD_ENABLE ? K_SPP_PMTUD_ENABLE : K_SPP_PMTUD_DISABLE;
	return give(&to, sizeof(to), value, size);
}

static int get_default(struct sock *sock, int option, void *value, socklen_t *size)
{
	struct sctp_sndinfo from = {0};
	struct k_sndinfo to = {0};
	struct k_sndrcvinfo old = {0};
	socklen_t least = option == K_DEFAULT_SNDINFO ? sizeof(to) : sizeof(old);
	int result;

	if (*size < least)
		return -EINVAL;
	result = get(sock, SCTP_DEFAULT_SNDINFO, &from, sizeof(from));
	if (result < 0)
		return result;
	to = (struct k_sndinfo){from.snd_sid, flags_from_send(from.snd_flags), from.snd_ppid,
				from.snd_context, (int32_t)from.snd_assoc_id};
	if (option == K_DEFAULT_SNDINFO)
		return give(&to, sizeof(to), value, size);
	old.stream = to.sid;
	old.flags = to.flags;
	old.ppid = to.ppid;
	old.context = to.context;
	old.assoc_id = to.assoc_id;
	return give(&old, sizeof(old), value, size);
}

/* SCTP_GET_PEER_ADDRS, SCTP_GET_LOCAL_ADDRS: libsctp's sctp_getpaddrs and sctp_getladdrs. */
static int get_addresses(struct sock *sock, bool peer, void *value, socklen_t *size)
{
	const size_t head = sizeof(struct k_getaddrs);
	struct k_getaddrs *to = value;
	struct sockaddr *all = NULL;
	char *at = (char *)value + head;
	uint32_t id;
	int result = named(value, *size, &id), count;

	if (result < 0 || *size < head)
		return -EINVAL;
	count = peer ? usrsctp_getpaddrs(sock->so, id, &all)
		     : usrsctp_getladdrs(sock->so, id, &all);
	if (count < 0)
		return -errno;
	to->addr_num = 0;
	for (const char *from = (const char *)all; count > 0; count--) {
		socklen_t one =
			address_size(((const struct sockaddr *)(const void *)from)->sa_family);

		if (one == 0)
			break;
		if (at + one > (char *)value + *size) {
			result = -ENOMEM;
			break;
		}
		memcpy(at, from, one);
		at += one;
		from += one;
		to->addr_num++;
	}
	if (peer)
		usrsctp_freepaddrs(all);
	else
		usrsctp_freeladdrs(all);
	*size = (socklen_t)(at - (char *)value);
	return result;
}

/* libsctp's sctp_connectx asks for the association so. */
static int connectx(struct sock *sock, int fd, void *value, socklen_t *size)
{
	struct k_connectx3 *asked = value;
	int32_t id = 0;
	int result;

	if (*size < sizeof(*asked))
		return -EINVAL;
	if (!asked->addrs || asked->addr_num <= 0 || asked->addr_num > ADDRESSES_MAX)
		return -EINVAL;
	result = call_connectx(sock, fd, asked->addrs, (size_t)asked->addr_num, &id);
	asked->assoc_id = id;
	*size = sizeof(id);
	return result;
}

static int peeloff(struct sock *sock, int option, void *value, socklen_t *size)
{
	struct k_peeloff_flags *asked = value;
	unsigned flags = 0;
	int made;

	if (*size < (option == K_PEELOFF ? sizeof(asked->arg) : sizeof(*asked)))
		return -EINVAL;
	if (option == K_PEELOFF_FLAGS)
		flags = asked->flags;
	made = call_peeloff(sock, asked->arg.assoc_id, (int)flags);
	if (made >= 0)
		asked->arg.sd = made;
	return made; /* as Linux, the descriptor */
}

static int get_events(struct sock *sock, void *value, socklen_t *size)
{
	uint8_t events[K_EVENT_KINDS];

	pthread_mutex_lock(&sock->lock);
	memcpy(events, sock->events, sizeof(events));
	pthread_mutex_unlock(&sock->lock);
	return give(events, sizeof(events), value, size);
}

static int get_event(struct sock *sock, void *value, socklen_t *size)
{
	struct k_event event;

	if (*size < sizeof(event))
		return -EINVAL;
	memcpy(&event, value, sizeof(event));
	if (event.type < K_BASE || event.type >= K_END)
		return -EINVAL;
	pthread_mutex_lock(&sock->lock);
	event.on = sock->events[event.type - K_BASE];
	pthread_mutex_unlock(&sock->lock);
	return give(&event, sizeof(event), value, size);
}

static int get_int(int number, void *value, socklen_t *size)
{
	return give(&number, sizeof(number), value, size);
}

static int get_timeout(struct sock *sock, int option, void *value, socklen_t *size)
{
	int ms = option == SO_RCVTIMEO ? sock->receive_ms : sock->send_ms;
	struct timeval time = {.tv_sec = ms < 0 ? 0 : ms / 1000,
			       .tv_usec = ms < 0 ? 0 : ms % 1000 * 1000};

	return give(&time, sizeof(time), value, size);
}

static int get_socket(struct sock *sock, int option, void *value, socklen_t *size)
{
	switch (option) {
	case SO_ERROR:
		return get_int(sock_error(sock), value, size);
	case SO_TYPE:
		return get_int(sock->style, value, size);
	case SO_DOMAIN:
		return get_int(sock->family, value, size);
	case SO_PROTOCOL:
		return get_int(IPPROTO_SCTP, value, size);
	case SO_ACCEPTCONN:
		return get_int(sock->listening, value, size);
	case SO_REUSEADDR:
		return get_int(1, value, size);
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		return get_timeout(sock, option, value, size);
	case SO_RCVBUF:
	case SO_SNDBUF:
	case SO_LINGER:
		return usrsctp_getsockopt(sock->so, SOL_SOCKET, option, value, size) < 0 ? -errno
											 : 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int get_same(struct sock *sock, int option, void *value, socklen_t *size)
{
	int ours = option_number(option, false);

	if (!ours)
		return -ENOPROTOOPT;
	return usrsctp_getsockopt(sock->so, IPPROTO_SCTP, ours, value, size) < 0 ? -errno : 0;
}

static int get_sctp(struct sock *sock, int fd, int option, void *value, socklen_t *size)
{
	switch (option) {
	case K_STATUS:
		return get_status(sock, value, size);
	case K_GET_PEER_ADDR_INFO:
		return get_peer_info(sock, value, size);
	case K_ASSOCINFO:
		return get_assocparams(sock, value, size);
	case K_PEER_ADDR_PARAMS:
		return get_paddrparams(sock, value, size);
	case K_DEFAULT_SNDINFO:
	case K_DEFAULT_SEND_PARAM:
		return get_default(sock, option, value, size);
	case K_EVENTS:
		return get_events(sock, value, size);
	case K_EVENT:
		return get_event(sock, value, size);
	case K_RECVRCVINFO:
		return get_int(sock->wants_rcvinfo, value, size);
	case K_GET_PEER_ADDRS:
	case K_GET_LOCAL_ADDRS:
		return get_addresses(sock, option == K_GET_PEER_ADDRS, value, size);
	case K_CONNECTX3:
		return connectx(sock, fd, value, size);
	case K_PEELOFF:
	case K_PEELOFF_FLAGS:
		return peeloff(sock, option, value, size);
	default:
		return get_same(sock, option, value, size);
	}
}

int call_getsockopt(struct sock *sock, int fd, int level, int option, void *value, socklen_t *size)
{
	if (!value || !size)
		return -EFAULT;
	if (level == SOL_SOCKET)
		return get_socket(sock, option, value, size);
	return level == IPPROTO_SCTP ? get_sctp(sock, fd, option, value, size) : -ENOPROTOOPT;
}
