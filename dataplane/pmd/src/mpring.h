/* SPDX-License-Identifier: Apache-2.0 */
/* net_mpring: what its parts have in common. */
#ifndef NET_MPRING_H
#define NET_MPRING_H

#include <ethdev_driver.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_spinlock.h>
#include <stdbool.h>

extern int mpring_log_type;
#define MPRING_LOG(level, ...)                                                                     \
	rte_log(RTE_LOG_##level, mpring_log_type, "net_mpring: " RTE_FMT(__VA_ARGS__, ""))

#define MPRING_NAME_MAX 16 /* bytes, with NUL: the names of rings and zones are made of it */

/* What the device arguments say. */
struct mpring_arguments {
	bool primary;
	char ring[MPRING_NAME_MAX];
	char socket[108];
	struct rte_ether_addr mac;
};

/* Of "role=primary,socket=PATH,...". Returns 0 or -EINVAL, and has said why. */
int mpring_arguments_read(const char *text, struct mpring_arguments *a);

/*
 * How a process knows whether the other one lives: by a connection, which the kernel hangs up when
 * either ends. Nothing is ever sent over it. It is of one process, though it lies in memory that
 * both have.
 */
struct mpring_peer {
	/* of the connection: EAL's interrupt thread takes calls, and the application looks at it */
	rte_spinlock_t lock;
	int listener, connection;      /* -1: none; both -1 once closed */
	struct rte_intr_handle *calls; /* of the listener; NULL: none */
	char socket[108];
};

/* The primary process listens from now on. Returns 0 or -errno. */
int mpring_peer_open(struct mpring_peer *p, const struct mpring_arguments *a);

/*
 * The secondary one connects when it begins to take packets, and hangs up when it does no more; the
 * primary does nothing. Returns 0 or -errno.
 */
int mpring_peer_start(struct mpring_peer *p);
void mpring_peer_stop(struct mpring_peer *p);
bool mpring_peer_there(struct mpring_peer *p);
void mpring_peer_close(struct mpring_peer *p);

#endif
