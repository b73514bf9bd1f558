/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the switch of a link through vhost-user, as the front end that a virtio-user device is:
 * garbage, messages out of order, wrong descriptors and floods; or set the device up properly, then
 * write wrong rings, or take the memory away. PORT is a dpdk port: the switch connects to the
 * socket that the function makes. The protocol is QEMU's vhost-user, the rings are virtio's.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include "attack.h"
#include "front.h"
#include "linger.h"
#include "test.h"

#define SOCKET "vhost.sock"
#define ROUND 64 /* writes between looks at the clock */
#define MOST_REQUESTS 41

/* Any request, most of the time with a plausible payload. */
static void say_anything(struct device *d)
{
	struct message m = {.request = (uint32_t)(device_any(d) % MOST_REQUESTS), .size = 8};
	int fds[DEVICE_MOST_FDS];
	unsigned count = device_useless_some(d, fds);

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
	device_count(d);
	(void)front_send(d, &m, fds, count);
	device_drop(fds, count);
}

/* Begin a message, and never end it. */
static void fall_silent(struct device *d)
{
	struct message m = {.request = SET_MEM_TABLE, .flags = 1, .size = sizeof(m.memory)};

	device_count(d);
	(void)device_send(d, &m, 1 + device_any(d) % (HEADER + m.size - 1), NULL, 0);
	while (device_connected(d))
		usleep(1000);
}

/* Mostly in the memory; else anywhere. */
static uint64_t some_address(struct front *f, bool mild)
{
	uint64_t how = device_any(f->d), base = front_address(f->memory);

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
		s.addr = front_address(f->memory) + TABLES + (how >> 32) % 4096;
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
		if (device_any(f->d) % 4096 == 0)
			device_call(f->d, device_any(f->d) % 2 ? f->memfd : f->d->fd);
	}
}

/*
 * A flood of good messages. The switch logs each SET_STATUS. It answers each GET_FEATURES, until
 * nothing more fits, since we never read.
 */
static void chatter(struct device *d, enum request request)
{
	while (device_connected(d))
		for (unsigned i = 0; i < ROUND; i++) {
			(void)front_number(d, request, 0);
			device_count(d);
		}
}

static void connection(struct device *d, struct tally *tally)
{
	struct front f = {.d = d};

	uint64_t how = device_any(d) % 8;

	if (how == 0) {
		chatter(d, device_any(d) % 2 ? SET_STATUS : GET_FEATURES);
	} else if (how < 3) {
		for (uint64_t n = device_any(d) % 512; n && device_connected(d); n--)
			say_anything(d);
		if (device_any(d) % 4 == 0)
			fall_silent(d);
	} else if (front_up(&f) && front_joined(&f)) {
		atomic_fetch_add(&tally->joined, 1);
		scribble_rings(&f);
	}
	front_down(&f);
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
