/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of one lane over the same private memory: for wrap-around, for ThreadSanitizer, for a
 * peer that is the test itself.
 */
#ifndef DRAY_TEST_MEMORY_H
#define DRAY_TEST_MEMORY_H

#include "generation.h"
#include "lane.h"

struct bed {
	struct geometry geometry;
	struct lane_offsets offsets;
	struct lane_view view;
	struct generation *generation;
	struct tx_lane *tx;
	struct rx_lane *rx;
	struct counters *tx_counters, *rx_counters;
	uint8_t *memory; /* guard pages around it */
};

/* start: the first index of both rings. quota: 0 is all. */
struct bed bed_make(uint32_t start, uint32_t quota, uint64_t features);

/* As bed_make, of packet slots as long as this; 0: the broker's choice. */
struct bed bed_make_wide(uint32_t start, uint32_t quota, uint64_t features, uint32_t pkt_stride);

/* As bed_make_wide, with more options; the bed sets the generation and the counters. */
struct bed bed_make_with(struct lane_options options, uint64_t features, uint32_t pkt_stride);

void bed_free(struct bed *bed);

static inline uint64_t bed_violations(const struct counters *c, enum dray_violation kind)
{
	return atomic_load(&c->n[COUNT_VIOLATION + kind]);
}

#endif
