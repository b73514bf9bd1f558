/* SPDX-License-Identifier: Apache-2.0 */
/* Build, check, send and receive control messages. */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture.h"
#include "dray.h"
#include "egress/scheduler.h"

#define ANY_FDS UINT32_MAX

struct shape {
	uint32_t length;
	uint32_t fds;
	bool allowed;
};

static const struct shape shapes[2][WIRE_TYPES] =
	{
		[FROM_END] =
			{
				[WIRE_HELLO] = {sizeof(struct wire_hello), ANY_FDS, true},
				[WIRE_MAPPED] = {sizeof(struct wire_mapped), 0, true},
				[WIRE_ACTIVE] = {0, 0, true},
				[WIRE_STATS] = {sizeof(struct wire_stats), 0, true},
				[WIRE_BYE] = {sizeof(struct wire_bye), 0, true},
				[WIRE_ERROR] = {sizeof(struct wire_error), 0, true},
				[WIRE_CAPTURE] = {sizeof(struct wire_captured), 0, true},
				[WIRE_CLASSES] = {sizeof(struct wire_classed), 0, true},
			},
		[FROM_BROKER] =
			{
				[WIRE_WELCOME] = {sizeof(struct wire_welcome), 1, true},
				[WIRE_OFFER] = {sizeof(struct wire_offer), ANY_FDS, true},
				[WIRE_SEALED] = {0, 0, true},
				[WIRE_REBIND] = {sizeof(struct wire_rebind), 0, true},
				[WIRE_STATS] = {0, 0, true},
				[WIRE_BYE] = {sizeof(struct wire_bye), 0, true},
				[WIRE_ERROR] = {sizeof(struct wire_error), 0, true},
				[WIRE_CAPTURE] = {sizeof(struct wire_capture), ANY_FDS, true},
				[WIRE_CLASSES] = {sizeof(struct wire_classes), 0, true},
			},
};

bool wire_name_valid(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strnlen(name, PORT_NAME);

	return n > 0 && n < PORT_NAME && name[0] != '.' && strspn(name, allowed) == n;
}

void wire_begin(struct wire_message *m, enum wire_sender sender, enum wire_type type,
		uint32_t generation)
{
	memset(m, 0, sizeof(*m));
	m->header = (struct wire_header){WIRE_MAGIC, WIRE_VERSION, (uint16_t)type,
					 shapes[sender][type].length, generation};
}

void wire_error(struct wire_message *m, enum wire_sender sender, int code, uint32_t about,
		const char *text)
{
	wire_begin(m, sender, WIRE_ERROR, 0);
	m->error.code = (uint32_t)code;
	m->error.about = about;
	strncpy(m->error.text, text, sizeof(m->error.text) - 1);
}

/* Exactly one name, and NUL to the end. */
static bool name_field_valid(const char name[PORT_NAME])
{
	size_t n = strnlen(name, PORT_NAME);

	if (n == PORT_NAME || !wire_name_valid(name))
		return false;
	for (; n < PORT_NAME; n++)
		if (name[n])
			return false;
	return true;
}

static bool hello_valid(const struct wire_hello *h, unsigned fds)
{
	return name_field_valid(h->port) && h->queues <= DRAY_MAX_QUEUES &&
	       h->mode <= DRAY_MODE_SLEEPING && h->clock <= CLOCK_KIND_COUNTER &&
	       (h->flags & ~(uint32_t)HELLO_READOPT) == 0 && h->reserved == 0 &&
	       fds == ((h->flags & HELLO_READOPT) ? 1 : 0);
}

static bool welcome_valid(const struct wire_welcome *w)
{
	return (w->features & ~(uint64_t)FEATURES_KNOWN) == 0 && name_field_valid(w->port) &&
	       w->ip4_prefix <= 32 && w->ip6_prefix <= 128 && w->mtu >= 68 && w->mtu <= 65535 &&
	       w->queues >= 1 && w->queues <= DRAY_MAX_QUEUES &&
	       (w->sample_shift <= SAMPLE_SHIFT_MAX || w->sample_shift == SAMPLE_NONE) &&
	       w->hold_policy <= HOLD_COPY &&
	       w->telemetry_size == LAYOUT_PAGE + (uint64_t)TELEMETRY_BLOCK * w->queues &&
	       (w->flags & ~(uint32_t)(WELCOME_READOPTED | WELCOME_CLASSES)) == 0 &&
	       w->reserved == 0;
}

