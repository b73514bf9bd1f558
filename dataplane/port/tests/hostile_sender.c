/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that forges descriptors in every way: each is counted by kind and dropped, and the next
 * honest packet arrives.
 */
#include "memory.h"
#include "test.h"

static struct bed bed;
static uint32_t tail;

static void publish(uint32_t n)
{
	tail += n;
	atomic_store_explicit(&bed.view.words->tail, tail, memory_order_release);
}

static void write_at(struct descriptor *d, uint32_t place, uint32_t length, uint32_t offset,
		     uint32_t flags)
{
	atomic_store(&d->place_length, place | (uint64_t)length << 32);
	atomic_store(&d->offset_flags_meta, offset | (uint64_t)flags << 16);
}

/* Forge one descriptor, in the ring and beside the tail. */
static void forge(uint32_t place, uint32_t length, uint32_t offset, uint32_t flags)
{
	write_at(&bed.view.ring[tail & (bed.view.ring_size - 1)], place, length, offset, flags);
	write_at(&bed.view.words->newest, place, length, offset, flags);
	atomic_store(&bed.view.words->newest_tail, tail + 1);
	publish(1);
}

static unsigned receive(struct dray_pkt *p, unsigned n)
{
	return bed.rx->owner.ops->recv(&bed.rx->owner, p, n);
}

static uint32_t returned(void)
{
	return atomic_load(&bed.view.words->returned.value);
}

static void expect(enum dray_violation kind, uint64_t count)
{
	CHECK_EQ(bed_violations(bed.rx_counters, kind), count);
}

/* The same between two good ones of a burst: those arrive. */
static void refused_in_burst(uint32_t place, uint32_t length, uint32_t offset, uint32_t flags,
			     enum dray_violation kind)
{
	uint64_t before = bed_violations(bed.rx_counters, kind);
	uint32_t mask = bed.view.ring_size - 1;
	struct dray_pkt p[4];

	write_at(&bed.view.ring[tail & mask], 11, 100, 128, DESC_END | DESC_CSUM_GOOD);
	write_at(&bed.view.ring[(tail + 1) & mask], place, length, offset, flags);
	write_at(&bed.view.ring[(tail + 2) & mask], 12, 100, 128, DESC_END);
	publish(3);
	CHECK_EQ(receive(p, 4), 2);
	expect(kind, before + 1);
	CHECK_EQ(p[0].index, 11);
	CHECK_EQ(p[0].flags, DRAY_PKT_CSUM_GOOD);
	CHECK_EQ(p[1].index, 12);
	dray_release(p, 2);
}

/* The descriptor must be dropped, counted as `kind`, and its slot given back or not. */
static void refused(uint32_t place, uint32_t length, uint32_t offset, uint32_t flags,
		    enum dray_violation kind, bool back)
{
	uint64_t before = bed_violations(bed.rx_counters, kind);
	uint32_t had = returned();
	struct dray_pkt p[2];

	forge(place, length, offset, flags);
	CHECK_EQ(receive(p, 2), 0);
	expect(kind, before + 1);
	CHECK_EQ(returned() - had, back);
	forge(3, 100, 128, DESC_END);
	CHECK_EQ(receive(p, 2), 1);
	CHECK(p[0].data == bed.view.packets + 3 * bed.view.pkt_stride + 128);
	dray_release(p, 1);
	refused_in_burst(place, length, offset, flags, kind);
}

static void places(void)
{
	refused(bed.view.pkt_slots, 64, 128, DESC_END, DRAY_BAD_SLOT, false);
	refused(PLACE_SLOT_MASK, 64, 128, DESC_END, DRAY_BAD_SLOT, false);
	refused(1u << 24 | bed.view.msg_slots, 64, 128, DESC_END, DRAY_BAD_SLOT, false);
	refused(2u << 24, 64, 128, DESC_END, DRAY_BAD_REGION, false);
	refused(UINT32_MAX, 64, 128, DESC_END, DRAY_BAD_REGION, false);
}

static void bounds(void)
{
	uint32_t stride = bed.view.pkt_stride, message = 1u << 24;

	refused(1, 0, 128, DESC_END, DRAY_BAD_BOUNDS, true);
	refused(1, stride - 127, 128, DESC_END, DRAY_BAD_BOUNDS, true);
	refused(1, UINT32_MAX, 128, DESC_END, DRAY_BAD_BOUNDS, true);
	refused(1, 0u - 128, 128, DESC_END, DRAY_BAD_BOUNDS, true); /* wraps to 0 in 32 bits */
	refused(1, 1, UINT16_MAX, DESC_END, DRAY_BAD_BOUNDS, true);
	refused(message, bed.view.msg_stride + 1, 0, DESC_END, DRAY_BAD_BOUNDS, true);
}

