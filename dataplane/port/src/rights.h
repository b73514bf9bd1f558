/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that a peer attaches to its rings. One of them can make close wait for as long as the
 * peer likes: a TCP socket with SO_LINGER, unsent data and a deaf receiver does. The thread that
 * drops the last reference waits: so no thread of the application may read such a ring, nor close a
 * bell that may hold one.
 */
#ifndef DRAY_RIGHTS_H
#define DRAY_RIGHTS_H

#include <stdbool.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/*
 * Make the kernel refuse descriptors for a bell. True: none can come, and none has come. False: the
 * kernel cannot (before Linux 6.16), or something is in the bell already.
 */
bool rights_refuse(int bell);

/*
 * Whether descriptors are attached to what a bell returns next. *empty: it returns nothing, so it
 * must not be read either: what comes after this look may have some.
 */
bool rights_attached(int bell, bool *empty);

/* Closes the sockets of one port name, each in its turn, on one thread that ends by itself. */
struct discarder;

/* The one of this process for a path. NULL: no memory. */
struct discarder *discarder_get(const char *path);
void discarder_put(struct discarder *discarder);

/* Whether so many sockets cannot be closed that there should be no more. */
bool discarder_full(struct discarder *discarder);

/* Hang up at once, and close elsewhere. What is no socket is closed there too. */
void discard(struct discarder *discarder, int fd);
void discard_all(struct discarder *discarder, const int *fds, unsigned count);

#endif
