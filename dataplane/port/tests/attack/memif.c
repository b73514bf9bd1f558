/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the other end of a memif link, DPDK's net_memif: garbage, messages out of order and wrong
 * descriptors on its socket; or connect properly, then write wrong rings, or take the memory away.
 * The role is the one of the function's own device: a server also gets the memory of the other end.
 * PORT is a dpdk port. The protocol is that of VPP's memif, version 2.0.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "attack.h"
#include "device.h"
#include "linger.h"
#include "test.h"

#define SOCKET "memif.sock"
#define COOKIE 0x3e31f20u
#define VERSION 0x200u
#define LOG_SLOTS 10u
#define SLOTS (1u << LOG_SLOTS)
#define RING_BYTES (128u + SLOTS * 16u)
#define MEMORY (4u << 20)
#define BUFFERS (1u << 20) /* offset of the packets */
#define REGIONS 16u
#define ROUND 64 /* writes between looks at the clock */
#define FROM_CLIENT 1u

enum type { NONE, ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT, TYPES };

struct __attribute__((packed)) message {
	uint16_t type;
	union {
		struct __attribute__((packed)) {
			char name[32];
			uint16_t oldest, newest, regions, to_client, to_server;
			uint8_t log_slots;
		} hello;
		struct __attribute__((packed)) {
			uint16_t version;
			uint32_t id;
			uint8_t mode;
			char secret[24], name[32];
		} init;
		struct __attribute__((packed)) {
			uint16_t index;
			uint64_t size;
		} region;
		struct __attribute__((packed)) {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log_slots;
			uint16_t private_bytes;
		} ring;
		uint8_t raw[126];
	};
};
_Static_assert(sizeof(struct message) == 128, "a message of memif");

struct __attribute__((packed)) slot {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};

struct ring {
	uint32_t cookie;
	uint16_t flags;
	volatile uint16_t head;
	uint8_t unused1[56];
	volatile uint16_t tail;
	uint8_t unused2[62];
	struct slot slots[SLOTS];
};
_Static_assert(sizeof(struct ring) == RING_BYTES, "a ring of memif");

/* What both ends share. */
struct shared {
	uint8_t *memory[REGIONS];
	uint64_t size[REGIONS];
	unsigned regions;
	int memfd; /* ours; -1: it is the other end's */
	struct ring *sends, *receives;
	unsigned slots; /* of a ring, at most SLOTS */
};

/* A well-formed message of any type, with mostly plausible fields. */
static struct message any_message(struct device *d)
{
	struct message m = {.type = (uint16_t)(device_any(d) % TYPES)};

	switch (m.type) {
	case HELLO:
		m.hello.oldest = m.hello.newest = VERSION;
		m.hello.regions = m.hello.to_client = m.hello.to_server = (uint16_t)device_any(d);
		m.hello.log_slots = (uint8_t)(device_any(d) % 32);
		break;
	case INIT:
		m.init.version = VERSION;
		m.init.mode = device_any(d) % 8 == 0;
		break;
	case ADD_REGION:
		m.region.index = (uint16_t)(device_any(d) % 4);
		m.region.size = device_any(d) >> device_any(d) % 64;
		break;
	case ADD_RING:
		m.ring.flags = (uint16_t)(device_any(d) % 4);
		m.ring.index = (uint16_t)(device_any(d) % 2);
		m.ring.region = (uint16_t)(device_any(d) % 3);
		m.ring.offset = (uint32_t)(device_any(d) >> device_any(d) % 64);
		m.ring.log_slots = (uint8_t)(device_any(d) % 20);
		break;
	default:
		for (unsigned i = 0; i < sizeof(m.raw); i++)
			m.raw[i] = (uint8_t)device_any(d);
	}
	return m;
}

static void say_anything(struct device *d)
{
	struct message m = any_message(d);
	int fds[DEVICE_MOST_FDS];
	unsigned count = device_useless_some(d, fds);

	device_count(d);
	(void)device_send(d, &m, device_any(d) % 16 ? sizeof(m) : device_any(d) % sizeof(m), fds,
			  count);
	device_drop(fds, count);
}

