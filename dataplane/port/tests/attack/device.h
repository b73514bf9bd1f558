/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a dpdk port, for attackers that stand in for the device of an application. */
#ifndef DRAY_ATTACK_DEVICE_H
#define DRAY_ATTACK_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_FDS 8	    /* descriptors of one message, usually */
#define DEVICE_MOST_FDS 253 /* that the kernel takes with one */

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

/* Several of them, at most DEVICE_MOST_FDS; returns how many. device_drop closes them. */
unsigned device_useless_some(struct device *d, int *fds);
void device_drop(int *fds, unsigned count);

/* A bell. Ringing one of 32 waits until its counter is read, which nobody does. */
int device_bell(struct device *d);

/* Any call on a descriptor that the other end has as well: what both share may change. */
void device_call(struct device *d, int fd);

/* Shared memory, and its mapping. Some of it is sealed so that the other end cannot map it. */
int device_memory(size_t size, uint8_t **memory);
void device_seal(struct device *d, int memfd);

/* Mostly `size`; else less, more, or absurd. */
uint64_t device_size(struct device *d, uint64_t size);

/* Shrink shared memory, or punch a hole in it, and let the other end find out. */
void device_take_back(struct device *d, int memfd, size_t size);

#endif
