/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications. A part of what they say comes from the peer (stream numbers, causes of errors,
 * failed messages), so every length is checked against what usrsctp gave.
 */
#include "notice.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <usrsctp.h>

struct input {
	const void *data;
	size_t size;
	const uint8_t *events;
};

static const struct {
	uint16_t ours, linux_type;
} types[] = {
	{SCTP_ASSOC_CHANGE, K_ASSOC_CHANGE},
	{SCTP_PEER_ADDR_CHANGE, K_PEER_ADDR_CHANGE},
	{SCTP_SEND_FAILED_EVENT, K_SEND_FAILED},
	{SCTP_SEND_FAILED_EVENT, K_SEND_FAILED_EVENT},
	{SCTP_REMOTE_ERROR, K_REMOTE_ERROR},
	{SCTP_SHUTDOWN_EVENT, K_SHUTDOWN_EVENT},
	{SCTP_PARTIAL_DELIVERY_EVENT, K_PARTIAL_DELIVERY},
	{SCTP_ADAPTATION_INDICATION, K_ADAPTATION},
	{SCTP_SENDER_DRY_EVENT, K_SENDER_DRY},
};

uint16_t notice_type(uint16_t linux_type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].linux_type == linux_type)
			return types[i].ours;
	}
	return 0;
}

static bool wanted(const struct input *in, uint16_t linux_type)
{
	return in->events[linux_type - K_BASE] != 0;
}

/* A copy of the notification's fixed part; false if that is not all there. */
static bool copy(const struct input *in, void *to, size_t size)
{
	if (in->size < size)
		return false;
	memcpy(to, in->data, size);
	return true;
}

/* The output is a fixed part of `size` bytes, and what the input has after `after` bytes. */
static size_t finish(const struct input *in, void *to, const void *fixed, size_t size, size_t after)
{
	uint32_t length = (uint32_t)(size + in->size - after);

	memcpy(to, fixed, size);
	memcpy((char *)to + offsetof(struct k_shutdown_event, length), &length, sizeof(length));
	memcpy((char *)to + size, (const char *)in->data + after, in->size - after);
	return length;
}

static size_t assoc_change(const struct input *in, void *to, struct notice_end *end)
{
	struct sctp_assoc_change from;
	struct k_assoc_change out = {.type = K_ASSOC_CHANGE};

	if (!copy(in, &from, sizeof(from)))
		return 0;
	if (from.sac_state == SCTP_COMM_LOST || from.sac_state == SCTP_CANT_STR_ASSOC ||
	    from.sac_state == SCTP_SHUTDOWN_COMP) {
		end->id = from.sac_assoc_id;
		/* With the peer's ABORT after it, the peer ended it. */
		if (from.sac_state == SCTP_CANT_STR_ASSOC)
			end->error = in->size > sizeof(from) ? ECONNREFUSED : ETIMEDOUT;
		else
			end->error = from.sac_state == SCTP_COMM_LOST ? ECONNRESET : 0;
	}
	if (!wanted(in, K_ASSOC_CHANGE))
		return 0;
	out.state = (uint16_t)(from.sac_state - 1);
	out.error = from.sac_error;
	out.outbound_streams = from.sac_outbound_streams;
	out.inbound_streams = from.sac_inbound_streams;
	out.assoc_id = (int32_t)from.sac_assoc_id;
	/* Linux lists no features after it, and the ABORT it does. */
	if (from.sac_state != SCTP_COMM_LOST && from.sac_state != SCTP_CANT_STR_ASSOC)
		return finish(in, to, &out, sizeof(out), in->size);
	return finish(in, to, &out, sizeof(out), sizeof(from));
}

static size_t paddr_change(const struct input *in, void *to)
{
	struct sctp_paddr_change from;
	struct k_paddr_change out = {.type = K_PEER_ADDR_CHANGE};

	if (!wanted(in, K_PEER_ADDR_CHANGE) || !copy(in, &from, sizeof(from)))
		return 0;
	out.addr = from.spc_aaddr;
	out.state = (int)from.spc_state - 1;
	out.error = (int)from.spc_error;
	out.assoc_id = (int32_t)from.spc_assoc_id;
	return finish(in, to, &out, sizeof(out), in->size);
}

static size_t remote_error(const struct input *in, void *to)
{
	struct sctp_remote_error from;
	struct k_remote_error out = {.type = K_REMOTE_ERROR};

	if (!wanted(in, K_REMOTE_ERROR) || !copy(in, &from, sizeof(from)))
		return 0;
	out.error = from.sre_error;
	out.assoc_id = (int32_t)from.sre_assoc_id;
	return finish(in, to, &out, sizeof(out), sizeof(from));
}

