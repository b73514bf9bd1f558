/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setsockopt. An option that is not translated here gives ENOPROTOOPT: an application is not to
 * believe that it holds.
 */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/time.h>
#include <usrsctp.h>

#include "calls.h"
#include "flags.h"
#include "notice.h"
#include "sock.h"

static const struct {
	int option, ours;
	bool read, write;
} same[] = {
	{K_RTOINFO, SCTP_RTOINFO, true, true},
	{K_INITMSG, SCTP_INITMSG, true, true},
	{K_NODELAY, SCTP_NODELAY, true, true},
	{K_AUTOCLOSE, SCTP_AUTOCLOSE, true, true},
	{K_ADAPTATION_LAYER, SCTP_ADAPTATION_LAYER, true, true},
	{K_DISABLE_FRAGMENTS, SCTP_DISABLE_FRAGMENTS, true, true},
	{K_MAXSEG, SCTP_MAXSEG, true, true},
	{K_DELAYED_SACK, SCTP_DELAYED_SACK, true, true},
	{K_CONTEXT, SCTP_CONTEXT, true, true},
	{K_FRAGMENT_INTERLEAVE, SCTP_FRAGMENT_INTERLEAVE, true, true},
	{K_PARTIAL_DELIVERY_POINT, SCTP_PARTIAL_DELIVERY_POINT, true, true},
	{K_MAX_BURST, SCTP_MAX_BURST, true, true},
	{K_GET_ASSOC_NUMBER, SCTP_GET_ASSOC_NUMBER, true, false},
	{K_GET_ASSOC_ID_LIST, SCTP_GET_ASSOC_ID_LIST, true, false},
};

int option_number(int option, bool write)
{
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		if (same[i].option == option)
			return (write ? same[i].write : same[i].read) ? same[i].ours : 0;
	}
	return 0;
}

static int set(struct sock *sock, int option, const void *value, size_t size)
{
	return usrsctp_setsockopt(sock->so, IPPROTO_SCTP, option, value, (socklen_t)size) < 0
		       ? -errno
		       : 0;
}

/* Subscribe to usrsctp's form of an event; ASSOC_CHANGE always is, for connect. */
static int subscribe(struct sock *sock, uint32_t id, uint16_t type, bool on)
{
	struct sctp_event event = {.se_assoc_id = id, .se_type = notice_type(type), .se_on = on};

	if (type == K_ASSOC_CHANGE)
		return 0;
	return set(sock, SCTP_EVENT, &event, sizeof(event));
}

/* Also for the associations that a one-to-many socket has; SENDER_DRY usrsctp takes for later ones
 * only. */
static int subscribe_all(struct sock *sock, uint16_t type, bool on)
{
	bool later = sock->style == SOCK_STREAM || type == K_SENDER_DRY;

	return subscribe(sock, later ? SCTP_FUTURE_ASSOC : SCTP_ALL_ASSOC, type, on);
}

static void remember(struct sock *sock, uint16_t type, bool on)
{
	pthread_mutex_lock(&sock->lock);
	sock->events[type - K_BASE] = on;
	pthread_mutex_unlock(&sock->lock);
}

/*
 * Of the events in the old structure, those that this library does not have never happen with what
 * it has: keys, resets of streams. Applications fill the structure whole (srsRAN, UERANSIM).
 */
static int set_events(struct sock *sock, const void *value, socklen_t size)
{
	uint8_t wanted[K_EVENT_KINDS] = {0};
	int result = 0;

	if (size < 1)
		return -EINVAL;
	memcpy(wanted, value, size < sizeof(wanted) ? size : sizeof(wanted));
	for (uint16_t type = K_BASE; type < K_END && result == 0; type++) {
		bool on = wanted[type - K_BASE] != 0;

		/* Both forms of this one are one of usrsctp's. */
		if (type == K_SEND_FAILED)
			on = on || wanted[K_SEND_FAILED_EVENT - K_BASE];
		else if (type == K_SEND_FAILED_EVENT)
			on = on || wanted[K_SEND_FAILED - K_BASE];
		if (notice_type(type))
			result = subscribe_all(sock, type, on);
		if (result == 0)
			remember(sock, type, wanted[type - K_BASE] != 0);
	}
	return result;
}

