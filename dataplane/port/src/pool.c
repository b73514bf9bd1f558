/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of private memory. */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POOL(h) ((struct pool *)(h))

static void put_back(struct pool *p, uint32_t index)
{
	p->with_application[index] = 0;
	if (index < p->shape.packets)
		p->free_packets[p->free_packet_count++] = index;
	else
		p->free_messages[p->free_message_count++] = index;
}

static uint8_t *slot_of(const struct pool *p, uint32_t index)
{
	if (index < p->shape.packets)
		return p->memory + (size_t)index * p->packet_stride;
	return p->message_memory + (size_t)(index - p->shape.packets) * p->message_stride;
}

unsigned pool_take(struct pool *p, struct dray_pkt *pkts, unsigned n, uint32_t size)
{
	bool small = size <= p->shape.packet_room;
	uint32_t *stack = small ? p->free_packets : p->free_messages;
	uint32_t *left = small ? &p->free_packet_count : &p->free_message_count;
	unsigned i;

	owner_drain(&p->owner);
	if (size > p->shape.packet_room && size > p->shape.message_room)
		return 0;
	for (i = 0; i < n && *left; i++) {
		uint32_t index = stack[--*left];

		p->with_application[index] = 1;
		pkts[i] = (struct dray_pkt){
			.data = slot_of(p, index) + DRAY_MIN_HEADROOM,
			.room = small ? p->shape.packet_room : p->shape.message_room,
			.headroom = DRAY_MIN_HEADROOM,
			.owner = &p->owner,
			.index = index,
		};
	}
	owner_lend(&p->owner, (int32_t)i);
	return i;
}

unsigned pool_give_back(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct pool *p = POOL(owner);
	int32_t back = 0;
	unsigned i;

	for (i = 0; i < n && pkts[i].owner == owner; i++) {
		uint32_t index = pkts[i].index;

		pkts[i].owner = NULL;
		if (index >= owner->slots || !p->with_application[index]) {
			count(owner->counters, COUNT_MISUSE, 1);
			continue;
		}
		put_back(p, index);
		back++;
	}
	owner_lend(owner, -back);
	return i;
}

const struct owner_ops pool_ops = {
	.give_back = pool_give_back,
};

static uint32_t stride_of(uint32_t room)
{
	return room ? (DRAY_MIN_HEADROOM + room + 63) / 64 * 64 : 0;
}

static int pool_map(struct pool *p)
{
	size_t packets = (size_t)p->shape.packets * p->packet_stride;
	size_t messages = (size_t)p->shape.messages * p->message_stride;

	p->memory_size = packets + messages;
	p->memory = mmap(NULL, p->memory_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->memory == MAP_FAILED) {
		p->memory = NULL;
		return -ENOMEM;
	}
	p->message_memory = p->memory + packets;
	return 0;
}

int pool_new(const struct pool_shape *shape, const struct owner_ops *ops, struct generation *gen,
	     struct counters *counters, size_t extra, struct pool **pool)
{
	uint32_t slots = shape->packets + shape->messages;
	struct pool *p = calloc(1, sizeof(*p) + extra);
	int ret = -ENOMEM;

	if (!p)
		return ret;
	p->shape = *shape;
	p->packet_stride = stride_of(shape->packet_room);
	p->message_stride = stride_of(shape->message_room);
	p->with_application = calloc(slots, 1);
	p->free_packets = calloc(slots, sizeof(*p->free_packets));
	if (p->with_application && p->free_packets)
		ret = pool_map(p);
	if (ret == 0)
		ret = owner_init(&p->owner, ops, slots, gen, counters);
	if (ret) {
		pool_free(&p->owner);
		return ret;
	}
	p->free_messages = p->free_packets + shape->packets;
	for (uint32_t i = slots; i-- > 0;)
		put_back(p, i);
	*pool = p;
	return 0;
}

void pool_free(struct dray_owner *owner)
{
	struct pool *p = POOL(owner);

	owner_destroy(owner);
	if (p->memory)
		munmap(p->memory, p->memory_size);
	free(p->with_application);
	free(p->free_packets);
	free(p);
}
