/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the switch of a link through vhost-user, as the front end that a virtio-user device is:
 * garbage, messages out of order, wrong descriptors and floods; or set the device up properly, then
 * write wrong rings, or take the memory away. PORT is a dpdk port: the switch connects to the
 * socket that the function makes. The protocol is QEMU's vhost-user, the rings are virtio's.
 */
#include <linux/vhost_types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "attack.h"
#include "device.h"
#include "linger.h"
#include "test.h"

#define SOCKET "vhost.sock"
#define SLOTS 256u
#define MEMORY (8u << 20)
#define RING_BYTES (64u << 10) /* of the memory, for each ring */
#define BUFFERS (1u << 20)     /* offset of the packets */
#define TABLES (512u << 10)    /* offset of indirect tables */
#define RINGS 2u	       /* 0: the switch writes packets, 1: it reads them */
#define ROUND 64	       /* writes between looks at the clock */
#define PROTOCOL_FEATURES (1ull << 30)
#define MOST_REQUESTS 41

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
	SET_STATUS = 39,
};

struct part {
	uint64_t guest, size, user, offset;
};

struct __attribute__((packed)) message {
	uint32_t request, flags, size;
	union {
		uint64_t number;
		struct vhost_vring_state state;
		struct vhost_vring_addr address;
		struct __attribute__((packed)) {
			uint32_t regions, unused;
			struct part region[8];
		} memory;
		uint8_t raw[512];
	};
};
#define HEADER offsetof(struct message, number)

struct front {
	struct device *d;
	uint8_t *memory;
	int memfd;
	struct vring rings[RINGS];
	uint16_t next[RINGS];
	uint64_t features;
};

static bool send_message(struct device *d, struct message *m, const int *fds, unsigned count)
{
	m->flags |= 1; /* version */
	return device_send(d, m, HEADER + m->size, fds, count);
}

static bool set_number(struct device *d, enum request request, uint64_t number)
{
	struct message m = {.request = request, .size = sizeof(m.number), .number = number};

	return send_message(d, &m, NULL, 0);
}

static bool get_number(struct device *d, enum request request, uint64_t *number)
{
	struct message m = {.request = request}, answer = {0};
	int none;

	if (!send_message(d, &m, NULL, 0) ||
	    !device_receive(d, &answer, HEADER + sizeof(answer.number), &none))
		return false;
	*number = answer.number;
	return true;
}

static bool set_ring(struct device *d, enum request request, unsigned ring, uint32_t value)
{
	struct message m = {.request = request, .size = sizeof(m.state), .state = {ring, value}};

	return send_message(d, &m, NULL, 0);
}

static bool set_bell(struct device *d, enum request request, unsigned ring)
{
	struct message m = {.request = request, .size = sizeof(m.number), .number = ring};
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bool sent = send_message(d, &m, &bell, 1);

	close(bell);
	return sent;
}

/* The switch knows our memory by the addresses that it has here. */
static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static bool set_memory(struct front *f)
{
	struct message m = {.request = SET_MEM_TABLE,
			    .size = 8 + sizeof(struct part),
			    .memory = {.regions = 1}};

	m.memory.region[0] = (struct part){
		.guest = address(f->memory), .size = MEMORY, .user = address(f->memory)};
	return send_message(f->d, &m, &f->memfd, 1);
}

static bool start_ring(struct front *f, unsigned i)
{
	struct vring *r = &f->rings[i];
	struct message m = {.request = SET_VRING_ADDR,
			    .size = sizeof(m.address),
			    .address = {.index = i,
					.desc_user_addr = address(r->desc),
					.used_user_addr = address(r->used),
					.avail_user_addr = address(r->avail)}};

	return set_bell(f->d, SET_VRING_CALL, i) && set_ring(f->d, SET_VRING_NUM, i, SLOTS) &&
	       set_ring(f->d, SET_VRING_BASE, i, 0) && send_message(f->d, &m, NULL, 0) &&
	       set_bell(f->d, SET_VRING_KICK, i) && set_ring(f->d, SET_VRING_ENABLE, i, 1);
}

/* Set the device up as an honest front end does. */
static bool set_up(struct front *f)
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
	return set_number(f->d, SET_FEATURES, f->features) &&
	       get_number(f->d, GET_PROTOCOL_FEATURES, &protocol) &&
	       set_number(f->d, SET_PROTOCOL_FEATURES, 0) &&
	       send_message(f->d, &(struct message){.request = SET_OWNER}, NULL, 0) &&
	       set_memory(f) && start_ring(f, 0) && start_ring(f, 1);
}

