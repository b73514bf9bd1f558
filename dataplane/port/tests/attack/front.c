/* SPDX-License-Identifier: Apache-2.0 */
/* Set up a vhost-user device, well or badly. */
#include "front.h"

#include <sys/mman.h>

#include "test.h"

bool front_send(struct device *d, struct message *m, const int *fds, unsigned count)
{
	m->flags |= 1; /* version */
	return device_send(d, m, HEADER + m->size, fds, count);
}

bool front_number(struct device *d, enum request request, uint64_t number)
{
	struct message m = {.request = request, .size = sizeof(m.number), .number = number};

	return front_send(d, &m, NULL, 0);
}

static bool get_number(struct device *d, enum request request, uint64_t *number)
{
	struct message m = {.request = request}, answer = {0};
	int none;

	if (!front_send(d, &m, NULL, 0) ||
	    !device_receive(d, &answer, HEADER + sizeof(answer.number), &none))
		return false;
	*number = answer.number;
	return true;
}

static bool set_ring(struct device *d, enum request request, unsigned ring, uint32_t value)
{
	struct message m = {.request = request, .size = sizeof(m.state), .state = {ring, value}};

	return front_send(d, &m, NULL, 0);
}

static bool set_bell(struct device *d, enum request request, unsigned ring)
{
	struct message m = {.request = request, .size = sizeof(m.number), .number = ring};
	int bell = device_bell(d);
	bool sent = front_send(d, &m, &bell, 1);

	if (device_any(d) % 4 == 0)
		device_call(d, bell);
	close(bell);
	return sent;
}

uint64_t front_address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static bool set_memory(struct front *f)
{
	struct message m = {.request = SET_MEM_TABLE,
			    .size = 8 + sizeof(struct part),
			    .memory = {.regions = 1}};

	m.memory.region[0] = (struct part){.guest = front_address(f->memory),
					   .size = device_size(f->d, MEMORY),
					   .user = front_address(f->memory),
					   .offset = device_size(f->d, 0)};
	if (device_any(f->d) % 16 == 0)
		device_seal(f->d, f->memfd);
	return front_send(f->d, &m, &f->memfd, 1);
}

/* Another ring of up to 64 pairs, or one that is not in the memory, or not all of it. */
static void wrong_ring(struct device *d, struct message *m)
{
	uint64_t how = device_any(d), far = device_any(d) >> (how >> 8) % 64;

	switch (how % 4) {
	case 0:
		m->address.index = (uint32_t)(far % 128);
		break;
	case 1:
		m->address.desc_user_addr += far;
		break;
	case 2:
		m->address.used_user_addr += MEMORY - far % 64;
		break;
	default:
		m->address.avail_user_addr = far;
	}
}

static bool start_ring(struct front *f, unsigned i)
{
	struct vring *r = &f->rings[i];
	struct message m = {.request = SET_VRING_ADDR,
			    .size = sizeof(m.address),
			    .address = {.index = i,
					.desc_user_addr = front_address(r->desc),
					.used_user_addr = front_address(r->used),
					.avail_user_addr = front_address(r->avail)}};

	if (device_any(f->d) % 16 == 0)
		wrong_ring(f->d, &m);
	return set_bell(f->d, SET_VRING_CALL, i) &&
	       set_ring(f->d, SET_VRING_NUM, i, (uint32_t)device_size(f->d, SLOTS)) &&
	       set_ring(f->d, SET_VRING_BASE, i, 0) && front_send(f->d, &m, NULL, 0) &&
	       set_bell(f->d, SET_VRING_KICK, i) && set_ring(f->d, SET_VRING_ENABLE, i, 1);
}

bool front_up(struct front *f)
{
	uint64_t known, protocol;

	f->memfd = device_memory(MEMORY, &f->memory);
	for (unsigned i = 0; i < RINGS; i++)
		vring_init(&f->rings[i], SLOTS, f->memory + (size_t)i * RING_BYTES, 4096);
	if (!get_number(f->d, GET_FEATURES, &known))
		return false;
	f->features = known & (PROTOCOL_FEATURES | 1ull << VIRTIO_F_VERSION_1 |
			       1ull << VIRTIO_RING_F_INDIRECT_DESC);
	if (device_any(f->d) % 2)
		f->features |= known & 1ull << VIRTIO_NET_F_MRG_RXBUF;
	if (device_any(f->d) % 4 == 0)
		f->features |= known & 1ull << VIRTIO_F_RING_PACKED;
	return front_number(f->d, SET_FEATURES, f->features) &&
	       get_number(f->d, GET_PROTOCOL_FEATURES, &protocol) &&
	       front_number(f->d, SET_PROTOCOL_FEATURES, 0) &&
	       front_send(f->d, &(struct message){.request = SET_OWNER}, NULL, 0) &&
	       set_memory(f) && start_ring(f, 0) && start_ring(f, 1);
}

bool front_joined(struct front *f)
{
	struct vring *r = &f->rings[1];

	r->desc[0] =
		(struct vring_desc){.addr = front_address(f->memory) + BUFFERS, .len = 12 + 60};
	r->avail->ring[0] = 0;
	__atomic_store_n(&r->avail->idx, 1, __ATOMIC_RELEASE);
	f->next[1] = 1;
	while (device_lives(f->d)) {
		if (__atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE) == 1)
			return true;
		usleep(1000);
	}
	return false;
}

void front_down(struct front *f)
{
	if (!f->memory)
		return;
	munmap(f->memory, MEMORY);
	close(f->memfd);
}
