/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of the sender. */
#include "schedule.h"

#include "clock.h"
#include "packet.h"

#define IMIX 12

static const uint32_t imix[IMIX] = {60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 60, 590};

static uint64_t bits_of(const struct schedule *s, uint64_t packet)
{
	return 8 * (uint64_t)((int64_t)schedule_size(s, packet) + s->layer_bytes);
}

/* Mean units of so many packets. */
static uint64_t mean_units(const struct schedule *s, uint64_t packets)
{
	uint64_t bits = 0;

	if (!s->bits)
		return packets;
	for (uint64_t i = 0; i < IMIX; i++)
		bits += bits_of(s, i);
	return bits * packets / IMIX;
}

struct schedule schedule_begin(const struct options *o, uint64_t start_ns)
{
	struct schedule s = {
		.imix = o->imix,
		.bits = o->rate.bits,
		.size = o->size,
		.smallest = o->headers + PACKET_SHORT,
		.layer_bytes = o->layer_bytes,
		.rate = o->rate.per_second,
		.burst = o->burst,
		.start_ns = start_ns,
	};
	unsigned __int128 fit;

	if (s.rate == 0) {
		if (!o->closed && o->burst == 1)
			s.burst = 32; /* there is no schedule: as many as one call takes */
		return s;
	}
	fit = (unsigned __int128)o->granularity_ns * s.rate / NS_PER_SECOND / mean_units(&s, 1);
	if (fit > BURST_MAX)
		fit = BURST_MAX;
	if (fit > s.burst)
		s.burst = (uint32_t)fit;
	return s;
}

uint64_t schedule_due(const struct schedule *s)
{
	return s->rate ? s->start_ns +
				 (uint64_t)((unsigned __int128)s->units * NS_PER_SECOND / s->rate)
		       : s->start_ns;
}

uint32_t schedule_imix_size(const struct schedule *s, uint64_t packet)
{
	uint32_t size = imix[packet % IMIX];

	return size > s->smallest ? size : s->smallest;
}

void schedule_pass(struct schedule *s, uint32_t n)
{
	for (uint32_t i = 0; i < n && s->bits; i++)
		s->units += bits_of(s, s->packets + i);
	if (!s->bits)
		s->units += n;
	s->packets += n;
}

uint64_t schedule_interval(const struct schedule *s)
{
	return s->rate ? (uint64_t)((unsigned __int128)mean_units(s, s->burst) * NS_PER_SECOND /
				    s->rate)
		       : 0;
}
