/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front end of vhost-user, as a virtio-user device is one, for attackers on the switch of a
 * link. The protocol is QEMU's vhost-user, the rings are virtio's.
 */
#ifndef DRAY_ATTACK_FRONT_H
#define DRAY_ATTACK_FRONT_H

#include <linux/vhost_types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#include "device.h"

#define SLOTS 256u
#define MEMORY (8u << 20)
#define RING_BYTES (64u << 10) /* of the memory, for each ring */
#define BUFFERS (1u << 20)     /* offset of the packets */
#define TABLES (512u << 10)    /* offset of indirect tables */
#define RINGS 2u	       /* 0: the switch writes packets, 1: it reads them */
#define PROTOCOL_FEATURES (1ull << 30)

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

/* Send a message; false: it does not fit, or the switch has hung up. */
bool front_send(struct device *d, struct message *m, const int *fds, unsigned count);
bool front_number(struct device *d, enum request request, uint64_t number);

/* The switch knows our memory by the addresses that it has here. */
uint64_t front_address(const void *p);

/* Set the device up, now and then with something that an honest front end would not say. */
bool front_up(struct front *f);

/* Send one good packet, and wait until the switch has taken it: it looks at the rings. */
bool front_joined(struct front *f);

/* Give everything back. */
void front_down(struct front *f);

#endif
