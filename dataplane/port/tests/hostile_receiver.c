/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver that returns what it never had, twice, or out of range: counted by kind, and no buffer
 * is ever lent twice.
 */
#include "memory.h"
#include "test.h"

static struct bed bed;
static uint32_t published;

static void complete(uint32_t place)
{
	atomic_store(&bed.view.completions[published++ & (bed.view.ring_size - 1)], place);
	atomic_store_explicit(&bed.view.words->returned.value, published, memory_order_release);
}

static uint64_t seen(enum dray_violation kind)
{
	return bed_violations(bed.tx_counters, kind);
}

static unsigned allocate(struct dray_pkt *p, unsigned n)
{
	return bed.tx->owner.ops->alloc(&bed.tx->owner, p, n, 64);
}

static unsigned send(struct dray_pkt *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i].length = 64;
	return bed.tx->owner.ops->send(&bed.tx->owner, p, n);
}

/* Take every packet slot: each must be another one. */
static unsigned allocate_all(struct dray_pkt *p)
{
	uint8_t seen_slot[64] = {0};
	unsigned n = allocate(p, 64);

	for (unsigned i = 0; i < n; i++) {
		CHECK(p[i].index < bed.view.pkt_slots);
		CHECK_EQ(seen_slot[p[i].index]++, 0);
	}
	return n;
}

/* Who waits for a buffer takes completions another way. All slots are with the application. */
static void while_waiting(void)
{
	uint64_t forged = seen(DRAY_BAD_RETURN_FORGED), slot = seen(DRAY_BAD_RETURN_SLOT);
	struct dray_owner *owner = &bed.tx->owner;

	complete(7);
	complete(UINT32_MAX);
	CHECK(!owner->ops->ready(owner));
	CHECK_EQ(seen(DRAY_BAD_RETURN_FORGED), forged + 1);
	CHECK_EQ(seen(DRAY_BAD_RETURN_SLOT), slot + 1);
}

int main(void)
{
	struct dray_pkt p[64], mine;
	unsigned slots;

	bed = bed_make(0, 0, FEATURES_KNOWN);
	slots = bed.view.pkt_slots;
	complete(0); /* never had it */
	CHECK_EQ(allocate_all(p), slots);
	CHECK_EQ(allocate(&mine, 1), 0); /* reaps */
	CHECK_EQ(seen(DRAY_BAD_RETURN_FORGED), 1);
	complete(p[0].index); /* the application has it */
	CHECK_EQ(allocate(&mine, 1), 0);
	CHECK_EQ(seen(DRAY_BAD_RETURN_FORGED), 2);

	CHECK_EQ(send(p, slots), slots);
	complete(slots);
	complete(1u << 24 | 99);
	complete(2u << 24);
	complete(UINT32_MAX);
	CHECK_EQ(allocate(&mine, 1), 0);
	CHECK_EQ(seen(DRAY_BAD_RETURN_SLOT), 4);

	complete(5);
	complete(5);
	CHECK_EQ(allocate(&mine, 1), 1);
	CHECK_EQ(mine.index, 5);
	CHECK_EQ(allocate(p, 1), 0);
	CHECK_EQ(seen(DRAY_BAD_RETURN_FORGED), 3);

	atomic_store(&bed.view.words->returned.value, published + bed.view.ring_size + 1);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(allocate(p, 1), 0);
	CHECK_EQ(seen(DRAY_BAD_RETURN_INDEX), 1);
	atomic_store(&bed.view.words->returned.value, published - 1);
	CHECK_EQ(allocate(p, 1), 0);
	CHECK_EQ(seen(DRAY_BAD_RETURN_INDEX), 2);
	atomic_store(&bed.view.words->returned.value, published);

	for (unsigned i = 0; i < slots; i++)
		if (i != 5)
			complete(i);
	CHECK_EQ(allocate_all(p), slots - 1);
	for (unsigned i = 0; i < slots - 1; i++)
		CHECK(p[i].index != 5);
	while_waiting();
	bed_free(&bed);
	return 0;
}
