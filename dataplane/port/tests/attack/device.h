/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a dpdk port, for attackers that stand in for the device of an application. */
#ifndef DRAY_ATTACK_DEVICE_H
#define DRAY_ATTACK_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_FDS 8 /* most descriptors of one message */

/* A connection to the driver at the other end. */
struct device {
	int fd; /* -1: none */
	uint64_t seed, until_ns;
	_Atomic uint64_t *attempts;
};

uint64_t device_any(struct device *d);

/* Whether the life has time left. */
bool device_lives(const struct device *d);

/* The same, and the other end has not hung up. */
bool device_connected(struct device *d);

/* Count something hostile. */
void device_count(struct device *d);

/* Be the client, or the server, of the socket `name` of that port; false: no one is there. */
bool device_connect(struct device *d, const char *port, const char *name, int type);
bool device_accept(struct device *d, const char *port, const char *name, int type);
void device_hang_up(struct device *d);

/* Never wait to send. */
bool device_send(struct device *d, const void *bytes, size_t n, const int *fds, unsigned count);

/* Exactly `n` bytes, and the descriptor that comes with them, or -1. */
bool device_receive(struct device *d, void *bytes, size_t n, int *fd);

/* A new descriptor of any kind: most are useless to a driver. */
int device_useless(struct device *d);

/* Shared memory, and its mapping. */
int device_memory(size_t size, uint8_t **memory);

/* Shrink shared memory, or punch a hole in it, and let the other end find out. */
void device_take_back(struct device *d, int memfd, size_t size);

#endif