static bool say(struct device *d, const struct message *m, int fd)
{
	struct message answer;
	int none;

	return device_send(d, m, sizeof(*m), &fd, fd >= 0) &&
	       device_receive(d, &answer, sizeof(answer), &none);
}

static bool say_ring(struct device *d, uint16_t flags, uint32_t offset)
{
	struct message m = {.type = ADD_RING,
			    .ring = {.flags = flags, .offset = offset, .log_slots = LOG_SLOTS}};
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bool said = say(d, &m, bell);

	close(bell);
	return said;
}

/* Connect as an honest client does, with memory of our own. */
static bool join_server(struct device *d, struct shared *s)
{
	struct message m;
	int none;

	s->memfd = device_memory(MEMORY, &s->memory[0]);
	s->size[0] = MEMORY;
	s->regions = 1;
	s->slots = SLOTS;
	s->sends = (struct ring *)s->memory[0];
	s->receives = (struct ring *)(s->memory[0] + RING_BYTES);
	s->sends->cookie = s->receives->cookie = COOKIE;
	if (!device_receive(d, &m, sizeof(m), &none) || m.type != HELLO)
		return false;
	m = (struct message){.type = INIT, .init = {.version = VERSION}};
	if (!say(d, &m, -1))
		return false;
	m = (struct message){.type = ADD_REGION, .region = {.size = device_size(d, MEMORY)}};
	if (device_any(d) % 16 == 0)
		device_seal(d, s->memfd);
	if (!say(d, &m, s->memfd) || !say_ring(d, FROM_CLIENT, 0) || !say_ring(d, 0, RING_BYTES))
		return false;
	m = (struct message){.type = CONNECT};
	return say(d, &m, -1);
}

/* Map what the other end says is its memory. */
static void map_region(struct shared *s, const struct message *m, int fd)
{
	struct stat st;
	void *p;

	if (fd < 0 || s->regions == REGIONS || fstat(fd, &st) || st.st_size == 0)
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && m->region.index == s->regions);
	s->memory[s->regions] = p;
	s->size[s->regions++] = (uint64_t)st.st_size;
}

static void map_ring(struct shared *s, const struct message *m)
{
	struct ring **r = m->ring.flags & FROM_CLIENT ? &s->receives : &s->sends;

	if (m->ring.region >= s->regions || m->ring.index || m->ring.log_slots > LOG_SLOTS)
		return;
	*r = (struct ring *)(s->memory[m->ring.region] + m->ring.offset);
	s->slots = 1u << m->ring.log_slots;
}

/* Serve a client as an honest server does, until it connects. */
static bool join_client(struct device *d, struct shared *s)
{
	struct message m = {.type = HELLO,
			    .hello = {.oldest = VERSION,
				      .newest = VERSION,
				      .regions = REGIONS,
				      .log_slots = LOG_SLOTS}};
	int fd;

	s->memfd = -1;
	if (!device_send(d, &m, sizeof(m), NULL, 0))
		return false;
	while (device_receive(d, &m, sizeof(m), &fd)) {
		struct message answer = {.type = m.type == CONNECT ? CONNECTED : ACK};

		if (m.type == ADD_REGION)
			map_region(s, &m, fd);
		if (m.type == ADD_RING)
			map_ring(s, &m);
		if (!device_send(d, &answer, sizeof(answer), NULL, 0))
			return false;
		if (m.type == CONNECT)
			return s->sends && s->receives;
	}
	return false;
}

static void descriptor(struct device *d, struct shared *s, struct ring *r, bool mild)
{
	struct slot *slot = &r->slots[device_any(d) % s->slots];
	uint64_t how = device_any(d);

	slot->length = (uint32_t)(how % 4 ? 60 + how % 1400 : device_any(d));
	slot->flags = (uint16_t)(how >> 8 & 7 ? 0 : device_any(d));
	if (s->memfd >= 0)
		slot->offset = BUFFERS + (uint32_t)(device_any(d) % 1024) * 2048;
	if (mild)
		return;
	if ((how >> 16 & 7) == 0)
		slot->offset = (uint32_t)device_any(d);
	if ((how >> 24 & 63) == 0)
		slot->region = (uint16_t)device_any(d);
}

