/* SPDX-License-Identifier: Apache-2.0 */
/* Receive samples out of messages, and find the gaps. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "stream.h"

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What is left of a time-out that began then; -1: for ever. */
static int left_ms(int timeout_ms, uint64_t since_ms)
{
	uint64_t past;

	if (timeout_ms <= 0)
		return timeout_ms;
	past = now_ms() - since_ms;
	return past < (uint64_t)timeout_ms ? timeout_ms - (int)past : 0;
}

/*
 * Whether the message that came is to be delivered. After a gap, that is so from the next start on.
 */
static bool accept(struct dray_iq *s)
{
	uint32_t mark = s->pkt.meta & ~MARK_START;

	if (mark != s->next || !s->started) {
		if (s->aligned) {
			s->gap = true;
			add(&s->gaps, 1);
		}
		s->aligned = false;
	}
	s->started = true;
	s->aligned |= (s->pkt.meta & MARK_START) != 0;
	s->next = mark_after(mark);
	return s->aligned;
}

/* Take the next message, if there is one. */
static bool take(struct dray_iq *s)
{
	while (dray_rx_burst(s->port, 0, &s->pkt, 1)) {
		if (accept(s)) {
			add(&s->messages, 1);
			add(&s->bytes, s->pkt.length);
			return true;
		}
		add(&s->skipped, s->pkt.length);
		dray_release(&s->pkt, 1);
		s->pkt.length = 0;
	}
	return false;
}

/* Wait for a message. Returns whether there is one. */
static int wait_for_message(struct dray_iq *s, int timeout_ms)
{
	uint64_t since = now_ms();

	while (!s->pkt.length && !take(s)) {
		int left = left_ms(timeout_ms, since), ret;
		struct dray_info info;

		if (left == 0)
			return 0;
		ret = stream_link(s, &info);
		if (!ret)
			ret = stream_sleep(s, DRAY_WAIT_RX, left);
		if (ret)
			return ret;
	}
	return 1;
}

EXPORT ssize_t dray_iq_peek(struct dray_iq *s, const void **samples, int timeout_ms)
{
	int ret;

	if (s->direction != DRAY_IQ_RECEIVE)
		return -EINVAL;
	ret = wait_for_message(s, timeout_ms);
	if (ret <= 0)
		return ret;
	if (s->gap) {
		s->gap = false;
		return -ECONNRESET;
	}
	*samples = s->pkt.data;
	return s->pkt.length;
}

EXPORT void dray_iq_consume(struct dray_iq *s, size_t bytes)
{
	if (bytes < s->pkt.length) {
		(void)dray_pkt_pull(&s->pkt, (uint32_t)bytes);
	} else if (s->pkt.length) {
		dray_release(&s->pkt, 1);
		s->pkt.length = 0;
	}
}

EXPORT ssize_t dray_iq_receive(struct dray_iq *s, void *samples, size_t bytes, int timeout_ms)
{
	uint64_t since = now_ms();
	uint8_t *to = samples;
	size_t done = 0;

	while (done < bytes) {
		const void *from;
		ssize_t n = dray_iq_peek(s, &from, left_ms(timeout_ms, since));

		if (n < 0)
			return n;
		if (n == 0)
			break;
		if ((size_t)n > bytes - done)
			n = (ssize_t)(bytes - done);
		memcpy(to + done, from, (size_t)n);
		dray_iq_consume(s, (size_t)n);
		done += (size_t)n;
	}
	return (ssize_t)done;
}
