/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything is in a data memfd: PROTOCOL.md, section 3. */
#ifndef DRAY_GEOMETRY_H
#define DRAY_GEOMETRY_H

#include "layout.h"

struct lane_offsets {
	uint64_t extensions; /* in the lane, as are the next three */
	uint64_t completions;
	uint64_t packets;
	uint64_t messages;
	uint64_t lane_size;
	uint64_t size; /* of the memfd */
};

/*
 * Derive all offsets, in 64 bits. 0, or -EINVAL if a value is out of bounds; `size` is not
 * compared.
 */
int geometry_derive(const struct geometry *geometry, struct lane_offsets *offsets);

/* As geometry_derive, and the size that the geometry names must be the derived one. */
int geometry_check(const struct geometry *geometry, struct lane_offsets *offsets);

static inline uint64_t lane_offset(const struct geometry *g, const struct lane_offsets *o,
				   unsigned direction, unsigned queue)
{
	return LAYOUT_PAGE + ((uint64_t)direction * g->queues + queue) * o->lane_size;
}

#endif