static void indices(struct device *d, struct ring *r)
{
	uint64_t how = device_any(d);

	switch (how % 16) {
	case 0:
		r->head = (uint16_t)device_any(d);
		break;
	case 1:
		r->tail = (uint16_t)device_any(d);
		break;
	case 2:
		r->cookie ^= (uint32_t)device_any(d);
		break;
	case 3:
		r->flags = (uint16_t)device_any(d);
		break;
	default:
		r->head = (uint16_t)(r->head + how % 32);
	}
}

/* A server may write anywhere in the client's memory, not only to packets. */
static void elsewhere(struct device *d, const struct shared *s)
{
	unsigned i = (unsigned)(device_any(d) % s->regions);
	uint64_t at = device_any(d) % (s->size[i] / 8);

	((volatile uint64_t *)s->memory[i])[at] = device_any(d);
}

static void scribble_rings(struct device *d, struct shared *s)
{
	bool mild = device_any(d) % 2, spares_memory = device_any(d) % 4;

	while (device_connected(d)) {
		for (unsigned i = 0; i < ROUND; i++) {
			struct ring *r = device_any(d) % 2 ? s->sends : s->receives;

			descriptor(d, s, r, mild);
			indices(d, r);
			if (s->memfd < 0 && !mild)
				elsewhere(d, s);
			device_count(d);
		}
		if (s->memfd >= 0 && !spares_memory && device_any(d) % 4096 == 0) {
			device_take_back(d, s->memfd, MEMORY);
			break;
		}
		if (device_any(d) % 65536 == 0)
			say_anything(d);
		if (device_any(d) % 65536 == 0)
			device_call(d, d->fd);
	}
}

static void garbage(struct device *d, const char *port, bool server)
{
	while (device_lives(d)) {
		if (server ? !device_accept(d, port, SOCKET, SOCK_SEQPACKET)
			   : !device_connect(d, port, SOCKET, SOCK_SEQPACKET)) {
			usleep(10000);
			continue;
		}
		for (uint64_t n = device_any(d) % 64; n && device_lives(d); n--)
			say_anything(d);
		device_hang_up(d);
		deaf_end();
		deaf_begin();
	}
}

/* The server is away: take its place in the directory that both may write to, and fill that. */
static void squat(struct device *d, const char *port)
{
	char path[128];

	for (unsigned i = 0; device_lives(d); i++) {
		snprintf(path, sizeof(path), "/run/dray/links/%s/" SOCKET, port);
		if (mkdir(path, 0700) == 0)
			device_count(d);
		snprintf(path, sizeof(path), "/run/dray/links/%s/" SOCKET "/%u", port, i % 1000);
		if (mkdir(path, 0700) == 0)
			device_count(d);
		usleep(100);
	}
}

static bool join(struct device *d, const char *port, struct shared *s, bool server)
{
	if (server)
		return device_accept(d, port, SOCKET, SOCK_SEQPACKET) && join_client(d, s);
	if (device_connect(d, port, SOCKET, SOCK_SEQPACKET))
		return join_server(d, s);
	if (device_any(d) % 8 == 0)
		squat(d, port);
	return false;
}

static void life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns)
{
	struct device d = {.seed = seed, .until_ns = until_ns, .attempts = &tally->attempts};
	const char *eal = getenv("DRAY_EAL");
	bool server = eal && strstr(eal, "role=server");
	struct shared s = {0};

	deaf_begin();
	if (device_any(&d) % 3 == 0) {
		garbage(&d, port, server);
	} else if (join(&d, port, &s, server)) {
		atomic_fetch_add(&tally->joined, 1);
		scribble_rings(&d, &s);
	}
	deaf_end();
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