/* Send one good packet, and wait until the switch has taken it: it looks at the rings. */
static bool joined(struct front *f)
{
	struct vring *r = &f->rings[1];

	r->desc[0] = (struct vring_desc){.addr = address(f->memory) + BUFFERS, .len = 12 + 60};
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

/* Any request, most of the time with a plausible payload. */
static void say_anything(struct device *d)
{
	struct message m = {.request = (uint32_t)(device_any(d) % MOST_REQUESTS), .size = 8};
	unsigned count = device_any(d) % 2 ? 0 : (unsigned)(device_any(d) % DEVICE_FDS);
	int fds[DEVICE_FDS];
	uint8_t *memory;

	for (unsigned i = 0; i < sizeof(m.raw); i++)
		m.raw[i] = (uint8_t)(device_any(d) >> device_any(d) % 64);
	if (device_any(d) % 2) {
		m.state.index = (uint32_t)(device_any(d) % 4);
		m.state.num = (uint32_t)(device_any(d) >> device_any(d) % 64);
	}
	if (device_any(d) % 4 == 0)
		m.size = (uint32_t)(device_any(d) % sizeof(m.raw));
	if (m.request == SET_MEM_TABLE) {
		m.memory.regions = (uint32_t)(device_any(d) % 10);
		m.size = 8 + 8 * sizeof(struct part);
	}
	m.flags = device_any(d) % 8 ? 0 : (uint32_t)device_any(d);
	for (unsigned i = 0; i < count; i++)
		fds[i] = device_any(d) % 2 ? device_useless(d) : device_memory(4096, &memory);
	device_count(d);
	(void)send_message(d, &m, fds, count);
	while (count)
		close(fds[--count]);
}

/* Mostly in the memory; else anywhere. */
static uint64_t some_address(struct front *f, bool mild)
{
	uint64_t how = device_any(f->d), base = address(f->memory);

	if (mild || how % 8)
		return base + BUFFERS + (how >> 8) % 1024 * 4096;
	return how & 8 ? base + MEMORY - (how >> 8) % 64 : how >> (how >> 8) % 64;
}

static struct vring_desc any_descriptor(struct front *f, unsigned ring, bool mild)
{
	uint64_t how = device_any(f->d);
	struct vring_desc s = {.addr = some_address(f, mild), .len = 12 + 60 + how % 1400};

	s.flags = ring == 0 ? VRING_DESC_F_WRITE : 0;
	if ((how >> 16 & 7) == 0)
		s.len = (uint32_t)(device_any(f->d) >> device_any(f->d) % 32);
	if ((how >> 20 & 7) == 0) { /* loops among them */
		s.flags |= VRING_DESC_F_NEXT;
		s.next = (uint16_t)(how >> 24 & 1 ? how >> 32 : (how >> 32) % SLOTS);
	}
	if ((how >> 48 & 15) == 0) {
		s.flags = VRING_DESC_F_INDIRECT;
		s.addr = address(f->memory) + TABLES + (how >> 32) % 4096;
		s.len = (uint32_t)(mild ? 16 * ((how >> 32) % 16) : device_any(f->d));
	}
	if (!mild && (how >> 52 & 31) == 0)
		s.flags = (uint16_t)device_any(f->d);
	return s;
}

static void advance(struct front *f, unsigned ring, bool mild)
{
	struct vring *r = &f->rings[ring];
	uint64_t how = device_any(f->d);

	r->avail->ring[f->next[ring]++ % SLOTS] = (uint16_t)(mild || how % 8 ? how % SLOTS : how);
	if (how % 16 == 0)
		__atomic_store_n(&r->avail->idx, f->next[ring], __ATOMIC_RELEASE);
	if (mild || (how >> 32) % 256)
		return;
	if (how >> 40 & 1)
		__atomic_store_n(&r->avail->idx, (uint16_t)device_any(f->d), __ATOMIC_RELEASE);
	else
		r->used->idx = (uint16_t)device_any(f->d);
	r->avail->flags = (uint16_t)device_any(f->d);
}

static void scribble_once(struct front *f, bool mild)
{
	unsigned ring = (unsigned)(device_any(f->d) % RINGS);
	struct vring_desc s = any_descriptor(f, ring, mild);
	size_t at = device_any(f->d) % SLOTS;

	if (device_any(f->d) % 8 == 0)
		((struct vring_desc *)(f->memory + TABLES))[at] = s;
	else
		f->rings[ring].desc[at] = s;
	advance(f, ring, mild);
	device_count(f->d);
}

static void scribble_rings(struct front *f)
{
	bool mild = device_any(f->d) % 3 == 0, spares_memory = device_any(f->d) % 2;
	bool quiet = device_any(f->d) % 2;

	while (device_connected(f->d)) {
		for (unsigned i = 0; i < ROUND; i++)
			scribble_once(f, mild);
		if (!spares_memory && device_any(f->d) % 4096 == 0) {
			device_take_back(f->d, f->memfd, MEMORY);
			break;
		}
		if (!quiet && device_any(f->d) % 4096 == 0)
			say_anything(f->d);
	}
}

/* Make the switch print: each of these messages is good, and logged. */
static void chatter(struct device *d)
{
	while (device_connected(d))
		for (unsigned i = 0; i < ROUND; i++) {
			(void)set_number(d, SET_STATUS, 0);
			device_count(d);
		}
}

static void connection(struct device *d, struct tally *tally)
{
	struct front f = {.d = d};

	uint64_t how = device_any(d) % 8;

	if (how == 0) {
		chatter(d);
	} else if (how < 3) {
		for (uint64_t n = device_any(d) % 512; n && device_connected(d); n--)
			say_anything(d);
	} else if (set_up(&f) && joined(&f)) {
		atomic_fetch_add(&tally->joined, 1);
		scribble_rings(&f);
	}
	if (f.memory) {
		munmap(f.memory, MEMORY);
		close(f.memfd);
	}
}

static void life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns)
{
	struct device d = {.seed = seed, .until_ns = until_ns, .attempts = &tally->attempts};

	while (device_accept(&d, port, SOCKET, SOCK_STREAM)) {
		deaf_begin();
		connection(&d, tally);
		device_hang_up(&d);
		deaf_end();
	}
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
