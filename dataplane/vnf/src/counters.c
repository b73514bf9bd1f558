/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of counters. */
#include "counters.h"

static uint64_t look(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_one(struct totals *t, const struct counters *c)
{
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		t->received[i] += look(&c->received[i]);
		t->sent[i] += look(&c->sent[i]);
		t->not_taken[i] += look(&c->not_taken[i]);
	}
	for (unsigned i = 0; i < REASON_COUNT; i++)
		t->dropped[i] += look(&c->dropped[i]);
	for (unsigned i = 0; i < REPLY_COUNT; i++)
		t->replied[i] += look(&c->replied[i]);
	t->cycles += look(&c->cycles);
}

void counters_total(struct totals *t, const struct counters *counters, unsigned threads)
{
	*t = (struct totals){0};
	for (unsigned i = 0; i < threads; i++)
		add_one(t, &counters[i]);
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		t->all_received += t->received[i];
		t->all_sent += t->sent[i];
	}
	for (unsigned i = 0; i < REASON_COUNT; i++)
		t->all_dropped += t->dropped[i];
}
