/* SPDX-License-Identifier: Apache-2.0 */
/* Send blocks, in messages. */
#include <errno.h>
#include <string.h>

#include "stream.h"

#define EVENTS 8

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

/* Look whether there is another peer, or none. The lock is held. */
static void follow_peer(struct dray_iq *s)
{
	struct dray_event events[EVENTS];
	int n;

	while ((n = dray_events(s->port, events, EVENTS)) > 0) {
		for (int i = 0; i < n; i++) {
			uint32_t type = events[i].type;

			s->new_peer |= type == DRAY_EVENT_PEER_UP || type == DRAY_EVENT_REBIND;
			s->has_start &= type != DRAY_EVENT_PEER_UP && type != DRAY_EVENT_PEER_DOWN;
		}
	}
}

/*
 * Mark the first block to a peer. Called with a buffer: if that is one of a new link, its event is
 * there. If the link moves after this, the new peer gets the block without a mark, and skips it.
 */
static uint32_t mark_start(struct dray_iq *s)
{
	uint32_t mark = 0;

	pthread_mutex_lock(&s->lock);
	follow_peer(s);
	if (s->new_peer) {
		mark = MARK_START;
		s->new_peer = false;
		s->has_start = true;
		s->start = atomic_load_explicit(&s->bytes, memory_order_relaxed);
	}
	pthread_mutex_unlock(&s->lock);
	return mark;
}

/*
 * The same, but for what has happened by now: the stream's thread may not have seen it yet. If it
 * is busy, dray_service leaves the work to it, and follow_peer waits for it. That may have been
 * begun before; the second time it was not.
 */
static void see_peer(struct dray_iq *s)
{
	for (unsigned i = 0; i < 2; i++) {
		(void)dray_service(s->port);
		follow_peer(s);
	}
}

EXPORT int dray_iq_start(struct dray_iq *s, uint64_t *bytes)
{
	int ret = -ENOTCONN;

	if (s->direction != DRAY_IQ_SEND)
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	see_peer(s);
	if (s->has_start) {
		*bytes = s->start;
		ret = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/* Returns how many bytes went, from the first. */
static ssize_t send_message(struct dray_iq *s, const uint8_t *samples, size_t bytes, bool begin)
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
	pkt.meta = s->next | (begin ? mark_start(s) : 0);
	ret = publish(s, &pkt);
	if (ret)
		return ret;
	add(&s->messages, 1);
	add(&s->bytes, bytes);
	return (ssize_t)bytes;
}

/* The receiver must see that a message is missing, and where to go on. */
static void break_off(struct dray_iq *s)
{
	s->next = mark_after(s->next);
	pthread_mutex_lock(&s->lock);
	s->new_peer = true;
	pthread_mutex_unlock(&s->lock);
}

EXPORT int dray_iq_send(struct dray_iq *s, const void *samples, size_t bytes)
{
	const uint8_t *from = samples;
	size_t done = 0;

	if (s->direction != DRAY_IQ_SEND)
		return -EINVAL;
	while (done < bytes) {
		ssize_t n = send_message(s, from ? from + done : NULL, bytes - done, done == 0);

		if (n < 0) {
			break_off(s);
			return (int)n;
		}
		s->next = mark_after(s->next);
		done += (size_t)n;
	}
	return 0;
}
