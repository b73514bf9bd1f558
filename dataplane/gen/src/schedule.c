/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of the sender. */
#include "schedule.h"

#include "buf.h"
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
	if (!s->imix)
		return bits_of(s, 0) * packets;
	for (uint64_t i = 0; i < IMIX; i++)
		bits += bits_of(s, i);
	return bits * packets / IMIX;
}

/* From the next slot on. */
static struct schedule in_slots(struct schedule s, const struct slots *slots)
{
	s.slots = slots;
	s.first = slots_first(slots, s.start_ns);
	s.start_ns = slots_due(slots, s.first);
	s.burst = slots->burst;
	return s;
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

	if (options_slots(o))
		return in_slots(s, options_slots(o));
	if (s.rate == 0) {
		if (!o->closed && o->burst == 1)
			s.burst = IO_BATCH; /* there is no schedule: as many as one call takes */
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
	if (s->slots)
		return slots_due(s->slots, schedule_number(s));
	return s->rate ? s->start_ns +
				 (uint64_t)((unsigned __int128)s->units * NS_PER_SECOND / s->rate)
		       : s->start_ns;
}

uint32_t schedule_burst(const struct schedule *s)
{
	return s->slots ? s->burst - (uint32_t)(s->packets % s->burst) : s->burst;
}

uint32_t schedule_mixed_size(const struct schedule *s, uint64_t packet)
{
	uint32_t size = imix[packet % IMIX];

	if (s->slots)
		return slots_size(s->slots, s->first + packet);
	return size > s->smallest ? size : s->smallest;
}

uint64_t schedule_overdue(const struct schedule *s, uint64_t before)
{
	/* of the mix, only whole cycles have a known length */
	bool cycles = s->imix && s->bits;
	uint64_t packets = cycles ? (uint64_t)s->burst * IMIX : s->burst, each, units;

	if (s->rate == 0 || before <= s->start_ns)
		return 0;
	if (s->slots) {
		units = slots_before(s->slots, before);
		return units > schedule_number(s) ? units - schedule_number(s) : 0;
	}
	units = (uint64_t)(((unsigned __int128)(before - s->start_ns) * s->rate + NS_PER_SECOND -
			    1) /
			   NS_PER_SECOND);
	if (units <= s->units)
		return 0;
	each = mean_units(s, packets);
	return (units - s->units + (cycles ? 0 : each - 1)) / each * packets;
}

void schedule_pass(struct schedule *s, uint64_t n)
{
	uint64_t cycles = s->imix && s->bits ? n / IMIX * IMIX : n;

	if (cycles > 0)
		s->units += mean_units(s, cycles);
	for (uint64_t i = cycles; i < n; i++)
		s->units += bits_of(s, s->packets + i);
	s->packets += n;
}

uint64_t schedule_interval(const struct schedule *s)
{
	return s->rate ? (uint64_t)((unsigned __int128)mean_units(s, s->burst) * NS_PER_SECOND /
				    s->rate)
		       : 0;
}