static void flags(void)
{
	refused(1, 64, 128, 0, DRAY_BAD_FLAGS, true);
	refused(1, 64, 128, DESC_END | 0x40, DRAY_BAD_FLAGS, true);
	refused(1, 64, 128, DESC_END | 0x8000, DRAY_BAD_FLAGS, true);
	refused(1, 64, 128, DESC_CSUM_GOOD, DRAY_BAD_FLAGS, true);
}

static void doubles(void)
{
	uint64_t before = bed_violations(bed.rx_counters, DRAY_BAD_DOUBLE);
	struct dray_pkt first, second[4];

	forge(5, 64, 128, DESC_END);
	CHECK_EQ(receive(&first, 1), 1);
	forge(5, 64, 128, DESC_END);
	forge(5, 65, 256, DESC_END);
	CHECK_EQ(receive(second, 4), 0);
	expect(DRAY_BAD_DOUBLE, before + 2);
	dray_release(&first, 1);
	CHECK_EQ(owner_held(&bed.rx->owner), 0);
	/* Within one burst. */
	forge(6, 64, 128, DESC_END);
	forge(6, 64, 128, DESC_END);
	CHECK_EQ(receive(second, 4), 1);
	expect(DRAY_BAD_DOUBLE, before + 3);
	dray_release(second, 1);
}

static void indices(void)
{
	uint64_t before = bed_violations(bed.rx_counters, DRAY_BAD_RING_INDEX);
	struct dray_pkt p[64];

	atomic_store(&bed.view.words->tail, tail + bed.view.ring_size + 1);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(receive(p, 64), 0);
	expect(DRAY_BAD_RING_INDEX, before + 1); /* once per value, however often it is polled */
	atomic_store(&bed.view.words->tail, tail - 1);
	CHECK_EQ(receive(p, 64), 0);
	expect(DRAY_BAD_RING_INDEX, before + 2);
	atomic_store(&bed.view.words->tail, tail);
	forge(7, 64, 128, DESC_END);
	CHECK_EQ(receive(p, 64), 1);
	dray_release(p, 1);
}

/* While the sender writes the descriptor beside the tail, the one in the ring counts. */
static void torn(void)
{
	struct dray_pkt p;

	write_at(&bed.view.ring[tail & (bed.view.ring_size - 1)], 9, 64, 128, DESC_END);
	write_at(&bed.view.words->newest, 10, 64, 128, DESC_END);
	atomic_store(&bed.view.words->newest_tail, (tail + 2) ^ 0x80000000u);
	publish(1);
	CHECK_EQ(receive(&p, 1), 1);
	CHECK_EQ(p.index, 9);
	dray_release(&p, 1);
}

static void stamps(void)
{
	uint64_t before = bed_violations(bed.rx_counters, DRAY_BAD_STAMP);
	struct dray_pkt p;

	atomic_store(&bed.view.extensions[tail & (bed.view.ring_size - 1)].stamp, UINT64_MAX / 2);
	forge(8, 64, 128, DESC_END | DESC_STAMP);
	CHECK_EQ(receive(&p, 1), 1);
	expect(DRAY_BAD_STAMP, before + 1);
	dray_release(&p, 1);
}

/* Features that were not agreed on make their flags and regions violations. */
static void without_features(void)
{
	bed_free(&bed);
	bed = bed_make(0, 0, 0);
	tail = 0;
	refused(1, 64, 128, DESC_END | DESC_STAMP, DRAY_BAD_FLAGS, true);
	refused(1, 64, 128, DESC_END | DESC_VLAN, DRAY_BAD_FLAGS, true);
	refused(1, 64, 128, DESC_END | DESC_HASH, DRAY_BAD_FLAGS, true);
	refused(1u << 24, 64, 128, DESC_END, DRAY_BAD_REGION, false);
}

/*
 * Slots longer than an offset can say: what ends beyond is as good as any, and flags are looked at
 * as well.
 */
static void wide(void)
{
	struct dray_pkt p;

	bed_free(&bed);
	bed = bed_make_wide(0, 0, FEATURES_KNOWN, 131072 - 64);
	tail = 0;
	forge(1, 70000, 128, DESC_END);
	CHECK_EQ(receive(&p, 1), 1);
	CHECK_EQ(p.length, 70000);
	CHECK_EQ(p.room, bed.view.pkt_stride - 128);
	dray_release(&p, 1);
	refused(1, 64, 128, 0, DRAY_BAD_FLAGS, true);
	refused(1, bed.view.pkt_stride - 127, 128, DESC_END, DRAY_BAD_BOUNDS, true);
}

int main(void)
{
	bed = bed_make(0, 0, FEATURES_KNOWN);
	places();
	bounds();
	flags();
	doubles();
	indices();
	torn();
	stamps();
	without_features();
	wide();
	bed_free(&bed);
	return 0;
}
