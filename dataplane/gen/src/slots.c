/* SPDX-License-Identifier: Apache-2.0 */
/* What is due in which slot. */
#include "slots.h"

#include "clock.h"

uint64_t slots_length(uint32_t scs)
{
	return 15 * NS_PER_MS / scs;
}

static uint32_t in_slot(const struct slots *s)
{
	return s->groups * s->burst;
}

uint32_t slots_size(const struct slots *s, uint64_t number)
{
	return s->sizes[number % in_slot(s)];
}

uint32_t slots_size_max(const struct slots *s)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < in_slot(s); i++)
		most = s->sizes[i] > most ? s->sizes[i] : most;
	return most;
}

uint64_t slots_rate(const struct slots *s)
{
	return in_slot(s) * NS_PER_SECOND / s->slot_ns;
}

uint64_t slots_first(const struct slots *s, uint64_t ns)
{
	uint64_t slot = (ns + s->slot_ns - 1) / s->slot_ns;

	return slot * in_slot(s) + (uint64_t)s->first * s->burst;
}

uint64_t slots_due(const struct slots *s, uint64_t number)
{
	return number / in_slot(s) * s->slot_ns + s->offset_ns[number % in_slot(s) / s->burst];
}

uint64_t slots_before(const struct slots *s, uint64_t ns)
{
	uint64_t n = ns / s->slot_ns * in_slot(s);

	for (uint32_t i = 0; i < s->groups && s->offset_ns[i] < ns % s->slot_ns; i++)
		n += s->burst;
	return n;
}

uint64_t slots_nearest(const struct slots *s, uint64_t number, uint64_t all, uint64_t ns)
{
	uint64_t at = ns / s->slot_ns, ahead = (number + all - at % all) % all;

	return ahead > all / 2 ? at + ahead - all : at + ahead;
}
