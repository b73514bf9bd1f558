/* SPDX-License-Identifier: Apache-2.0 */
/* Check a geometry, and derive the offsets from it. */
#include "geometry.h"

#include <errno.h>
#include <stdbool.h>

#define RING_MIN 64u
#define RING_MAX 65536u
#define HEADROOM_MIN 128u
#define HEADROOM_MAX 32768u
#define PKT_STRIDE_MAX 131072u
#define MSG_STRIDE_MAX ((4u << 20) + HEADROOM_MAX)

static bool between(uint64_t x, uint64_t low, uint64_t high)
{
	return x >= low && x <= high;
}

static bool power_of_two(uint32_t x)
{
	return x && (x & (x - 1)) == 0;
}

static uint64_t up(uint64_t x, uint64_t a)
{
	return (x + a - 1) / a * a;
}

static bool slots_fit(uint32_t stride, uint32_t headroom, uint32_t stride_max)
{
	return headroom % 64 == 0 && between(headroom, HEADROOM_MIN, HEADROOM_MAX) &&
	       stride % 64 == 0 && between(stride, headroom + 64, stride_max);
}

static bool messages_fit(const struct geometry *g)
{
	if (!g->msg_slots)
		return !g->msg_stride && !g->msg_headroom;
	return between(g->msg_slots, 1, 4096) &&
	       slots_fit(g->msg_stride, g->msg_headroom, MSG_STRIDE_MAX);
}

int geometry_derive(const struct geometry *g, struct lane_offsets *o)
{
	if (!power_of_two(g->page_size) || !between(g->page_size, LAYOUT_PAGE, 1u << 30) ||
	    !between(g->queues, 1, 16) || !power_of_two(g->ring_size) ||
	    !between(g->ring_size, RING_MIN, RING_MAX) ||
	    !between(g->pkt_slots, 32, g->ring_size) ||
	    !slots_fit(g->pkt_stride, g->pkt_headroom, PKT_STRIDE_MAX) || !messages_fit(g) ||
	    (uint64_t)g->pkt_slots + g->msg_slots > g->ring_size || g->reserved)
		return -EINVAL;
	o->extensions = sizeof(struct lane_words) + 16ull * g->ring_size;
	o->completions = o->extensions + 16ull * g->ring_size;
	o->packets = up(o->completions + 4ull * g->ring_size, LAYOUT_PAGE);
	o->messages = up(o->packets + (uint64_t)g->pkt_slots * g->pkt_stride, LAYOUT_PAGE);
	o->lane_size = up(o->messages + (uint64_t)g->msg_slots * g->msg_stride, LAYOUT_PAGE);
	o->size = up(LAYOUT_PAGE + 2ull * g->queues * o->lane_size, g->page_size);
	return o->size <= LAYOUT_SIZE_MAX ? 0 : -EINVAL;
}

int geometry_check(const struct geometry *g, struct lane_offsets *o)
{
	int ret = geometry_derive(g, o);

	if (ret == 0 && g->size != o->size)
		ret = -EINVAL;
	return ret;
}
