/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that make the process wait that closes them last. */
#ifndef DRAY_TEST_LINGER_H
#define DRAY_TEST_LINGER_H

#include <stdbool.h>

#define LINGER_S 60

/* A server that accepts, and never reads, until deaf_end: then closing no longer waits. */
void deaf_begin(void);
void deaf_end(void);

/* Closing the last reference to this socket waits. */
int waiting_socket(void);

/* Let close not wait after all. */
void stop_waiting(int fd);

/* Send a byte with a descriptor attached; whether the kernel took it. */
bool attach_to(int bell, int fd);

/* Ring, with a socket attached to which the bell has the last reference. */
bool attach(int bell);

#endif
