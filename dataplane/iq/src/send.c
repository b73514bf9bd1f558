/* SPDX-License-Identifier: Apache-2.0 */
/* Send blocks, in messages. */
#include <errno.h>
#include <string.h>

#include "stream.h"

/* Wait until the peer may have given a buffer back, or the link may be up. */
static int wait_for_room(struct dray_iq *s)
{
	struct dray_info info;
	int ret = stream_link(s, &info);

	if (ret)
		return ret;
	s->most = info.message_max;
	return stream_sleep(s, s->most > info.packet_max ? DRAY_WAIT_MESSAGE : DRAY_WAIT_TX, -1);
}

/* A buffer as large as messages are, whatever it is for: so there is one kind to wait for. */
static int get_buffer(struct dray_iq *s, struct dray_pkt *pkt)
{
	int ret = 0;

	while (!ret && !(s->most && dray_tx_alloc(s->port, 0, pkt, 1, s->most)))
		ret = wait_for_room(s);
	return ret;
}

static int publish(struct dray_iq *s, struct dray_pkt *pkt)
{
	int ret = 0;

	/* If the link has moved since, it is copied to a buffer of the new one. */
	while (!ret && !dray_tx_burst(s->port, 0, pkt, 1))
		ret = wait_for_room(s);
	if (ret)
		dray_release(pkt, 1);
	return ret;
}

/* Returns how many bytes went, from the first. */
static ssize_t send_message(struct dray_iq *s, const uint8_t *samples, size_t bytes, uint32_t begin)
{
	struct dray_pkt pkt;
	int ret = get_buffer(s, &pkt);

	if (ret)
		return ret;
	if (bytes > pkt.room)
		bytes = pkt.room;
	if (samples)
		memcpy(pkt.data, samples, bytes);
	else
		memset(pkt.data, 0, bytes);
	pkt.length = (uint32_t)bytes;
	pkt.meta = s->next | begin;
	ret = publish(s, &pkt);
	if (ret)
		return ret;
	add(&s->messages, 1);
	add(&s->bytes, bytes);
	return (ssize_t)bytes;
}

EXPORT int dray_iq_send(struct dray_iq *s, const void *samples, size_t bytes)
{
	const uint8_t *from = samples;
	size_t done = 0;

	if (s->direction != DRAY_IQ_SEND)
		return -EINVAL;
	while (done < bytes) {
		ssize_t n = send_message(s, from ? from + done : NULL, bytes - done,
					 done ? 0 : MARK_BEGIN);

		/* also after an error: the receiver must see that a message is missing */
		s->next = mark_after(s->next);
		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}
