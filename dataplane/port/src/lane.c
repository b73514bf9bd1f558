/* SPDX-License-Identifier: Apache-2.0 */
/* Code of both ends of a lane. */
#include "lane.h"

#include <stdlib.h>
#include <sys/socket.h>

#ifdef DRAY_BENCH_UNCHECKED
/* For bench/checked.sh. */
const char lane_unchecked[] __attribute__((used)) = "dray: built without checks";
#endif

void lane_view_init(struct lane_view *view, void *memory, const struct geometry *g,
		    const struct lane_offsets *o, unsigned direction, unsigned queue,
		    uint64_t features)
{
	uint8_t *lane = (uint8_t *)memory + lane_offset(g, o, direction, queue);

	*view = (struct lane_view){
		.words = (struct lane_words *)lane,
		.ring = (struct descriptor *)(lane + sizeof(struct lane_words)),
		.extensions = (struct extension *)(lane + o->extensions),
		.completions = (_Atomic uint32_t *)(lane + o->completions),
		.packets = lane + o->packets,
		.messages = lane + o->messages,
		.ring_size = g->ring_size,
		.pkt_slots = g->pkt_slots,
		.pkt_stride = g->pkt_stride,
		.pkt_headroom = g->pkt_headroom,
		.msg_slots = (features & FEATURE_MESSAGES) ? g->msg_slots : 0,
		.msg_stride = g->msg_stride,
		.msg_headroom = g->msg_headroom,
		.features = (uint32_t)features,
	};
}

uint64_t *ledger_new(const struct lane_view *v, enum slot_state state)
{
	uint64_t *ledger = malloc((v->pkt_slots + (size_t)v->msg_slots) * sizeof(*ledger));

	if (!ledger)
		return NULL;
	for (uint32_t i = 0; i < v->pkt_slots; i++)
		ledger[i] = (uintptr_t)v->packets + (uint64_t)i * v->pkt_stride;
	for (uint32_t i = 0; i < v->msg_slots; i++)
		ledger[v->pkt_slots + i] = (uintptr_t)v->messages + (uint64_t)i * v->msg_stride;
	for (uint32_t i = 0; i < v->pkt_slots + v->msg_slots; i++)
		slot_set(&ledger[i], state);
	return ledger;
}

bool tx_lane_starved(struct tx_lane *l)
{
	return atomic_load_explicit(&l->full_counted, memory_order_relaxed) &&
	       atomic_exchange_explicit(&l->full_counted, false, memory_order_relaxed);
}

void ringer_ring(struct ringer *ringer)
{
	uint32_t word;
	char one = 1;

	/*
	 * seq_cst: pairs with rx_lane_arm (P3) and tx_lane_arm (P4): either the queue's thread sees
	 * what was published, or this sees its word.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	word = atomic_load_explicit(ringer->word, memory_order_relaxed);
	if ((word == 0 || word == ringer->rung) && !ringer->first)
		return;
	ringer->first = false;
	ringer->rung = word;
	/*
	 * A full socket has something to read in it, so it wakes the peer all the same; a dead peer
	 * needs no waking.
	 */
	(void)!send(ringer->fd, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