static uint16_t data_flags(uint16_t from)
{
	return from & SCTP_DATA_SENT ? 1 : 0;
}

static size_t send_failed_event(const struct input *in, void *to,
				const struct sctp_send_failed_event *from)
{
	struct k_send_failed_event out = {.type = K_SEND_FAILED_EVENT,
					  .flags = data_flags(from->ssfe_flags),
					  .error = from->ssfe_error,
					  .assoc_id = (int32_t)from->ssfe_assoc_id};

	out.info.sid = from->ssfe_info.snd_sid;
	out.info.ppid = from->ssfe_info.snd_ppid;
	out.info.context = from->ssfe_info.snd_context;
	out.info.assoc_id = (int32_t)from->ssfe_info.snd_assoc_id;
	return finish(in, to, &out, sizeof(out), sizeof(*from));
}

/* An application that subscribes to both forms gets the newer one. */
static size_t send_failed(const struct input *in, void *to)
{
	struct sctp_send_failed_event from;
	struct k_send_failed out = {.type = K_SEND_FAILED};

	if (!copy(in, &from, sizeof(from)))
		return 0;
	if (wanted(in, K_SEND_FAILED_EVENT))
		return send_failed_event(in, to, &from);
	if (!wanted(in, K_SEND_FAILED))
		return 0;
	out.flags = data_flags(from.ssfe_flags);
	out.error = from.ssfe_error;
	out.info.stream = from.ssfe_info.snd_sid;
	out.info.ppid = from.ssfe_info.snd_ppid;
	out.info.context = from.ssfe_info.snd_context;
	out.info.assoc_id = (int32_t)from.ssfe_info.snd_assoc_id;
	out.assoc_id = (int32_t)from.ssfe_assoc_id;
	return finish(in, to, &out, sizeof(out), sizeof(from));
}

/* Both have the same form. */
static size_t with_id(const struct input *in, void *to, uint16_t type)
{
	struct sctp_shutdown_event from;
	struct k_shutdown_event out = {.type = type};

	if (!wanted(in, type) || !copy(in, &from, sizeof(from)))
		return 0;
	out.assoc_id = (int32_t)from.sse_assoc_id;
	return finish(in, to, &out, sizeof(out), in->size);
}

static size_t adaptation(const struct input *in, void *to)
{
	struct sctp_adaptation_event from;
	struct k_adaptation_event out = {.type = K_ADAPTATION};

	if (!wanted(in, K_ADAPTATION) || !copy(in, &from, sizeof(from)))
		return 0;
	out.indication = from.sai_adaptation_ind;
	out.assoc_id = (int32_t)from.sai_assoc_id;
	return finish(in, to, &out, sizeof(out), in->size);
}

static size_t partial_delivery(const struct input *in, void *to)
{
	struct sctp_pdapi_event from;
	struct k_pdapi_event out = {.type = K_PARTIAL_DELIVERY};

	if (!wanted(in, K_PARTIAL_DELIVERY) || !copy(in, &from, sizeof(from)))
		return 0;
	/* The only indication there is, ABORTED, is 0 in Linux. */
	out.assoc_id = (int32_t)from.pdapi_assoc_id;
	out.stream = from.pdapi_stream;
	out.seq = from.pdapi_seq;
	return finish(in, to, &out, sizeof(out), in->size);
}

size_t notice_translate(const void *from, size_t size, const uint8_t events[K_EVENT_KINDS],
			void *to, struct notice_end *end)
{
	struct input in = {from, size, events};
	struct sctp_tlv head;

	*end = (struct notice_end){0, 0};
	if (!copy(&in, &head, sizeof(head)) || head.sn_length > size)
		return 0;
	if (head.sn_length >= sizeof(head))
		in.size = head.sn_length;
	switch (head.sn_type) {
	case SCTP_ASSOC_CHANGE:
		return assoc_change(&in, to, end);
	case SCTP_PEER_ADDR_CHANGE:
		return paddr_change(&in, to);
	case SCTP_REMOTE_ERROR:
		return remote_error(&in, to);
	case SCTP_SEND_FAILED_EVENT:
		return send_failed(&in, to);
	case SCTP_SHUTDOWN_EVENT:
		return with_id(&in, to, K_SHUTDOWN_EVENT);
	case SCTP_ADAPTATION_INDICATION:
		return adaptation(&in, to);
	case SCTP_PARTIAL_DELIVERY_EVENT:
		return partial_delivery(&in, to);
	case SCTP_SENDER_DRY_EVENT:
		return with_id(&in, to, K_SENDER_DRY);
	default:
		return 0;
	}
}