static bool offer_valid(const struct wire_offer *o, unsigned fds)
{
	static const struct geometry none;

	if (o->side > 1 || o->peer_mode > DRAY_MODE_SLEEPING || o->queues < 1 ||
	    o->queues > DRAY_MAX_QUEUES || (o->features & ~(uint64_t)FEATURES_KNOWN) ||
	    o->clock > CLOCK_KIND_COUNTER || o->reserved)
		return false;
	if (o->kind == DRAY_LINK_SHM)
		return fds == 1 + o->queues;
	return o->kind == DRAY_LINK_NETDEV && fds == o->queues &&
	       memcmp(&o->geometry, &none, sizeof(none)) == 0;
}

/* A start with its memfd, or all 0. */
static bool capture_valid(const struct wire_capture *c, unsigned fds)
{
	static const struct wire_capture stop;
	uint64_t ring_size, size;

	if (memcmp(c, &stop, sizeof(stop)) == 0)
		return fds == 0;
	return capture_derive(c, &ring_size, &size) == 0 && c->size == size && fds == 1;
}

static bool captured_valid(const struct wire_captured *c)
{
	return c->error < 4096 && c->reserved == 0;
}

static bool classed_valid(const struct wire_classed *c)
{
	return c->error < 4096 && c->reserved == 0;
}

static bool body_valid(const struct wire_message *m, unsigned fds)
{
	switch (m->header.type) {
	case WIRE_HELLO:
		return hello_valid(&m->hello, fds);
	case WIRE_WELCOME:
		return welcome_valid(&m->welcome);
	case WIRE_OFFER:
		return m->header.generation != 0 && offer_valid(&m->offer, fds);
	case WIRE_REBIND:
		return m->rebind.reason >= REBIND_DIED && m->rebind.reason <= REBIND_POLICY &&
		       m->rebind.next <= DRAY_LINK_NETDEV;
	case WIRE_STATS:
		return m->header.length == 0 || m->stats.reserved == 0;
	case WIRE_BYE:
		return m->bye.reason <= BYE_RESTART && m->bye.reserved == 0;
	case WIRE_ERROR:
		return m->error.code < 4096 && m->error.text[sizeof(m->error.text) - 1] == 0;
	case WIRE_CAPTURE:
		return m->header.generation == 0 &&
		       (m->header.length == sizeof(m->captured) ? captured_valid(&m->captured)
								: capture_valid(&m->capture, fds));
	case WIRE_CLASSES:
		return m->header.generation == 0 &&
		       (m->header.length == sizeof(m->classed) ? classed_valid(&m->classed)
							       : classes_valid(&m->classes));
	default:
		return true;
	}
}

int wire_check(const struct wire_message *m, size_t size, unsigned fds, enum wire_sender sender)
{
	const struct wire_header *h = &m->header;
	const struct shape *shape;

	if (size > WIRE_MAX)
		return -EMSGSIZE;
	if (size < sizeof(*h) || h->magic != WIRE_MAGIC)
		return -EPROTO;
	if (h->version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (h->length != size - sizeof(*h))
		return -EPROTO;
	if (h->type >= WIRE_HINTS)
		return 1;
	if (h->type >= WIRE_TYPES)
		return -EPROTO;
	shape = &shapes[sender][h->type];
	if (!shape->allowed || h->length != shape->length ||
	    (shape->fds != ANY_FDS && fds != shape->fds) || !body_valid(m, fds))
		return -EPROTO;
	return 0;
}

int wire_send(int socket, const struct wire_message *message, const int *fds, unsigned count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)] = {0};
	struct iovec iov = {.iov_base = (void *)message, .iov_len = wire_size(message)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *msg, int fds[WIRE_MAX_FDS], unsigned *count)
{
	*count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n =
			c->cmsg_len < CMSG_LEN(0) ? 0 : (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*count < WIRE_MAX_FDS)
				fds[(*count)++] = fd;
			else
				close(fd);
		}
	}
}

int wire_receive(int socket, struct wire_message *message, int fds[WIRE_MAX_FDS], unsigned *count,
		 enum wire_sender sender)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
	struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t size;
	int ret;

	*count = 0;
	memset(message, 0, sizeof(*message));
	size = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	take_fds(&msg, fds, count);
	if (size == 0 && *count == 0)
		return -EPIPE;
	if (msg.msg_flags & MSG_CTRUNC)
		ret = -EPROTO;
	else
		ret = wire_check(message, (size_t)size, *count, sender);
	if (ret) {
		while (*count)
			close(fds[--*count]);
	}
	return ret;
}
