/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes in a network namespace each, joined by two links:
 *
 *   server  10.9.1.1/24 fd09:1::1/64 ---- 10.9.1.2/24 fd09:1::2/64  client
 *           10.9.2.1/24              ---- 10.9.2.2/24
 *
 * Both are this program, with the library preloaded. Its argument is ip or udp.
 */
#ifndef DRAY_SCTP_RIG_H
#define DRAY_SCTP_RIG_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <sys/socket.h>

#include "check.h" /* of libdray's tests */

#define PORT 7000

/* Run both; the result is main's. */
int rig_main(int argc, char **argv, void (*server)(void), void (*client)(void));

/* Whether packets are UDP's. */
extern bool rig_udp;

/* Wait until the other process has come to its rig_meet too. */
void rig_meet(void);

/* The address of one end on a link (1 or 2), or of both ends' IPv6. Ends: 1 server, 2 client. */
struct sockaddr_in rig_ip4(int link, int end, int port);
struct sockaddr_in6 rig_ip6(int end, int port);
#define ADDRESS(a) ((struct sockaddr *)&(a))

/* A listening server at the end's wildcard address; a client connected to it. */
int rig_listen(int style, int port);
int rig_connect(int port);

/* Subscribe to events of <linux/sctp.h>. */
void rig_subscribe(int fd, bool association);

/* A message: payload n bytes of a pattern that `seed` begins; and whether one is it. */
void rig_fill(char *data, size_t size, unsigned seed);
bool rig_is(const char *data, size_t size, unsigned seed);

/* Receive a whole message: its size. */
ssize_t rig_receive(int fd, char *data, size_t size, struct sctp_sndrcvinfo *info, int *flags);

#endif