static int set_event(struct sock *sock, const void *value, socklen_t size)
{
	struct k_event event;
	int result;

	if (size < sizeof(event))
		return -EINVAL;
	memcpy(&event, value, sizeof(event));
	if (event.type == K_DATA_IO) {
		remember(sock, K_DATA_IO, event.on);
		return 0;
	}
	if (!notice_type(event.type))
		return -ENOPROTOOPT;
	result = subscribe(sock, (uint32_t)event.assoc_id, event.type, event.on);
	if (result == 0)
		remember(sock, event.type, event.on);
	return result;
}

static int set_assocparams(struct sock *sock, const void *value, socklen_t size)
{
	struct k_assocparams from;
	struct sctp_assocparams to = {0};

	if (size < sizeof(from))
		return -EINVAL;
	memcpy(&from, value, sizeof(from));
	to.sasoc_assoc_id = (uint32_t)from.assoc_id;
	to.sasoc_asocmaxrxt = from.asocmaxrxt;
	to.sasoc_cookie_life = from.cookie_life;
	return set(sock, SCTP_ASSOCINFO, &to, sizeof(to));
}

static int set_primary(struct sock *sock, const void *value, socklen_t size)
{
	struct k_prim from;
	struct sctp_setprim to = {0};

	if (size < sizeof(from))
		return -EINVAL;
	memcpy(&from, value, sizeof(from));
	to.ssp_assoc_id = (uint32_t)from.assoc_id;
	to.ssp_addr = from.addr;
	return set(sock, SCTP_PRIMARY_ADDR, &to, sizeof(to));
}

static int set_paddrparams(struct sock *sock, const void *value, socklen_t size)
{
	const uint32_t known = K_SPP_HB | K_SPP_HB_DEMAND | K_SPP_PMTUD | K_SPP_HB_TIME_IS_ZERO;
	struct k_paddrparams from = {0};
	struct sctp_paddrparams to = {0};

	/* Older headers end before the flow label. */
	if (size < offsetof(struct k_paddrparams, ipv6_flowlabel))
		return -EINVAL;
	memcpy(&from, value, size < sizeof(from) ? size : sizeof(from));
	if (from.flags & ~known || from.sackdelay)
		return -ENOPROTOOPT;
	to.spp_assoc_id = (uint32_t)from.assoc_id;
	to.spp_address = from.address;
	if (to.spp_address.ss_family == 0)
		to.spp_address.ss_family = AF_INET; /* 0.0.0.0: every path */
	to.spp_hbinterval = from.hbinterval;
	to.spp_pathmaxrxt = from.pathmaxrxt;
	to.spp_pathmtu = from.pathmtu;
	to.spp_flags = from.flags & (K_SPP_HB | K_SPP_HB_DEMAND | K_SPP_HB_TIME_IS_ZERO);
	to.spp_flags |= from.flags & K_SPP_PMTUD_ENABLE ? SPP_PMTUD_ENABLE : 0;
	to.spp_flags |= from.flags & K_SPP_PMTUD_DISABLE ? SPP_PMTUD_DISABLE : 0;
	return set(sock, SCTP_PEER_ADDR_PARAMS, &to, sizeof(to));
}

static int set_sndinfo(struct sock *sock, const struct k_sndinfo *from)
{
	struct sctp_sndinfo to = {.snd_sid = from->sid,
				  .snd_flags = flags_to_send(from->flags),
				  .snd_ppid = from->ppid,
				  .snd_context = from->context,
				  .snd_assoc_id = (uint32_t)from->assoc_id};

	return set(sock, SCTP_DEFAULT_SNDINFO, &to, sizeof(to));
}

