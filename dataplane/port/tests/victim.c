/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of an application whose peer is hostile. */
#include "victim.h"

#include "scribble.h"
#include "test.h"

static void take(struct victim *v, struct dray_pkt *p)
{
	uintptr_t data = (uintptr_t)p->data;

	CHECK(p->length > 0 && p->length <= p->room);
	for (unsigned i = 0; i < v->n; i++)
		CHECK(v->held[i].index != p->index || v->held[i].owner != p->owner);
	for (uint32_t i = 0; i < p->length; i++)
		v->sum += ((uint8_t *)p->data)[i]; /* outside the mapping are guard pages */
	v->low = data < v->low ? data : v->low;
	v->high = data + p->length > v->high ? data + p->length : v->high;
	v->held[v->n++] = *p;
	v->received++;
}

void victim_work(struct victim *v)
{
	struct dray_pkt p[32];
	unsigned n =
		dray_rx_burst(v->port, 0, p, VICTIM_HOLDS - v->n < 32 ? VICTIM_HOLDS - v->n : 32);

	for (unsigned i = 0; i < n; i++)
		take(v, &p[i]);
	while (v->n > VICTIM_HOLDS / 2) {
		unsigned at = (unsigned)(scribble_random(&v->seed) % v->n);

		dray_release(&v->held[at], 1);
		v->held[at] = v->held[--v->n];
	}
	n = dray_tx_alloc(v->port, 0, p, 8, 64);
	for (unsigned i = 0; i < n; i++) {
		memset(p[i].data, 0x5a, 1500);
		p[i].length = 1500;
		for (unsigned j = 0; j < i; j++)
			CHECK(p[i].data != p[j].data);
	}
	CHECK_EQ(dray_tx_burst(v->port, 0, p, n), n);
	v->sent += n;
}
