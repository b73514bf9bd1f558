/* SPDX-License-Identifier: Apache-2.0 */
/* Open, close, stop and wait. */
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "sized.h"

static int open_port(const char *name, const struct dray_iq_options *o, struct dray_port **port)
{
	struct dray_options options = {
		.size = sizeof(options),
		.directory = o->directory,
		.queues = 1,
		.mode = o->spin_us ? DRAY_MODE_ADAPTIVE : DRAY_MODE_SLEEPING,
		.flags = DRAY_SERVICE_THREAD,
		.spin_us = o->spin_us,
	};

	return dray_open(name, &options, port);
}

EXPORT int dray_iq_open(const char *port, enum dray_iq_direction direction,
			const struct dray_iq_options *options, struct dray_iq **stream)
{
	struct dray_iq_options o = {.size = sizeof(o)};
	struct dray_iq *s;
	int ret = options ? sized_read(&o, sizeof(o), options) : 0;

	if (ret || o.reserved)
		return ret ? ret : -E2BIG;
	if (direction != DRAY_IQ_SEND && direction != DRAY_IQ_RECEIVE)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->direction = direction;
	s->new_peer = true;
	pthread_mutex_init(&s->lock, NULL);
	if (getrandom(&s->next, sizeof(s->next), 0) != sizeof(s->next))
		ret = -errno;
	s->next &= MARK_SENDER;
	if (!ret)
		ret = open_port(port, &o, &s->port);
	if (ret)
		free(s);
	else
		*stream = s;
	return ret;
}

EXPORT void dray_iq_close(struct dray_iq *s)
{
	if (s->pkt.length)
		dray_release(&s->pkt, 1);
	(void)dray_close(s->port);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

EXPORT void dray_iq_stop(struct dray_iq *s)
{
	/* relaxed: it orders nothing, and a call that sees it late ends a slice later */
	atomic_store_explicit(&s->stopped, true, memory_order_relaxed);
}

int stream_link(struct dray_iq *s, struct dray_info *info)
{
	int ret;

	*info = (struct dray_info){.size = sizeof(*info)};
	ret = dray_info(s->port, info);
	if (!ret && info->state == DRAY_LINK_UP && info->message_max == 0)
		return -EMSGSIZE;
	return ret;
}

int stream_sleep(struct dray_iq *s, unsigned what, int ms)
{
	int ret;

	if (atomic_load_explicit(&s->stopped, memory_order_relaxed))
		return -ECANCELED;
	ret = dray_wait(s->port, 0, what, ms < 0 || ms > SLICE_MS ? SLICE_MS : ms);
	return ret < 0 && ret != -EINTR ? ret : 0;
}

EXPORT int dray_iq_stats(struct dray_iq *s, struct dray_iq_stats *stats)
{
	const struct dray_iq_stats now = {
		.messages = atomic_load_explicit(&s->messages, memory_order_relaxed),
		.bytes = atomic_load_explicit(&s->bytes, memory_order_relaxed),
		.gaps = atomic_load_explicit(&s->gaps, memory_order_relaxed),
		.skipped_bytes = atomic_load_explicit(&s->skipped, memory_order_relaxed),
	};

	return sized_write(stats, &now, sizeof(now));
}

EXPORT const char *dray_iq_strerror(int error)
{
	switch (error) {
	case -ECONNRESET:
		return "samples are missing here: an end of the link was restarted";
	case -EMSGSIZE:
		return "the link carries no messages: give it `messages` in the chain file";
	case -ECANCELED:
		return "the stream was stopped";
	default:
		return dray_strerror(error);
	}
}