static int set_default(struct sock *sock, int option, const void *value, socklen_t size)
{
	struct k_sndinfo info;
	struct k_sndrcvinfo old;

	if (option == K_DEFAULT_SNDINFO) {
		if (size < sizeof(info))
			return -EINVAL;
		memcpy(&info, value, sizeof(info));
		return set_sndinfo(sock, &info);
	}
	if (size < sizeof(old))
		return -EINVAL;
	memcpy(&old, value, sizeof(old));
	/* A lifetime for every message: usrsctp has that in another option. */
	if (old.timetolive)
		return -ENOPROTOOPT;
	info = (struct k_sndinfo){old.stream, old.flags, old.ppid, old.context, old.assoc_id};
	return set_sndinfo(sock, &info);
}

static int set_rcvinfo(struct sock *sock, const void *value, socklen_t size)
{
	int on;

	if (size < sizeof(on))
		return -EINVAL;
	memcpy(&on, value, sizeof(on));
	pthread_mutex_lock(&sock->lock);
	sock->wants_rcvinfo = on != 0;
	pthread_mutex_unlock(&sock->lock);
	return 0;
}

static int set_timeout(struct sock *sock, int option, const void *value, socklen_t size)
{
	struct timeval time;
	long ms;

	if (size < sizeof(time))
		return -EINVAL;
	memcpy(&time, value, sizeof(time));
	if (time.tv_usec < 0 || time.tv_usec >= 1000000)
		return -EDOM;
	ms = time.tv_sec > INT_MAX / 1000 - 1 || time.tv_sec < 0
		     ? -1
		     : time.tv_sec * 1000 + (time.tv_usec + 999) / 1000;
	pthread_mutex_lock(&sock->lock);
	*(option == SO_RCVTIMEO ? &sock->receive_ms : &sock->send_ms) = ms == 0 ? -1 : (int)ms;
	pthread_mutex_unlock(&sock->lock);
	return 0;
}

static int set_socket(struct sock *sock, int option, const void *value, socklen_t size)
{
	switch (option) {
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		return set_timeout(sock, option, value, size);
	case SO_RCVBUF:
	case SO_SNDBUF:
	case SO_LINGER:
		return usrsctp_setsockopt(sock->so, SOL_SOCKET, option, value, size) < 0 ? -errno
											 : 0;
	case SO_REUSEADDR:
		/* Servers set it (srsRAN, Open5GS). SCTP keeps no port after its last association.
		 */
		return size < sizeof(int) ? -EINVAL : 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int set_sctp(struct sock *sock, int fd, int option, const void *value, socklen_t size)
{
	switch (option) {
	case K_EVENTS:
		return set_events(sock, value, size);
	case K_EVENT:
		return set_event(sock, value, size);
	case K_ASSOCINFO:
		return set_assocparams(sock, value, size);
	case K_PRIMARY_ADDR:
		return set_primary(sock, value, size);
	case K_PEER_ADDR_PARAMS:
		return set_paddrparams(sock, value, size);
	case K_DEFAULT_SNDINFO:
	case K_DEFAULT_SEND_PARAM:
		return set_default(sock, option, value, size);
	case K_RECVRCVINFO:
		return set_rcvinfo(sock, value, size);
	case K_BINDX_ADD:
	case K_BINDX_REM:
		return call_bindx(sock, value, size, option == K_BINDX_ADD);
	case K_CONNECTX:
		return call_connectx(sock, fd, value, size, NULL);
	default:
		return option_number(option, true)
			       ? set(sock, option_number(option, true), value, size)
			       : -ENOPROTOOPT;
	}
}

int call_setsockopt(struct sock *sock, int fd, int level, int option, const void *value,
		    socklen_t size)
{
	if (!value)
		return -EFAULT;
	if (level == SOL_SOCKET)
		return set_socket(sock, option, value, size);
	return level == IPPROTO_SCTP ? set_sctp(sock, fd, option, value, size) : -ENOPROTOOPT;
}
