/* SPDX-License-Identifier: Apache-2.0 */
/* A lane in private memory, with guard pages. */
#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "test.h"

#define PAGE 4096u

struct bed bed_make(uint32_t start, uint32_t quota, uint64_t features)
{
	return bed_make_wide(start, quota, features, 0);
}

struct bed bed_make_wide(uint32_t start, uint32_t quota, uint64_t features, uint32_t pkt_stride)
{
	struct lane_options options = {
		.bell = -1, .start = start, .sample_shift = 2, .hold_quota = quota};

	return bed_make_with(options, features, pkt_stride);
}

struct bed bed_make_with(struct lane_options options, uint64_t features, uint32_t pkt_stride)
{
	struct broker_options o = {.geometry = {.ring_size = 64,
						.pkt_slots = 48,
						.pkt_stride = pkt_stride,
						.msg_slots = 4,
						.msg_stride = 128 + 8192,
						.msg_headroom = 128}};
	struct bed b = {.geometry = broker_geometry(&o)};

	CHECK_EQ(geometry_check(&b.geometry, &b.offsets), 0);
	b.memory = mmap(NULL, b.geometry.size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	CHECK(b.memory != MAP_FAILED);
	b.memory += PAGE;
	CHECK_EQ(mprotect(b.memory, b.geometry.size, PROT_READ | PROT_WRITE), 0);
	b.generation = generation_new(DRAY_LINK_SHM, 1);
	b.tx_counters = aligned_alloc(128, (sizeof(struct counters) + 127) / 128 * 128);
	b.rx_counters = aligned_alloc(128, (sizeof(struct counters) + 127) / 128 * 128);
	CHECK(b.generation && b.tx_counters && b.rx_counters);
	memset(b.tx_counters, 0, sizeof(struct counters));
	memset(b.rx_counters, 0, sizeof(struct counters));
	lane_view_init(&b.view, b.memory, &b.geometry, &b.offsets, 0, 0, features);
	atomic_store(&b.view.words->tail, options.start);
	atomic_store(&b.view.words->returned.value, options.start);
	options.generation = b.generation;
	options.counters = b.tx_counters;
	CHECK_EQ(tx_lane_new(&b.view, &options, &b.tx), 0);
	options.counters = b.rx_counters;
	CHECK_EQ(rx_lane_new(&b.view, &options, &b.rx), 0);
	generation_get(b.generation);
	generation_get(b.generation);
	atomic_store(&b.tx->owner.thread, thread_self());
	atomic_store(&b.rx->owner.thread, thread_self());
	return b;
}

void bed_free(struct bed *b)
{
	tx_lane_free(b->tx);
	rx_lane_free(b->rx);
	generation_free(b->generation);
	free(b->tx_counters);
	free(b->rx_counters);
	munmap(b->memory - PAGE, b->geometry.size + 2 * PAGE);
}
