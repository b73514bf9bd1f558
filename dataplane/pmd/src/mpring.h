/* SPDX-License-Identifier: Apache-2.0 */
/* net_mpring: declarations that its parts share. */
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

/* The device arguments. */
struct mpring_arguments {
	bool primary;
	char ring[MPRING_NAME_MAX];
	char socket[108];
	struct rte_ether_addr mac;
};

/* Read "role=primary,socket=PATH,...". Returns 0, or -EINVAL after logging the reason. */
int mpring_arguments_read(const char *text, struct mpring_arguments *a);

/*
 * Shows a process whether the other one lives: a connection, which the kernel hangs up when either
 * process ends. Nothing is ever sent over it. The struct belongs to one process, although it is in
 * memory that both share.
 */
struct mpring_peer {
	/* guards the connection: EAL's interrupt thread accepts, and the application reads its
	 * state */
	rte_spinlock_t lock;
	int listener, connection;      /* -1: none; both -1 once closed */
	struct rte_intr_handle *calls; /* of the listener; NULL: none */
	char socket[108];
};

/* The primary process starts to listen. Returns 0 or -errno. */
int mpring_peer_open(struct mpring_peer *p, const struct mpring_arguments *a);

/*
 * The secondary process connects when it starts to take packets, and hangs up when it stops; the
 * primary does nothing. Returns 0 or -errno.
 */
int mpring_peer_start(struct mpring_peer *p);
void mpring_peer_stop(struct mpring_peer *p);
bool mpring_peer_there(struct mpring_peer *p);
void mpring_peer_close(struct mpring_peer *p);

#endif
